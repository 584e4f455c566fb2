"""One's own pictures: what a folder of them may hold, and what is said of each odd one."""

import errno
import io
import os
import random
import re
import shutil
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms

from tests.package.painting import GREEN, RED, fill, painted
from vitbook.data import folder_names
from vitbook.data.folder import FolderImages, list_folder, load_folder, read_files, root_key
from vitbook.data.near import near_labels, near_ones
from vitbook.data.pictures import PictureError, pixel_key, read_picture
from vitbook.explorer.photograph import read_photograph


def folder(root, number=10, first=0):
    """A folder of two classes with so many pictures each."""
    fill(root / "green", GREEN, range(first, first + number))
    fill(root / "red", RED, range(first, first + number))
    return root


def read(root, part="trainval"):
    return load_folder(root, part, size=16, progress=False)


def test_a_folder_gives_images_labels_names_and_files(tmp_path):
    root = folder(tmp_path)
    images, labels, classes, files, notes = read(root)
    assert classes == ("green", "red")
    assert images.shape == (16, 3, 16, 16)
    assert images.dtype == torch.uint8
    assert notes == ()
    colours = images.float().mean(dim=(2, 3)).argmax(dim=1)  # 0 red, 1 green
    assert torch.equal(colours, 1 - labels)
    assert [file.split("/")[0] for file in files] == [classes[label] for label in labels]


def test_the_parts_have_no_file_in_common_and_do_not_hang_on_names(tmp_path):
    root, moved = folder(tmp_path / "a", 15), tmp_path / "b"
    parts = {part: read(root, part) for part in ("train", "validation", "test", "trainval")}
    lengths = {part: len(one.labels) for part, one in parts.items()}
    assert lengths == {"train": 20, "validation": 4, "test": 6, "trainval": 24}
    seen = [set(parts[part].files) for part in ("train", "validation", "test")]
    assert len(set.union(*seen)) == 30
    for path in sorted(root.rglob("*.png"), reverse=True):
        new = moved / path.parent.name / f"{99 - int(path.stem)}.png"
        new.parent.mkdir(parents=True, exist_ok=True)
        path.rename(new)
    again, before = read(moved, "test"), parts["test"]
    assert sorted(again.images.tolist()) == sorted(before.images.tolist())


@pytest.mark.parametrize(
    ("folders", "lengths", "val"),
    [
        ({"train": 6, "val": 3, "test": 2}, (12, 6, 18, 4), "validation"),
        ({"train": 10, "val": 3}, (16, 4, 20, 6), "test"),  # the second folder is the test
    ],
)
def test_folders_for_the_parts_are_taken_as_they_are(tmp_path, folders, lengths, val):
    for first, (part, number) in enumerate(folders.items()):
        folder(tmp_path / part, number, first=100 * first)
    parts = ("train", "validation", "trainval", "test")
    assert tuple(len(read(tmp_path, part).labels) for part in parts) == lengths
    assert {file.split("/")[0] for file in read(tmp_path, val).files} == {"val"}
    told = "val is the test: beside train there is no other." in list_folder(tmp_path).notes
    assert told == (val == "test")


def animation(path):
    frames = [painted(RED, seed=5), painted(GREEN, seed=6)]
    frames[0].save(path.with_suffix(".gif"), save_all=True, append_images=frames[1:])


def two_shades(path):
    """A mask whose two shades are said by a palette."""
    mask = painted(RED).convert("1").convert("P")
    mask.putpalette([0, 0, 128, 128, 0, 0])
    mask.save(path)


def truncated(path):
    path = path.with_suffix(".jpg")
    painted(RED).save(path)
    path.write_bytes(path.read_bytes()[:900])


CLEAR = Image.new("RGBA", (30, 30), (9, 9, 9, 99))
ODD = {
    "grey in two shades, as masks are": lambda path: painted(RED).convert("1").save(path),
    "1 file, in two shades, as masks are": two_shades,
    "grey: all three channels alike": lambda path: painted(RED).convert("L").save(path),
    "CMYK: converted": lambda path: painted(RED).convert("CMYK").save(path.with_suffix(".jpg")),
    "transparent parts: on white": lambda path: CLEAR.save(path),
    "an animation: its first frame": animation,
    "smaller than the model's images: enlarged": lambda path: painted(RED, (12, 12)).save(path),
    "left out: too small": lambda path: painted(RED, (3, 30)).save(path),
    "left out: cannot be read as a picture": truncated,
    "left out: copies of another file": lambda path: painted(RED, seed=0).save(path),
    "left out: the same file lies in two classes": lambda path: painted(GREEN, seed=0).save(path),
    "left out: not the ending of a picture": lambda path: path.with_suffix(".txt").write_text("x"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_has_its_sentence(tmp_path, kind):
    root = folder(tmp_path)
    ODD[kind](root / "red" / "odd.png")
    parts = [read(root, part) for part in ("trainval", "test")]
    notes = [note for part in parts for note in part.notes]
    assert any(kind in note and "odd" in note for note in notes), notes
    assert all(kind in note for note in notes)
    left = 21 - kind.startswith("left out") - ("two classes" in kind)
    for each in ("images", "labels", "files"):
        assert sum(len(getattr(part, each)) for part in parts) == left


def test_empty_files_are_no_copies_of_each_other(tmp_path):
    root = folder(tmp_path)
    for name in ("red/a.jpg", "red/b.jpg", "green/a.jpg"):
        (root / name).write_bytes(b"")
    why = "3 files, left out: cannot be read as a picture (it is empty): green/a.jpg, red/a.jpg"
    assert list_folder(root).notes[0].startswith(why)


def test_what_says_that_it_is_opaque_is_not_put_on_white(tmp_path):
    painted(RED).convert("RGBA").save(tmp_path / "x.png")
    assert read_picture(tmp_path / "x.png", 30).remarks == ()


def test_pixels_are_those_of_the_middle_and_in_the_right_colours(tmp_path):
    strip = Image.new("RGB", (90, 30), "black")
    strip.paste((250, 0, 0), (30, 0, 60, 15))  # the middle third: red above, black below
    strip.save(tmp_path / "strip.png")
    pixels, remarks = read_picture(tmp_path / "strip.png", 30)
    assert remarks[-1] == "more than half of it is cut off: its middle is taken"
    assert read_picture(tmp_path / "strip.png", (20, 40)).remarks == remarks[:-1]
    assert pixels[0, 2:13].float().mean() > 245
    assert pixels[0, 17:].float().mean() < 5
    assert pixels[1:].float().mean() < 5


def test_what_is_no_folder_of_classes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is none"):
        read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds no folder"):
        read(tmp_path)
    painted(RED).save(tmp_path / "1.png")
    with pytest.raises(ValueError, match=r"is what its folder is called\. .* 1 file, .*: 1\.png"):
        read(tmp_path)
    (tmp_path / "cats").mkdir()
    with pytest.raises(ValueError, match=r"at least two; .* holds cats"):
        read(tmp_path)
    folder(tmp_path / "few", number=1)
    with pytest.raises(ValueError, match="no picture for the part train in green, red"):
        read(tmp_path / "few", "train")
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 4"):
        load_folder(folder(tmp_path / "good"), size=16, channels=4)
    with pytest.raises(ValueError, match="part must be"):
        read(tmp_path / "good", "dev")


# --- which folders are classes, which are parts


def test_parts_are_found_in_any_case_and_are_not_taken_for_classes(tmp_path):
    pairs = (("Training", "Testing"), ("TRAIN", "TEST"), ("training_set", "test_set"))
    for pair in (*pairs, ("seg_train", "seg_test"), ("trainset", "testset"), ("train2017", "Val")):
        root = tmp_path / pair[0]
        folder(root / pair[0], 6)
        folder(root / pair[1], 3, first=50)
        assert list_folder(root).classes == ("green", "red")
        assert [len(read(root, part).labels) for part in ("trainval", "test")] == [12, 6]


SELDOM = [
    ("Testing", "Training"),
    ("bus", "train"),
    ("images", "masks"),
    ("train 1", "train 2"),
    ("TestSet", "TrainSet"),
    ("seg_test", "seg_train"),
    ("testA", "testB", "trainA", "trainB"),
    ("fold1", "fold2"),
    ("HAM_images_part_1", "HAM_images_part_2"),
    ("Cat", "cat"),
    ("cafe\u0301", "café"),
    ("cat", "cat\u200b"),
    ("big  cat", "big cat"),
    ("cat", "cat (1)"),
    ("Copy of dog", "dog", "dog - Copy"),
    ("cat", "cat 2"),
    ("cat", "cat_11"),
    ("big cat", "big\u00a0cat"),
    ("samples", "seg_test", "seg_train"),
    ("Testdaten", "Trainingsdaten"),
    ("X_train", "y_train"),
    ("dev", "hold-out"),
    ("gallery", "query"),
    ("dev_set", "other", "probe2"),
    ("entrenamiento", "prueba"),
    ("apprentissage", "entraînement"),
    ("Prüfung", "dev"),
    ("测试集", "训练集"),
    ("обучение", "test"),
    # What file managers call folders that nobody named, and copies.
    ("New folder", "cat"),
    ("Neuer Ordner (2)", "cat"),
    ("Nová složka", "cat"),
    ("cat", "新しいフォルダー"),
    ("cat", "untitled folder 3"),
    ("cat", "cat - Kopie"),
    ("Kopie von cat", "cat"),
    ("cat", "cat \u2013 Copy (2)"),
    ("cat", "cat のコピー"),
    ("परीक्षण", "प्रशिक्षण"),
    ("ทดสอบ", "ฝึกอบรม"),
    ("אימון", "מבחן"),
    ("Übung", "Prüfung"),
    ("cat", "dog", "thumbnails"),
]


@pytest.mark.parametrize("name", ["New folder", "test"])
def test_an_empty_folder_that_is_called_like_no_class_is_left_out(tmp_path, name):
    (folder(tmp_path) / name).mkdir()
    assert read(tmp_path).classes == ("green", "red")
    assert f"1 folder, left out: empty: {name}/." in read(tmp_path).notes
    (tmp_path / "blue").mkdir()
    with pytest.raises(ValueError, match="has no picture for the part trainval in blue"):
        read(tmp_path)


@pytest.mark.parametrize("names", SELDOM)
def test_classes_called_like_parts_are_refused_until_they_are_said_to_be_classes(tmp_path, names):
    for first, name in enumerate(names):
        fill(tmp_path / name, RED, range(10 * first, 10 * first + 5))
    with pytest.raises(ValueError, match="folders_are_classes=True"):
        read(tmp_path)
    found = load_folder(tmp_path, size=16, folders_are_classes=True)
    assert found.classes == tuple(sorted(names))


@pytest.mark.parametrize(
    "names",
    [
        ("attest", "bus_station", "train_station"),
        ("grade 1", "grade 2"),
        ("grade (1)", "grade (2)"),
        ("boeing 737", "boeing 737-800"),
        ("0", "1", "10"),
        ("device", "devil", "dev"),
        ("gallery", "museum"),
        ("pasta", "pizza"),
        ("photo", "photocopy"),
        ("folder", "paper clip"),
        ("\u0915\u0941\u0924\u094d\u0924\u093e", "\u092c\u093f\u0932\u094d\u0932\u0940"),
        ("probe", "rocket"),
        ("evaluation", "development", "research", "teaching"),
    ],
)
def test_what_only_reminds_of_a_part_is_a_class(tmp_path, names):
    for first, name in enumerate(names):
        fill(tmp_path / name, RED, range(10 * first, 10 * first + 5))
    assert read(tmp_path).classes == tuple(sorted(names))


@pytest.mark.parametrize("inside", [("test", "train"), ("rust", "scab")])
def test_folders_of_the_same_names_are_not_mixed_without_a_word(tmp_path, inside):
    for first, place in enumerate(f"{name}/{one}" for name in ("colour", "grey") for one in inside):
        fill(tmp_path / place, RED, range(10 * first, 10 * first + 5))
    words = rf"hold folders of the same names \({', '.join(inside)}\), .*folders_are_classes=True"
    with pytest.raises(ValueError, match=words):
        read(tmp_path)
    said = load_folder(tmp_path, size=16, folders_are_classes=True)
    assert said.classes == ("colour", "grey")
    assert "20 files, taken from folders inside" in said.notes[0]


def test_the_only_folder_in_each_class_is_the_class_and_masks_in_one_are_refused(tmp_path):
    root = folder(tmp_path)
    for name in ("green", "red"):
        (root / name).rename(root / "kept")
        (root / name).mkdir()
        (root / "kept").rename(root / name / "images")
    assert len(list_folder(root).files) == 20
    (root / "red" / "masks").mkdir()
    painted(RED).convert("1").save(root / "red" / "masks" / "1.png")
    (root / "green" / "images").rename(root / "green" / "1")
    with pytest.raises(ValueError, match="red holds a folder masks beside its pictures"):
        read(root)


TOGETHER = {
    "masks": ("{}.png", "{}_mask.png"),
    "masks of numbered ones": ("{} (1).png", "{} (1)_mask.png"),
    "two kinds of file": ("{}.bmp", "{}.png"),
    "variants": ("{}.png", "{} (flipped).png", "{}-2.png"),
    "variants before the name": ("{}.png", "aug_{}.png"),
    "variants in the name": ("{}_a.png", "{}_flipped_a.png"),
    "crops": ("{}_crop1.png", "{}_crop2.png"),
    "frames": ("{}film_0001.png", "{}film_0002.png", "{}film_0003.png"),
    "patients": ("P{}-red-1.png", "P{}-red-2.png"),
    "a labelling tool's": ("{}_png.rf.9ab.png", "{}_png.rf.f31.png"),
    "Augmentor's": (
        "red_original_{}.png_0a1b2c3d-0a1b-4c5d-8e9f-0123456789ab.png",
        "red_original_{}.png_9f8e7d6c-1a2b-4c5d-9e8f-ba9876543210.png",
    ),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_files_called_as_one_thing_are_told(tmp_path, kind):
    root = folder(tmp_path)
    for seed in range(6):
        for number, name in enumerate(TOGETHER[kind]):
            painted(RED, seed=100 + 10 * seed + number).save(root / "red" / name.format(f"x{seed}"))
    told = list_folder(root).notes[0]
    assert told.startswith("red: files called as if they showed a thing twice (")
    assert "x0" in told.partition(")")[0]


def test_variants_in_one_of_three_parts_that_are_ready_stay_together(tmp_path):
    seeds = iter(range(100, 200))
    for part in ("train", "valid", "test"):
        root = folder(tmp_path / part)
        for number in range(6):
            for name in TOGETHER["a labelling tool's"]:
                picture = painted(RED, seed=next(seeds))
                picture.save(root / "red" / name.format(f"{part}{number}"))
    assert not [x for x in list_folder(tmp_path).notes if "showed a thing twice" in x]
    shutil.rmtree(tmp_path / "valid")
    assert [x for x in list_folder(tmp_path).notes if "showed a thing twice" in x]


def test_thousands_of_classes_are_listed_in_time_that_grows_as_they_do(tmp_path, monkeypatch):
    calls = []
    words = folder_names._words
    monkeypatch.setattr(folder_names, "_words", lambda name: calls.append(name) or words(name))
    for number in range(100):
        (tmp_path / f"n{number:04}").mkdir()
    list_folder(tmp_path)
    assert len(calls) < 100 * 10


def test_folders_of_one_film_or_patient_are_told(tmp_path):
    root = folder(tmp_path)
    for first, film in ((100, "a"), (200, "b")):
        assert not any("a film or a patient" in note for note in list_folder(root).notes)
        fill(root / "red" / film, RED, range(first, first + 4))
    assert list_folder(root).notes[-1].startswith("2 folders inside classes (red/a, red/b) are cut")


def test_a_series_with_a_common_name_is_no_thing_twice(tmp_path):
    root = folder(tmp_path)
    painted(RED, seed=99).save(root / "red" / "x.png")
    for seed in range(20):
        painted(RED, seed=100 + seed).save(root / "red" / f"x_{seed}.png")
    assert list_folder(root).notes == ()


COUNTED = ["{}", "img_{:04}", "IMG_20230415_{:06}", "n02085620_{}", "2007_{:06}", "VOC2012_x_{:08}"]


@pytest.mark.parametrize("name", COUNTED)
def test_numbers_of_pictures_are_no_variants(tmp_path, name):
    root = folder(tmp_path)
    for first, place in ((0, root / "green"), (100, root / "red")):
        for i, path in enumerate(sorted(place.iterdir())):
            path.rename(place / f"{name.format(first + 7 * i)}.png")
    assert list_folder(root).notes == ()


def test_a_number_in_the_name_of_a_small_class_makes_no_variants(tmp_path):
    root = folder(tmp_path, number=5)
    for name in ("green", "red"):
        for path in (root / name).iterdir():
            path.rename(path.with_stem(f"{name}2_{path.stem}"))
    assert list_folder(root).notes == ()


def test_a_folder_beside_the_parts_is_told_with_the_number_of_its_pictures(tmp_path):
    for part in ("train", "test", "train_augmented"):
        folder(tmp_path / part, number=4, first=len(part))
    words = "8 files, left out: beside the folders of the parts: train_augmented/green/15.png, "
    assert list_folder(tmp_path).notes[0].startswith(words)


def test_the_classes_that_one_part_lacks_are_told(tmp_path):
    folder(tmp_path / "train", 6)
    folder(tmp_path / "test", 3, first=50)
    (tmp_path / "test" / "red").rename(tmp_path / "test" / "reds")
    with pytest.raises(ValueError, match=r"There is no red in test\. There is no reds in train\."):
        read(tmp_path)


def test_folders_of_other_classes_inside_one_are_refused(tmp_path):
    root = folder(tmp_path)
    folder(root / "augmented", first=50)
    with pytest.raises(ValueError, match=r"augmented holds folders called as classes .*green, red"):
        list_folder(root)
    assert len(list_folder(root, folders_are_classes=True).classes) == 3


def test_two_folders_of_one_part_are_named(tmp_path):
    for first, part in enumerate(("train", "Train", "test")):
        folder(tmp_path / part, first=10 * first)
    with pytest.raises(
        ValueError, match="but Train, train name one part: put what is in them into"
    ):
        list_folder(tmp_path)


def test_classes_that_are_hidden_are_named(tmp_path):
    for place in sorted(folder(tmp_path).iterdir()):
        place.rename(tmp_path / f".{place.name}")
    with pytest.raises(ValueError, match=r"found: 2 folders, left out: hidden: \.green/, \.red/"):
        list_folder(tmp_path)


def test_files_of_the_same_names_in_two_classes_are_asked_about(tmp_path):
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / name).mkdir()
        for seed in range(6):
            picture = painted(RED, seed=seed + 10 * len(name))
            picture.save(tmp_path / name / f"2007_0000{seed}.png")
    same = (
        "JPEGImages and SegmentationClass hold 6 files of the same names.*folders_are_classes=True"
    )
    with pytest.raises(ValueError, match=same):
        list_folder(tmp_path)
    assert list_folder(tmp_path, folders_are_classes=True).doubt
    assert not list_folder(folder(tmp_path / "counted")).notes


def test_a_copy_is_seen_whatever_it_is_called(tmp_path):
    root = folder(tmp_path)
    fill(root / "\u8907\u672c", RED, range(6))
    with pytest.raises(ValueError, match=r"red and .* hold 6 of the same pictures: .*=True"):
        list_folder(root)
    (root / "\u8907\u672c" / "5.png").write_bytes(b"another")
    fill(root / "\u8907\u672c", RED, range(100, 107))
    assert "10 files, left out: the same file lies in two" in list_folder(root).notes[0]


def drawn(numbers, negative=False):
    """A scene of three discs on a bright ground, or where they are."""
    rows, columns = np.mgrid[:60, :60]
    scene = 90 + columns if not negative else np.zeros((60, 60))
    for row, column, colour in numbers.integers(10, 50, (3, 3)):
        disc = (rows - row) ** 2 + (columns - column) ** 2 < 64
        scene = np.where(disc, 255 if negative else 4 * colour, scene)
    return Image.fromarray(scene.clip(0, 255).astype(np.uint8)).convert("RGB")


WAYS = ["{:06}", "v1_{:03}", "2024-01-{:02}", "1-{}", "image{}(1)", "0e4d{:x}f7a9b1c2"]


@pytest.mark.parametrize("called", WAYS)
def test_pictures_of_classes_that_are_called_alike_are_compared(tmp_path, called):
    for apart, name in ((0, "a"), (50, "b"), (99, "c")):
        (tmp_path / name).mkdir()
        for seed in range(24):
            picture = drawn(np.random.default_rng(seed + apart))
            picture.save(tmp_path / name / f"{called.format(seed)}.png")
    (told,) = list_folder(tmp_path).notes
    words = (
        r"a and b hold 24 files of the same names, of which [0-3] of 24 compared are most like each"
    )
    assert re.match(words, told)


def test_bursts_whose_names_begin_again_in_each_class_are_no_copies(tmp_path):
    for seed in range(6):
        for apart, name in ((0, "a"), (99, "b")):
            for scene in range(8):
                place = tmp_path / str(seed) / name
                place.mkdir(parents=True, exist_ok=True)
                picture = np.array(drawn(np.random.default_rng([seed, apart, scene])))
                for frame in range(5):
                    picture[frame, scene] = apart  # each another file
                    Image.fromarray(picture).save(place / f"cam{scene:02}_{frame}.png")
        assert list_folder(tmp_path / str(seed)).classes == ("a", "b")


@pytest.mark.parametrize("number", [7, 24])
def test_of_files_of_equal_numbers_those_count_that_look_alike(tmp_path, number):
    for apart, name in ((0, "a"), (99, "b")):
        (tmp_path / name).mkdir()
        for seed in range(24):
            picture = drawn(np.random.default_rng(seed + apart * (seed >= number)))
            picture.save(tmp_path / name / f"{name}{seed}.png", compress_level=1 + bool(apart))
    counted = "[7-9]" if number == 7 else 24  # some are alike by chance
    words = rf"a and b hold 24 files of the same numbers, of which {counted} of 24 compared are"
    if number == 7:
        assert re.match(words, list_folder(tmp_path).notes[0])
    else:
        with pytest.raises(ValueError, match=words):
            list_folder(tmp_path)


@pytest.mark.parametrize(("apart", "called"), [(0, ""), (0, "{}_"), (99, "")])
def test_numbered_pictures_and_what_was_drawn_of_them_are_no_classes(tmp_path, apart, called):
    for name, negative in (("rgb", False), ("tiefe", True)):
        (tmp_path / name).mkdir()
        for seed in range(24):
            numbers = np.random.default_rng(seed + apart * negative)
            drawn(numbers, negative).save(tmp_path / name / f"{called.format(name)}{seed:03}.png")
    if apart:  # of other scenes
        assert list_folder(tmp_path).classes == ("rgb", "tiefe")
        return
    same = "rgb and tiefe hold 24 files of the same numbers, of which 2[0-4] of 24 compared are"
    with pytest.raises(ValueError, match=same):
        list_folder(tmp_path)


def test_parts_may_lie_a_folder_deeper_and_said_to_be_classes_they_are(tmp_path):
    folder(tmp_path / "seg_train/seg_train", 6)
    folder(tmp_path / "seg_test/seg_test", 3, first=50)
    assert [len(read(tmp_path, part).labels) for part in ("trainval", "test")] == [12, 6]
    said = load_folder(tmp_path, size=16, folders_are_classes=True)
    assert said.classes == ("seg_test", "seg_train")
    (tmp_path / "seg_test/seg_test/red").rename(tmp_path / "seg_test/seg_test/Red")
    with pytest.raises(ValueError, match="Red, red differ in capitals"):
        read(tmp_path)
    (tmp_path / "seg_test/seg_test/Red").rename(tmp_path.with_name("away"))
    with pytest.raises(ValueError, match="part test in red: each class needs one in each part"):
        read(tmp_path, "test")


@pytest.mark.parametrize("trash", ["@Recycle", "RECYCLER", "System Volume Information"])
def test_what_was_thrown_away_is_in_no_class_and_is_none(tmp_path, trash):
    root = folder(tmp_path)
    fill(root / trash, GREEN, [100])
    fill(root / "red" / trash, GREEN, [200])
    found = list_folder(root)
    assert found.classes == ("green", "red")
    assert len(found.files) == 20
    assert found.notes == (f"2 folders, left out: hidden: {trash}/, red/{trash}/.",)


def test_what_a_terminal_would_obey_is_not_printed(tmp_path):
    root = folder(tmp_path)
    (root / "red/a\x1b[2J\nb.txt").write_text("x")
    assert "red/a\\x1b[2J\\nb.txt" in list_folder(root).notes[0]


def test_a_refused_folder_is_told_its_own_reason(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "phone" / name).mkdir(parents=True)
        for seed in range(8):
            (tmp_path / "phone" / name / f"{seed}.HEIC").write_bytes(bytes([seed, len(name)] * 9))
    with pytest.raises(ValueError, match=r"16 files, left out: not the ending .*cat/0\.HEIC"):
        read(tmp_path / "phone")
    folder(tmp_path / "flat" / "train")
    (tmp_path / "flat" / "test").mkdir()
    painted(RED).save(tmp_path / "flat" / "test" / "1.png")
    with pytest.raises(ValueError, match=r"test none: .* name .*/flat/train, and a fifth"):
        read(tmp_path / "flat")
    folder(tmp_path / "deep" / "data")
    with pytest.raises(ValueError, match=r"deep/data holds green, red: name that one"):
        read(tmp_path / "deep")
    (tmp_path / "deep/data/green").rename(tmp_path / "deep/data/Annotations")
    with pytest.raises(ValueError, match=r"deep holds data$"):  # of that no classes would be
        read(tmp_path / "deep")


# --- one rule for what lies in a folder


def loop(root):
    (root / "red" / "again").symlink_to(root / "red")


def linked(root):
    fill(root.parent / "other", RED, range(100, 104))
    (root / "red" / "more").symlink_to(root.parent / "other")


def sparse(root):
    with open(root / "red" / "huge.tif", "wb") as file:
        file.truncate(2**40)


def hidden(name):
    return lambda root: fill(root / "red" / name, RED, [77])


LYING = {  # what is made; how many more pictures there are; the note
    "linked": (linked, 4, "4 files, taken from folders inside those of the classes: red/more/100"),
    "long": (
        lambda root: (root / "red" / "l.png").symlink_to("x" * 400),
        0,
        "opened: red/l.",
    ),
    "huge": (sparse, 0, "left out: larger than 2 GB: red/huge.tif"),
    "above": (lambda root: (root / "all").symlink_to(root), 0, "a link to a folder above: all"),
    "loop": (loop, 0, "a link to a folder that was read: red/again"),
    "broken": (lambda root: (root / "red" / "gone.png").symlink_to("/no"), 0, "broken link: red/g"),
    "pipe": (lambda root: os.mkfifo(root / "red" / "pipe.png"), 0, "a pipe or a device: red/pipe"),
    "up": (lambda root: (root / "red" / "up").symlink_to(root), 0, "a folder above: red/up"),
    "beside": (lambda root: painted(RED).save(root / "x.png"), 0, "beside the folders of the c"),
    "file": (lambda root: (root / "red" / ".DS_Store").write_text("x"), 0, "hidden: red/.DS_Store"),
    **{
        name: (hidden(name), 0, f"1 folder, left out: hidden: red/{name}/.")
        for name in (".Trash-1000", ".thumbnails", ".ipynb_checkpoints", "@eaDir", "__MACOSX")
    },
}


@pytest.mark.parametrize("kind", LYING)
def test_what_lies_in_a_folder_is_read_or_said_once(tmp_path, kind):
    make, more, note = LYING[kind]
    root = folder(tmp_path / "photos")
    make(root)
    parts = [read(root, part) for part in ("trainval", "test")]
    assert sum(len(part.labels) for part in parts) == 20 + more
    for part in parts:
        assert len(part.notes) == (note is not None)
        assert note is None or note in part.notes[0]


def test_other_endings_that_are_decoded_here_are_read(tmp_path):
    root = folder(tmp_path)
    painted(RED, seed=50).save(root / "red" / "a.jfif", format="JPEG")
    painted(RED, seed=51).save(root / "red" / "b.TGA")
    assert len(list_folder(root).files) == 22


# --- no file ends a training


def jpeg_with_rational(numerator, denominator):
    out = io.BytesIO()
    painted(RED, (60, 20)).save(out, "JPEG")
    tags = struct.pack("<HHII", 0x0112, 3, 1, 6) + struct.pack("<HHII", 0x011A, 10, 1, 38)
    block = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 2) + tags + struct.pack("<I", 0)
    block += struct.pack("<ii", numerator, denominator)
    head = b"\xff\xe1" + struct.pack(">H", len(block) + 2)
    return out.getvalue()[:2] + head + block + out.getvalue()[2:]


@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_kind_of_file_is_turned_once(tmp_path, ending, orientation):
    lying = painted(RED, (60, 40))
    tags = Image.Exif()
    tags[0x0112] = orientation
    exact = {"lossless": True} if ending == "webp" else {}
    lying.save(tmp_path / f"a.{ending}", exif=tags, **exact)
    if ending == "jpg":  # which keeps pixels nearly
        with Image.open(tmp_path / "a.jpg") as picture:
            lying = picture.convert("RGB")
    turn = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}.get(orientation)
    upright = lying if turn is None else lying.transpose(Image.Transpose(turn))
    found = read_picture(tmp_path / f"a.{ending}", (upright.height, upright.width))
    assert np.array_equal(found.pixels.permute(1, 2, 0).numpy(), np.asarray(upright))
    assert found.remarks == (() if turn is None else ("rotated by its camera: turned upright",))


def test_a_picture_is_turned_whatever_else_its_exif_holds(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg_with_rational(-1, 0))
    (tmp_path / "b.jpg").write_bytes(jpeg_with_rational(72, 1))
    one, other = (read_picture(tmp_path / name, 20) for name in ("a.jpg", "b.jpg"))
    assert one.remarks == other.remarks
    assert one.remarks[0] == "rotated by its camera: turned upright"
    assert torch.equal(one.pixels, other.pixels)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_file_that_is_closed_since_it_was_listed_ends_nothing(tmp_path, monkeypatch, number):
    """The system refuses a file, as it refuses nobody who may do all."""
    found, why = list_folder(folder(tmp_path)), os.strerror(number)
    victim = next(file.path for file in found.files if file.part == "train")

    def opens(path, *arguments, real=open, **options):
        if str(path) == str(victim):
            raise OSError(number, why, str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", opens)
    read_found = read_files(found, "train", size=16, progress=False)
    assert len(read_found.labels) == 11
    assert [note[:33] for note in read_found.notes] == ["1 file, left out: cannot be opene"]
    with pytest.raises(PictureError, match=f"cannot be opened: {why.lower()}"):
        read_picture(victim, 16)


def test_a_root_that_is_closed_is_not_called_empty(tmp_path, monkeypatch):
    def refuses(path, real=os.listdir):
        if str(path) == str(tmp_path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    folder(tmp_path)
    monkeypatch.setattr(os, "listdir", refuses)
    with pytest.raises(PermissionError):
        list_folder(tmp_path)


@pytest.mark.parametrize("error", [TypeError, struct.error, MemoryError, RecursionError, KeyError])
def test_whatever_a_decoder_raises_is_one_note_with_the_files_name(tmp_path, monkeypatch, error):
    root, real = folder(tmp_path), Image.open
    victim = next(file.path for file in list_folder(root).files if file.part == "train")

    def opens(path, *arguments, **options):
        if path == victim:
            raise error("bad operand")
        return real(path, *arguments, **options)

    monkeypatch.setattr(Image, "open", opens)
    found = read(root)
    assert len(found.labels) == 15
    name = victim.relative_to(root).as_posix()
    assert found.notes == (f"1 file, left out: cannot be read as a picture: {name}.",)


KINDS = ("JPEG", "PNG", "TIFF", "GIF", "WEBP", "BMP", "PPM")
TAGGED = ("JPEG", "PNG", "WEBP")  # with EXIF, which is damaged, too


def test_half_a_png_is_no_picture(tmp_path):
    painted(RED, (64, 64)).save(tmp_path / "a.png")
    data = bytearray((tmp_path / "a.png").read_bytes())
    data[len(data) // 2 : -12] = bytes(len(data[len(data) // 2 : -12]))
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(PictureError, match="cannot be read"):
        read_picture(tmp_path / "a.png", 16)


def test_a_file_that_ends_in_nothing_is_said(tmp_path):
    painted(RED, (64, 64)).save(tmp_path / "a.bmp")
    data = (tmp_path / "a.bmp").read_bytes()
    (tmp_path / "a.bmp").write_bytes(data[:-5000] + bytes(5000))
    assert read_picture(tmp_path / "a.bmp", 16).remarks == ("ends with zeros: was it all written?",)


@pytest.mark.parametrize("number", [60, pytest.param(2000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", [*KINDS, *(f"{kind} and tags" for kind in TAGGED)])
def test_damaged_files_are_read_or_refused_by_name(tmp_path, kind, number):
    draw, out, refused = random.Random(number), io.BytesIO(), 0
    tags = Image.Exif()
    tags.update({0x0112: 6, 0x010F: "camera", 0x011A: 72.0} if kind.endswith("tags") else {})
    painted(RED, (24, 24)).save(out, kind.split()[0], exif=tags)
    for _ in range(number):
        data = bytearray(out.getvalue())
        for _ in range(draw.choice((1, 4, 16))):
            data[draw.randrange(min(len(data), 400))] = draw.randrange(256)
        path = tmp_path / "x"
        path.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        try:
            assert read_picture(path, 8).pixels.shape == (3, 8, 8)
        except PictureError:
            refused += 1
    assert refused > 5


# --- the same pixels everywhere


RAMP = np.linspace(0, 1, 900).reshape(30, 30)
NAN = np.where(RAMP < 0.001, np.nan, RAMP)
DEPTHS = {
    "16 bits: scaled to 8": (RAMP * 65535).astype(np.uint16),
    "12 bits: scaled to 8": (RAMP * 4095).astype(np.uint16),
    "20 bits: scaled to 8": (RAMP * (2**20 - 1)).astype(np.int32),
    "fractions: 0 to 1 are black to white": RAMP.astype(np.float32),
    "fractions: 0 to 1 are black to white, what is no number black": NAN.astype(np.float32),
    "other numbers: the least is black, the largest white": (RAMP * 3000 - 1000).astype(np.int32),
}


@pytest.mark.parametrize("remark", DEPTHS)
def test_every_depth_becomes_the_same_ramp_and_says_how(tmp_path, remark):
    Image.fromarray(DEPTHS[remark]).save(tmp_path / "x.tif")
    pixels, remarks = read_picture(tmp_path / "x.tif", 30, 1)
    assert remarks == (remark,)
    assert (pixels[0].float() - torch.from_numpy(RAMP * 255)).abs().max() <= 1


def test_different_depths_in_a_folder_are_said(tmp_path):
    root = folder(tmp_path)
    for i in range(12):
        values = (RAMP * (2 ** (12 + 2 * (i % 2)) - 1 - i)).astype(np.uint16)
        Image.fromarray(values).save(root / "red" / f"deep {i}.png")
    assert "scaled by the bits that each one's largest number" in read(root).notes[-1]


def tiff(values, *, photometric=1, format=1, samples=1):
    """The file of an array, with three of its tags; Pillow writes only those that it reads."""
    height, width = values.shape[:2]
    bits = [8 * values.dtype.itemsize] * samples
    tags = {256: [width], 257: [height], 258: bits, 259: [1], 262: [photometric], 273: [0]}
    tags |= {277: [samples], 278: [height], 279: [values.nbytes]}
    tags |= {338: [0] * (samples - 3)} if samples > 3 else {}
    tags |= {339: [format] * samples}
    body, beyond, at = b"", b"", 14 + 12 * len(tags)
    tags[273] = [at + sum(2 * len(v) for v in tags.values() if len(v) > 2)]
    for tag, numbers in tags.items():
        kind, form = (3, "H") if len(numbers) > 1 or tag in (258, 338, 339) else (4, "I")
        raw = struct.pack(f"<{len(numbers)}{form}", *numbers)
        if len(raw) > 4:
            raw, beyond = struct.pack("<I", at + len(beyond)), beyond + raw
        body += struct.pack("<HHI", tag, kind, len(numbers)) + raw.ljust(4, b"\0")
    head = b"II*\0" + struct.pack("<IH", 8, len(tags))
    return head + body + bytes(4) + beyond + values.tobytes()


WHOLE = (RAMP * 65535).round().astype(np.uint16)
TAGS = {  # the file, its remark, or why it is refused
    "white": (tiff(65535 - WHOLE, photometric=0), "16 bits: scaled to 8, zero is white"),
    "large": (tiff((RAMP * (2**32 - 1)).astype(np.uint32)), "32 bits: the upper 16"),
    "bands": (
        tiff(
            np.repeat((RAMP * 255)[..., None], 5, axis=2).astype(np.uint8), photometric=2, samples=5
        ),
        "further channels: left out",
    ),
    "positive": (tiff((RAMP * 32767).astype(np.int16), format=2), "15 bits: scaled to 8"),
    "negative": (
        tiff((RAMP * 3000 - 1000).astype(np.int16), format=2),
        "other numbers: the least is black, the largest white",
    ),
    "signed": (tiff((RAMP * 127).astype(np.int8), format=2), "signed numbers"),
}


@pytest.mark.parametrize("kind", TAGS)
def test_what_the_tags_of_a_tiff_say_is_heeded(tmp_path, kind):
    data, words = TAGS[kind]
    (tmp_path / "x.tif").write_bytes(data)
    if kind == "signed":
        with pytest.raises(PictureError, match=words):
            read_picture(tmp_path / "x.tif", 30, 1)
        return
    pixels, remarks = read_picture(tmp_path / "x.tif", 30, 1)
    assert words in remarks
    assert (pixels[0].float() - torch.from_numpy(RAMP * 255)).abs().max() <= 1


def png(number, *, channels, told):
    """A file of 16 bits a channel that holds one number, and chunks that tell more."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", 30, 30, 16, 2 * (channels == 3), 0, 0, 0)
    rows = (b"\0" + struct.pack(">H", number) * 30 * channels) * 30
    chunks = {b"IHDR": head} | told | {b"IDAT": zlib.compress(rows), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in chunks.items())


CLEAR_GREY, CLEAR_COLOUR = {b"tRNS": b"\x01\xf4"}, {b"tRNS": b"\x01\xf4" * 3}
LINEAR, OF_SCREENS = ({b"gAMA": struct.pack(">I", number)} for number in (100_000, 45_455))
SHORT, WHITE = "16 bits a channel: the upper 8", "transparent parts: on white"
TOLD = {  # number, channels, chunks -> what is read, and what is said
    "colours": (0x8000, 3, {}, 128, (SHORT,)),
    "clear grey": (500, 1, CLEAR_GREY, 255, ("10 bits: scaled to 8", WHITE)),
    "clear colour": (500, 3, CLEAR_COLOUR, 255, (SHORT, WHITE)),
    "another is clear": (0x8000, 3, CLEAR_COLOUR, 128, (SHORT,)),
    "linear": (0x3700, 3, LINEAR, 127, (SHORT, "another gamma: that of sRGB")),
    "of screens": (0x3700, 3, OF_SCREENS, 0x37, (SHORT,)),
}


@pytest.mark.parametrize("kind", TOLD)
def test_what_the_chunks_of_a_png_say_is_heeded(tmp_path, kind):
    number, channels, told, pixel, words = TOLD[kind]
    (tmp_path / "x.png").write_bytes(png(number, channels=channels, told=told))
    pixels, remarks = read_picture(tmp_path / "x.png", 30)
    assert remarks == words
    assert (pixels == pixel).all()


def profile_that_exchanges_red_and_blue(name="mine"):
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    other = {b"rXYZ": b"bXYZ", b"bXYZ": b"rXYZ"}
    for at in range(132, 132 + 12 * struct.unpack(">I", data[128:132])[0], 12):
        data[at : at + 4] = other.get(bytes(data[at : at + 4]), data[at : at + 4])
    return bytes(data).replace("sRGB".encode("utf-16-be"), name.encode("utf-16-be"))


def test_a_profile_is_known_by_its_colours_and_not_by_its_name(tmp_path):
    picture = Image.new("RGB", (20, 20), RED)
    picture.save(tmp_path / "x.png", icc_profile=profile_that_exchanges_red_and_blue("sRGB"))
    red, _, blue = (int(v) for v in read_picture(tmp_path / "x.png", 20).pixels[:, 9, 9])
    assert red < 60
    assert blue > 190


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "CMYK"])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_colours_of_another_profile_become_those_of_screens(tmp_path, mode, channels):
    shown = Image.new("RGB", (20, 20), RED).convert(mode)
    shown.save(tmp_path / "x.tif", icc_profile=profile_that_exchanges_red_and_blue())
    pixels, remarks = read_picture(tmp_path / "x.tif", 20, channels)
    fits = mode in ("RGB", "RGBA", "P")
    said = "colours of another profile: converted to sRGB"
    assert (said if fits else "its colour profile cannot be used: read without it") in remarks
    red, _, blue = (int(v) for v in read_picture(tmp_path / "x.tif", 20).pixels[:, 9, 9])
    assert not fits or (red < 60 and blue > 190)
    assert channels == 3 or pixels.shape[0] == 1
    shown.save(
        tmp_path / "y.tif",
        icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    )
    assert not any("profile" in remark for remark in read_picture(tmp_path / "y.tif", 20).remarks)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_photograph_of_any_model_has_the_pixels_of_a_training(tmp_path, channels):
    path, tags = tmp_path / "x.png", Image.Exif()
    tags[0x0112] = 6
    CLEAR.save(path, exif=tags)
    trained = read_picture(path, 20, channels)
    shown, remarks = read_photograph(path, (20, 20), channels)
    assert torch.equal((shown[0] * 255).round().byte(), trained.pixels)
    assert remarks == trained.remarks


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "it is a web page"),
        (b"<?xml version='1.0'?><Error>", "it is a web page"),
        (b"<?xml version='1.0'?><svg>", r"it is a drawing \(SVG\); save it as PNG"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "it is HEIC, .*; save it as JPEG"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1miaf", "it is HEIC, .*; save it as JPEG"),
        (b"\0\0\0\x18ftypisom\0\0\2\0isomiso2", "it is a film, perhaps"),
        (b"8BPS\0\1" + bytes(99), "of no kind that is read here; save it as PNG or JPEG"),
        (bytes(128) + b"DICM", "it is DICOM; save it as PNG"),
    ],
)
def test_what_a_download_left_is_named(tmp_path, data, words):
    (tmp_path / "x.png").write_bytes(data)
    with pytest.raises(PictureError, match=words):
        read_picture(tmp_path / "x.png", 16)


@pytest.mark.parametrize("place", ["its own", "with one of its pictures", "another"])
def test_only_where_it_is_the_folder_of_the_run_a_name_tells_a_picture(tmp_path, place):
    before = list_folder(folder(tmp_path / "one"))
    known = {file.path.relative_to(before.root).as_posix(): "train" for file in before.files}
    root = folder(tmp_path / "other", first=50)
    for name in ("green", "red"):
        for i, path in enumerate(sorted((root / name).iterdir())):
            path.rename(path.with_stem(str(i)))
    known["red/0.png"] = "test"
    known[root_key(root if place == "its own" else before.root)] = "root"
    if place == "with one of its pictures":
        known[list_folder(root).files[0].key] = "train"
    found = list_folder(root, known=known)
    parts = {file.part for file in found.files if file.path != root / "red" / "0.png"}
    assert (parts == {"train"}) == (place != "another")
    words = "20 files, called as in the training, but other pictures: if they show the same, it has"
    assert (words in " ".join(found.notes)) == (place == "another")


def test_a_picture_that_was_changed_or_written_anew_stays_in_its_part(tmp_path):
    root = folder(tmp_path)
    changed, anew = root / "red" / "1.png", root / "red" / "2.png"
    known = {"red/1.png": "test", pixel_key(read_picture(anew, 16).pixels): "train"}
    painted(RED, seed=901).save(changed)
    Image.open(anew).save(root / "red" / "anew.png", compress_level=0)
    anew.unlink()
    found = list_folder(root, known=known)
    parts = {file.path.name: file.part for file in found.files if file.path.parent.name == "red"}
    assert (parts["1.png"], parts["anew.png"]) == ("test", "train")
    for name, what in (("1", "changed"), ("anew", "written anew")):
        note = f"1 file, {what} since the training, kept in its part: red/{name}.png."
        assert note in found.notes


def test_what_was_saved_anew_with_another_ending_is_the_old_picture(tmp_path):
    root = folder(tmp_path)
    known = {file.key: file.part for file in list_folder(root).files}
    known |= {f"red/{seed}.png": "train" for seed in range(10)} | {"red/1.png": "test"}
    for seed in range(3):
        path = root / "red" / f"{seed}.png"
        Image.open(path).save(path.with_suffix(".jpg"))
        path.unlink()
    found = list_folder(root, known=known)
    parts = {file.path.name: file.part for file in found.files if file.path.suffix == ".jpg"}
    assert parts == {"0.jpg": "train", "1.jpg": "test", "2.jpg": "train"}
    assert "3 files, changed since the training, kept in its part" in " ".join(found.notes)


@pytest.mark.parametrize("was", ["train", "test"])
def test_new_pictures_are_doubted_where_one_that_was_learned_is_gone(tmp_path, was):
    root = folder(tmp_path)
    known = {f"red/{seed}.png": "train" for seed in range(10)} | {"red/1.png": was}
    Image.open(root / "red" / "1.png").save(root / "red" / "one.jpg")
    Image.open(root / "red" / "2.png").save(root / "red" / "two.png")
    known[next(file.key for file in list_folder(root).files if file.path.name == "2.png")] = "train"
    for name in ("1.png", "2.png"):  # of the second it is known what it is called now
        (root / "red" / name).unlink()
    told = " ".join(list_folder(root, known=known).notes)
    doubted = ", as 1 that it learned from is gone: if they are the same, it has learned from them"
    assert f"new since the training{doubted if was == 'train' else ''}: " in told


def scenes(number):
    """Smooth pictures, each another, uint8 (n, 3, 16, 16)."""
    coarse = torch.rand(number, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.interpolate(coarse, size=16, mode="bicubic", align_corners=False)
    return (smooth.clamp(0, 1) * 255).to(torch.uint8)


def part_of(images, name, first=0):
    files = tuple(f"{name}/red/{first + i}.png" for i in range(len(images)))
    return FolderImages(images, torch.zeros(len(images), dtype=torch.int64), ("red",), files, ())


def as_jpeg(image):
    held = io.BytesIO()
    Image.fromarray(image.permute(1, 2, 0).numpy()).resize((32, 32)).save(held, "JPEG")
    return torch.from_numpy(np.array(Image.open(held).resize((16, 16)))).permute(2, 0, 1)


def test_copies_that_were_saved_anew_are_told_and_other_pictures_are_not():
    pictures = scenes(60)
    learned, others = part_of(pictures[:40], "train"), pictures[40:]
    for some in (learned, part_of(pictures[:4], "train")):
        assert near_ones(some, part_of(others, "test", 900)) == []
    for changed in (pictures[7], pictures[7].flip(2), pictures[7].rot90(1, (1, 2))):
        anew = torch.stack([as_jpeg(changed), *others[1:]])
        (told,) = near_ones(learned, part_of(anew, "validation", 900), "validation")
        words = "At least 1 of 20 pictures of the validation look like one that is learned from "
        assert told.startswith(f"{words}(validation/red/900.png like train/red/7.png): copies")


def test_copies_that_were_saved_anew_into_another_class_are_told():
    pictures, labels = scenes(40), torch.arange(40) % 2
    learned = part_of(pictures, "train")._replace(labels=labels)
    assert near_labels(learned) == near_labels(learned._replace(labels=0 * labels)) == []
    pictures[7] = as_jpeg(pictures[4].flip(2))
    (told,) = near_labels(learned)
    words = "At least 2 of 40 pictures that are learned from look like one of another class"
    assert told.startswith(f"{words} (train/red/4.png like train/red/7.png)")


def test_frames_of_a_film_on_both_sides_are_told():
    places = torch.linspace(0, 1, 30)[:, None, None, None]
    first, last = scenes(2).float()
    film = (first * (1 - places) + last * places).to(torch.uint8)
    few = scenes(2).repeat_interleave(2, dim=0)
    for images, cut, some in ((film, 20, 1), (scenes(30), 20, 0), (few, 3, 0)):
        notes = near_ones(part_of(images[:cut], "train"), part_of(images[cut:], "test", cut))
        assert len([note for note in notes if "of one film, or of one thing" in note]) == some
