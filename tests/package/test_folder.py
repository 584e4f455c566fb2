"""One's own pictures: what a folder of them may hold, and what is said of each odd one."""

import numpy as np
import pytest
import torch
from PIL import Image

from vitbook.data.folder import load_folder
from vitbook.data.pictures import PictureError, read_picture

RED, GREEN = (220, 30, 30), (20, 200, 40)


def painted(colour, size=(40, 30), seed=0):
    """A picture that is mostly of one colour, each seed another."""
    noise = np.random.default_rng(seed).integers(-15, 15, (size[1], size[0], 3))
    return Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8))


def folder(root, number=10, first=0):
    """A folder of two classes with so many pictures each."""
    for name, colour in (("green", GREEN), ("red", RED)):
        (root / name).mkdir(parents=True)
        for seed in range(first, first + number):
            painted(colour, seed=seed).save(root / name / f"{seed}.png")
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
    root, moved = folder(tmp_path / "a"), tmp_path / "b"
    parts = {part: read(root, part) for part in ("train", "validation", "test", "trainval")}
    lengths = {part: len(one.labels) for part, one in parts.items()}
    assert lengths == {"train": 12, "validation": 4, "test": 4, "trainval": 16}
    seen = [set(parts[part].files) for part in ("train", "validation", "test")]
    assert len(set.union(*seen)) == 20
    for path in sorted(root.rglob("*.png"), reverse=True):
        new = moved / path.parent.name / f"other name {path.stem}.png"
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


def exif(path):
    picture = painted(RED, (60, 20))
    tags = picture.getexif()
    tags[0x0112] = 6
    picture.save(path.with_suffix(".jpg"), exif=tags)


def animation(path):
    frames = [painted(RED, seed=5), painted(GREEN, seed=6)]
    frames[0].save(path.with_suffix(".gif"), save_all=True, append_images=frames[1:])


def sixteen_bits(path):
    values = np.random.default_rng(0).integers(0, 65535, (30, 30)).astype(np.uint16)
    Image.fromarray(values).save(path)


CLEAR = Image.new("RGBA", (30, 30), (9, 9, 9, 99))
ODD = {
    "grey: all three channels alike": lambda path: painted(RED).convert("L").save(path),
    "16 bits: scaled to 8": sixteen_bits,
    "CMYK: converted": lambda path: painted(RED).convert("CMYK").save(path.with_suffix(".jpg")),
    "transparent parts: on white": lambda path: CLEAR.save(path),
    "rotated by its camera: turned upright": exif,
    "an animation: its first frame": animation,
    "smaller than the model's images: enlarged": lambda path: painted(RED, (12, 12)).save(path),
    "left out: too small": lambda path: painted(RED, (3, 30)).save(path),
    "left out: cannot be read as a picture": lambda path: path.write_bytes(b"\x89PNG no"),
    "left out: copies of another file": lambda path: painted(RED, seed=0).save(path),
    "left out: the same file lies in two classes": lambda path: painted(GREEN, seed=0).save(path),
    "left out: not the ending of a picture": lambda path: path.with_suffix(".txt").write_text("x"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_has_its_sentence(tmp_path, kind):
    root = folder(tmp_path)
    ODD[kind](root / "red" / "odd.png")
    notes = [note for part in ("trainval", "test") for note in read(root, part).notes]
    assert any(kind in note and "odd" in note for note in notes), notes
    assert all(kind in note for note in notes)


def test_a_truncated_picture_is_left_out_and_the_others_stay(tmp_path):
    root = folder(tmp_path)
    whole = (root / "red" / "3.png").read_bytes()
    (root / "red" / "3.png").write_bytes(whole[: len(whole) // 2])
    parts = [read(root, part) for part in ("trainval", "test")]
    assert sum(len(part.labels) for part in parts) == 19
    assert ["3.png" in note for part in parts for note in part.notes] == [True]


def test_pixels_are_those_of_the_middle_upright_and_in_the_right_colours(tmp_path):
    strip = Image.new("RGB", (90, 30), "black")
    strip.paste((250, 0, 0), (30, 0, 60, 15))  # the middle third: red above, black below
    strip.save(tmp_path / "strip.png")
    pixels = read_picture(tmp_path / "strip.png", 30).pixels
    assert pixels[0, 2:13].float().mean() > 245
    assert pixels[0, 17:].float().mean() < 5
    assert pixels[1:].float().mean() < 5
    tags = strip.getexif()
    tags[0x0112] = 3  # upside down
    strip.save(tmp_path / "turned.png", exif=tags)
    turned = read_picture(tmp_path / "turned.png", 30).pixels
    assert torch.equal(turned, pixels.flip(1, 2))
    values = np.full((30, 30), 32768, dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert (read_picture(tmp_path / "deep.png", 30, 1).pixels == 128).all()


def test_what_is_no_folder_of_classes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is none"):
        read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds no folder"):
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
    (tmp_path / "x.png").write_bytes(b"no")
    with pytest.raises(PictureError, match="cannot be read"):
        read_picture(tmp_path / "x.png", 16)
