"""A run on one's own pictures: trained, resumed, started from other weights, asked about files."""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from hashlib import blake2b
from types import SimpleNamespace

import pytest
import timm
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_cli import output, run, settings_in, weights
from torch.nn.functional import cross_entropy

from tests.package.painting import GREEN, RED, VIOLET, fill, painted
from vitbook import training
from vitbook.command import export, own_pictures, results
from vitbook.command import train as train_module
from vitbook.command.attention import attention_figure
from vitbook.command.attention_page import opening
from vitbook.command.recipes import load_part, loss_function, settings_of
from vitbook.command.runs import stored_run
from vitbook.data import normalize, room
from vitbook.data.folder import list_folder
from vitbook.explorer.photograph import Look
from vitbook.inspection import attention_maps
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import save_weights

pytestmark = pytest.mark.slow  # models are trained

SIZES = {"embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "patch_size": 8}
SMALL = ["--patch-size", "8", "--embed-dim", "16", "--depth", "2", "--num-heads", "2"]
SMALL += ["--mlp-ratio", "2", "--image-size", "32", "--batch-size", "8", "--no-progress"]
SMALL += ["--warmup-steps", "4"]
COLOURS = {"green": GREEN, "red": RED, "violet": VIOLET}
GREY = (128, 128, 128)
TINY = "vit_tiny_patch16_224"


def refusal(capsys, *words):
    """What a command says that does not work, whatever it printed before."""
    assert run(*words) == 2
    return capsys.readouterr().err


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def trains(root, *words):
    """The words of a short training on a folder."""
    return ["train", "--data", "folder", "--root", root, *SMALL, "--steps", 1, *words]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for name, colour in COLOURS.items():
        fill(root / name, colour, range(15))
    (root / "red" / "broken.png").write_bytes(b"\x89PNG")
    return root


@pytest.fixture(scope="module")
def learn(photos):
    """The words of a training on the photographs."""
    return ["train", "--data", "folder", "--root", photos]


@pytest.fixture(scope="module")
def trained(learn, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "photos"
    assert run(*learn, *SMALL, "--epochs", 12, "--out", out) == 0
    return out


def test_a_folder_is_learned_and_its_run_knows_names_size_and_statistics(trained, photos, capsys):
    settings = settings_in(trained)
    assert settings["classes"] == list(COLOURS)
    assert settings["image_size"] == 32
    assert settings["mean"] == pytest.approx([0.48, 0.35, 0.35], abs=0.02)
    assert re.search(r"([89]) of \1 right", output(capsys, "evaluate", trained))


def test_a_run_lends_its_sizes_to_a_training_and_to_maps_and_a_small_folder_has_small_batches(
    trained, photos, learn, tmp_path, capsys
):
    words = [*learn, "--weights", trained, "--steps", 1]
    words += ["--head-epochs", 0, "--no-progress"]
    printed = output(capsys, *words, "--out", tmp_path / "run")
    assert "images of 3 x 32 x 32 to learn from" in printed
    assert "1 steps of 9 images" in printed
    assert "1 file, left out: cannot be read as a picture: red/broken.png." in printed
    theirs, ours = settings_in(trained), settings_in(tmp_path / "run")
    for name in (*SIZES, "image_size", "architecture", "model", "positions"):
        assert ours[name] == theirs[name]
    said = output(capsys, *words, "--image-size", 16, "--out", tmp_path / "smaller")
    assert "positions resampled from 4 x 4 to 2 x 2" in said
    assert run(*words, "--model", "tiny", "--out", tmp_path / "tiny") == 2  # said, so it counts
    (tmp_path / "own.py").write_text(
        "from vitbook.models.vit import VisionTransformer\n"
        f"SIZES = {SIZES | {'image_size': 32, 'in_channels': 3, 'num_classes': 3}}\n"
        "def build(): return VisionTransformer(**SIZES, position_std=0.5)\n"
    )
    page = tmp_path / "look.html"
    words = ["--model", f"{tmp_path}/own.py:build", "--weights", trained, "--no-audit"]
    assert run("attention", photos / "red" / "1.png", *words, "--out", page) == 0
    mean = ", ".join(f"{x:.4g}" for x in theirs["mean"])
    assert f"32 pixels, mean {mean}, std " in page.read_text()


def test_where_timm_cannot_download_train_offers_a_file_only(
    monkeypatch, photos, learn, tmp_path, capsys
):
    def create_model(name, pretrained=False, **options):
        if pretrained:
            raise OSError("no network, " + "retry " * 60)
        return real(name, pretrained=False, **options)

    real = timm.create_model
    monkeypatch.setattr(timm, "create_model", create_model)
    said = refusal(capsys, *learn, "--timm", TINY, "--out", tmp_path / "x")
    assert said.endswith("retry ...); where its weights cannot be downloaded, say --weights FILE\n")
    page = ["attention", photos / "red" / "1.png", "--timm", TINY, "--out", tmp_path / "a.html"]
    assert "or --random to see it untrained" in refusal(capsys, *page)


def test_a_hub_that_is_silent_is_asked_once(monkeypatch, tmp_path, photos, capsys):
    hub = "http://127.0.0.1:9"  # nobody listens there
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub)
    words = ["attention", photos / "red" / "1.png", "--timm", TINY, "--out", tmp_path / "a.html"]
    began = time.monotonic()
    told = refusal(capsys, *words)
    assert time.monotonic() - began < 5
    assert f"timm cannot make {TINY} ({hub} does not answer: " in told
    assert told.count("\n") == 1


def test_predict_names_the_classes_of_files_and_tells_of_those_it_cannot_read(
    trained, tmp_path, capsys
):
    for name, colour in COLOURS.items():
        painted(colour, seed=99).save(tmp_path / f"{name}.jpg")
    files = [tmp_path / f"{name}.jpg" for name in COLOURS]
    lines = output(capsys, "predict", trained, *files, "--top", 2).splitlines()
    for name, file, line in zip(COLOURS, files, lines, strict=True):
        assert line.startswith(f"{file}: {name} ")
        assert line.count("%") == 2
    (tmp_path / "no.jpg").write_bytes(b"no")
    assert run("predict", trained, tmp_path / "no.jpg", tmp_path / "none.jpg", files[0]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{files[0]}: green")
    assert "no.jpg cannot be read as a picture" in printed.err
    assert "there is no picture file" in printed.err
    os.mkfifo(tmp_path / "pipe.png")
    said = refusal(capsys, "predict", trained, tmp_path / "pipe.png", "https://x.y/z.jpg")
    assert "pipe.png is not a file but a pipe or a device; https://x.y/z.jpg is a web addr" in said


def test_a_run_whose_pictures_moved_or_that_was_stopped_early_names_the_way_on(
    trained, tmp_path, capsys
):
    out = shutil.copytree(trained, tmp_path / "run")
    said = refusal(capsys, "evaluate", out, "--root", tmp_path / "gone")
    assert "gone is none; if they were moved, say where they are (--root" in said
    (out / "checkpoint.safetensors").unlink()
    said = refusal(capsys, "evaluate", out)
    assert f"before the first; train --resume --out {out} goes on" in said


def test_a_part_that_was_moved_away_is_asked_for_and_tested_where_it_is(tmp_path, capsys):
    root, out, away = tmp_path / "in", tmp_path / "run", tmp_path / "away"
    for name, colour in (("green", GREEN), ("red", RED)):
        fill(root / "train" / name, colour, range(8))
        fill(root / "test" / name, colour, range(8, 12))
    assert run(*trains(root, "--out", out)) == 0
    (root / "test").rename(away)
    told = f"{root} holds train, no more test: put back what was moved, or name where it is"
    assert told in refusal(capsys, "evaluate", out)
    said = refusal(capsys, "evaluate", out, "--root", root / "train")
    assert re.search(
        r"no picture for the part test in green, red. What was found: 16 files, elsewhere", said
    )
    assert re.search("[0-8] of 8 right", output(capsys, "evaluate", out, "--root", away))


def test_a_run_on_pictures_is_drawn(trained, photos, tmp_path, capsys):
    picture = photos / "red" / "3.png"
    said = output(capsys, "attention", picture, "--run", trained, "--out", tmp_path / "look.png")
    assert "answer red with probability" in said
    page = ["attention", 0, "--run", trained, "--part", "train", "--out", tmp_path / "look.html"]
    assert run(*page, "--target", "violet") == 0
    printed = capsys.readouterr().out
    assert "train image 0 (green/0.png), label green" in printed
    named = re.search(r"Class 2 is violet, class (\d) is (\w+)\.", printed)
    assert list(COLOURS)[int(named[1])] == named[2]
    assert named[0] in (tmp_path / "look.html").read_text()
    words = "--target must be the number of a class or one of green, red, violet, got blue"
    assert words in refusal(capsys, *page, "--target", "blue")


def test_a_class_that_is_called_by_a_number_is_asked_for_by_its_name(tmp_path, capsys):
    for name, colour in zip("123", COLOURS.values(), strict=True):
        fill(tmp_path / "photos" / name, colour, range(8))
    assert run(*trains(tmp_path / "photos"), "--out", tmp_path / "run") == 0
    page = ["attention", 0, "--run", tmp_path / "run", "--out", tmp_path / "look.html"]
    for asked, number, name in (("2", 1, "2"), ("0", 0, "1")):
        capsys.readouterr()
        assert run(*page, "--target", asked) == 0
        assert f"Class {number} is {name}" in capsys.readouterr().out
    assert "a class or one of 1, 2, 3, got -1" in refusal(capsys, *page, "--target=-1")


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """A run that answers one class of two whatever it sees: half of its answers are wrong."""
    root, out = tmp_path_factory.mktemp("hard"), tmp_path_factory.mktemp("run") / "hard"
    fill(root / "a<b", GREY, range(15))
    fill(root / "other", GREY, range(50, 65))
    assert run(*trains(root, "--steps", 2, "--out", out)) == 0
    return out


def test_results_show_who_is_taken_for_whom_and_the_worst_mistakes(hard, tmp_path, capsys):
    said = output(capsys, "results", hard, "--out", tmp_path / "new" / "page.html")
    right, n = map(int, re.search(r"(\d+) of (\d+) right", said).groups())
    page = (tmp_path / "new" / "page.html").read_text()
    assert f"<td>{right} of {n}</td>" in page
    assert page.count("<li>") == n - right > 0
    assert page.count("<img") == 2 * (n - right)
    assert "a<b" not in page
    assert "a&lt;b" in page
    shares = [float(x) for x in re.findall(r"Answer [^<]*?\((\d+)\xa0%\), truth", page)]
    assert shares == sorted(shares, reverse=True)
    assert "http" not in page.replace("http-equiv", "")
    said = refusal(capsys, "results", hard, "--out", tmp_path / "page.txt")
    assert "--out must end in .html" in said


def test_results_of_a_model_without_attention_say_why_no_map_is_drawn(tmp_path):
    words = ["train", "--architecture", "mlp-mixer", "--steps", 2, "--batch-size", 8]
    assert run(*words, "--no-progress", "--out", tmp_path / "mixer") == 0
    assert run("results", tmp_path / "mixer", "--out", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert "No maps are drawn" in page
    assert page.count("<img") == 12
    assert "test image" in page


def test_an_exported_run_gives_its_logits_without_this_package(trained, tmp_path, capsys):
    out = tmp_path / "new" / "photos.pt2"
    printed = output(capsys, "export", trained, "--out", out)
    assert "pixels (B, 3, 32, 32) in 0 to 1 -> logits (B, 3)" in printed
    assert "The logits: green, red, violet." in printed
    names = {export.CLASSES: ""}
    torch.export.load(out, extra_files=names)
    assert json.loads(names[export.CLASSES]) == list(COLOURS)
    assert "onnxscript" in printed
    code = f"""
import sys, torch
program = torch.export.load({str(out)!r}).module()
green = torch.tensor([20, 200, 40]).view(1, 3, 1, 1) / 255
print(program(green.expand(3, 3, 32, 32)).argmax(dim=1).tolist())
sys.exit(any(name.startswith("vitbook") for name in sys.modules))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[0, 0, 0]"
    said = refusal(capsys, "export", trained, "--out", tmp_path / "photos.onnx")
    assert "--out must end in .pt2" in said


def test_an_export_that_gives_other_logits_is_not_written(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export, "SAME", -1.0)
    assert "was not written" in refusal(capsys, "export", trained, "--out", tmp_path / "photos.pt2")
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_run_lends_what_its_folder_does(trained, learn, tmp_path, capsys):
    four, words = tmp_path / "four", [*learn, "--steps", 1, "--head-epochs", 1, "--no-progress"]
    assert run(*learn, *SMALL, "--num-heads", 4, "--positions", "rotary", "--out", four) == 0
    for n, place in enumerate((four / "checkpoint.safetensors", four)):
        assert run(*words, "--weights", place, "--out", tmp_path / f"run{n}") == 0
        head = tmp_path / f"run{n}" / "head"
        assert run(*words, "--weights", head, "--out", tmp_path / f"of_head{n}") == 0
        for out in (f"run{n}", f"of_head{n}"):
            settings = settings_in(tmp_path / out)
            assert (settings["num_heads"], settings["positions"]) == (4, "rotary")
    printed = capsys.readouterr().out
    assert "no file says how many heads" not in printed
    assert "whose folder it is not in" not in printed
    copied = shutil.copy(four / "checkpoint.safetensors", tmp_path / "copied.safetensors")
    assert run(*words, "--weights", copied, "--out", tmp_path / "alone") == 0
    assert settings_in(tmp_path / "alone")["num_heads"] == 4
    assert "it may have learned from what is tested here" in capsys.readouterr().out
    for place in (four, tmp_path / "run0" / "head", four / "checkpoint.safetensors", copied):
        for other, told in (
            (["--num-heads", 2], "--num-heads was 4, now 2"),
            (["--model", "medium", "--num-heads", 8], "--num-heads was 4, now 8"),
            (["--positions", "none"], "positions was rotary, now none"),
            (["--position-base", 7], "--position-base was 100.0, now 7.0"),
            (["--post-norm"], "norm_first was True, now False"),
        ):
            said = refusal(capsys, *words, "--weights", place, *other, "--out", tmp_path / "other")
            assert f"the weights of {place} belong to another model: " in said
            assert told in said
    assert not (tmp_path / "other").exists()
    words += ["--weights", four, "--out", tmp_path / "same"]
    assert "belong to another model" not in refusal(capsys, *words, "--timm", "test_vit")
    assert run(*words, "--position-base", 100, "--num-heads", 4, "--dropout", 0.1) == 0


def test_a_folder_with_a_checkpoint_alone_lends_what_the_checkpoint_says(
    trained, learn, photos, tmp_path, capsys
):
    bare, words = tmp_path / "bare", [*learn, "--steps", 1, "--head-epochs", 0, "--no-progress"]
    bare.mkdir()
    shutil.copy(trained / "checkpoint.safetensors", bare)
    words += ["--weights", bare, "--out", tmp_path / "run"]
    for other, told in (
        (["--positions", "none"], "belong to another model: positions was learned, now none"),
        (["--depth", 3], "leave out the options that say otherwise"),
        (["--pool", "mean"], "leave out the options that say otherwise"),
        (["--embed-dim", 64], "leave out the options that say otherwise"),
        (["--timm", "test_vit"], "leave out the options that say otherwise"),
    ):
        assert run(*words, *other) == 2
        said = capsys.readouterr().err
        assert told in said
        assert "--timm NAME" not in said
    assert run(*words) == 0
    theirs, ours = settings_in(trained), settings_in(tmp_path / "run")
    for name in (*SIZES, "image_size", "mean", "std"):
        assert ours[name] == theirs[name]
    assert "are those of the run of" in capsys.readouterr().out
    (tmp_path / "own.py").write_text(
        "from vitbook.models.vit import VisionTransformer\n"
        f"SIZES = {SIZES | {'image_size': 32, 'in_channels': 3, 'num_classes': 3}}\n"
        "def build(): return VisionTransformer(**SIZES)\n"
    )
    for place in (bare, bare / "checkpoint.safetensors"):
        words = ["--model", f"{tmp_path}/own.py:build", "--weights", place, "--no-audit"]
        words += ["--out", tmp_path / "look.html"]
        assert run("attention", photos / "red" / "1.png", *words) == 0


def test_normalization_is_that_of_the_weights_where_it_is_known(trained, learn, tmp_path, capsys):
    other = tmp_path / "pictures"
    for n, name in enumerate(COLOURS):
        fill(other / name, (30, 30, 30 + 90 * n), range(8))
    words = ["train", "--data", "folder", "--root", other, "--steps", 1, "--no-progress"]
    words += ["--head-epochs", 0]
    assert run(*words, "--weights", trained, "--out", tmp_path / "run") == 0
    ours, theirs = settings_in(tmp_path / "run"), settings_in(trained)
    assert (ours["mean"], ours["std"]) == (theirs["mean"], theirs["std"])
    said = f"mean and std of the channels are those of the run of {trained}"
    assert said in capsys.readouterr().out

    save_file(timm.create_model("test_vit", num_classes=2).state_dict(), tmp_path / "x.safetensors")
    words += ["--timm", "test_vit", "--batch-size", 4, "--weights", tmp_path / "x.safetensors"]
    look = ["attention", other / "red" / "1.png", "--no-audit", "--out", tmp_path / "look.html"]
    look += ["--timm", "test_vit", "--weights", tmp_path / "x.safetensors"]
    assert "those of test_vit are taken" in output(capsys, *words, "--out", tmp_path / "unsaid")
    config = {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
    config = {"architecture": "test_vit2.x", "pretrained_cfg": config}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert run(*words, "--out", tmp_path / "said") == 0
    assert settings_in(tmp_path / "said")["mean"] == [0.1, 0.2, 0.3]
    printed = capsys.readouterr().out
    assert "std [0.4, 0.5, 0.6]: taken" in printed
    assert "says test_vit2.x, and not test_vit: is this its kind?" in printed
    assert "says test_vit2.x, and not test_vit" in output(capsys, *look)
    page = (tmp_path / "look.html").read_text()
    assert "the config.json beside x.safetensors says test_vit2.x, and not test_vit" in page
    assert "mean 0.1, 0.2, 0.3, std 0.4, 0.5, 0.6" in page


def test_heads_that_are_told_are_built_and_those_of_timm_are_not_told(learn, tmp_path, capsys):
    torch.manual_seed(5)
    wide = SIZES | {"num_heads": 8}
    before = VisionTransformer(image_size=32, in_channels=3, num_classes=3, **wide)
    save_weights(before, tmp_path / "x.safetensors", metadata={"num_heads": "8"})
    at = SMALL.index("--num-heads")
    words = [*learn, *SMALL[:at], *SMALL[at + 2 :], "--steps", 1, "--head-epochs", 0]
    assert run(*words, "--weights", tmp_path / "x.safetensors", "--out", tmp_path / "run") == 0
    assert settings_in(tmp_path / "run")["num_heads"] == 8
    printed = capsys.readouterr().out
    assert f"num_heads 8, as is said with {tmp_path / 'x.safetensors'}" in printed
    assert "no file says how many heads" not in printed
    small = timm.create_model("test_vit", num_classes=2, img_size=32)
    torch.save(small.state_dict(), tmp_path / "x.pth")
    words = [*learn, "--steps", 1, "--head-epochs", 0, "--no-progress", "--batch-size", 4]
    words += ["--image-size", 32, "--out"]
    of_timm = ["--timm", "test_vit", "--weights", tmp_path / "x.pth"]
    assert run(*words, tmp_path / "timm", *of_timm) == 0
    ours = ["--architecture", "vit", "--patch-size", 16, "--embed-dim", 64, "--depth", 6]
    ours += ["--num-heads", 2, "--mlp-ratio", 3, "--weights", tmp_path / "timm"]
    said = output(capsys, *words, tmp_path / "ours", *ours)
    assert "no file says how many heads they had: 2" in said


def test_a_picture_that_is_learned_from_is_not_tested_under_another_name(tmp_path, capsys):
    root, out = tmp_path / "photos", tmp_path / "run"
    for name, first in (("cat", 0), ("dog", 100)):
        fill(root / "train" / name, GREY, range(first, first + 9))
        fill(root / "test" / name, GREY, range(first, first + 3), "bmp")  # the first three
    words = trains(root, "--out", out)
    painted(GREY, (99, 40), seed=0).save(root / "train/cat/long.png")
    painted(GREY, (99, 40), seed=0).save(root / "test/cat/long.bmp")
    said = refusal(capsys, *words)
    assert "all pictures of cat, dog in the part test" in said
    assert "1 file, more than half of it is cut off: its middle is taken: test/cat/lo" in said
    (root / "test/cat/long.bmp").unlink()
    fill(root / "test" / "cat", GREY, [50], "bmp")
    assert "6 files, left out: equal to one of another part, pixel by pixel" in output(
        capsys, *words
    )
    settings = stored_run(out)["settings"]
    assert own_pictures.read_pictures(settings, "test", root).files == ("test/cat/50.bmp",)


@pytest.mark.parametrize(("learn_from", "part"), [("trainval", "test"), ("train", "validation")])
def test_what_training_left_out_has_no_part_in_any_command(tmp_path, capsys, learn_from, part):
    root, out = tmp_path / "photos", tmp_path / "run"
    for name, first in (("cat", 0), ("dog", 100)):
        fill(root / name, GREY, range(first, first + 20))
    fill(root / "dog", GREY, range(100, 110), "bmp")
    said = output(capsys, *trains(root, "--out", out, "--learn-from", learn_from))
    told = re.search(r"\d+ files?, left out: equal to one of another part, .*", said)[0]
    judged = re.search(r"to test\): .*", said)[0]
    judged = sum(int(n) for n in re.findall(r"\d+ \+ (\d+)", judged))
    for words in (
        ["evaluate", out, "--part", part],
        ["results", out, "--out", tmp_path / "x.html"],
    ):
        printed = output(capsys, *words)
        assert told in printed
        assert "kept in the part" not in printed
        assert words[0] == "results" or f" of {judged} right" in printed
    printed = output(capsys, "train", "--resume", "--out", out)
    assert "already finished" in printed
    assert "others than before" not in printed


def test_what_could_not_be_read_is_new_once_it_can(photos, trained, tmp_path, capsys):
    root = shutil.copytree(photos, tmp_path / "in")
    assert "new since" not in output(capsys, "evaluate", trained, "--root", root)
    painted(RED, seed=77).save(root / "red" / "broken.png")
    said = output(capsys, "evaluate", trained, "--root", root)
    assert "1 file, new since the training: red/broken.png" in said


def test_of_two_trainings_at_once_in_one_folder_one_leaves_no_trace(
    learn, tmp_path, monkeypatch, capsys
):
    words = [*learn, *SMALL, "--epochs", 1, "--out", tmp_path / "run"]
    real, ends = train_module.write_run, {}

    def while_another_begins(*arguments):
        if not ends:
            ends[1] = None
            ends[1] = run(*words, "--seed", 1)
        return real(*arguments)

    monkeypatch.setattr(train_module, "write_run", while_another_begins)
    ends[0] = run(*words, "--seed", 0)
    assert sorted(ends.values()) == [0, 2]
    assert "already holds a run; go on with --resume" in capsys.readouterr().err
    assert ends[settings_in(tmp_path / "run")["seed"]] == 0


def test_in_the_epochs_of_the_head_a_folder_is_taken(learn, trained, tmp_path, monkeypatch, capsys):
    words = [*learn, *SMALL, "--epochs", 1, "--weights", trained, "--out", tmp_path / "run"]
    real, said = training.train, []

    def while_another_begins(*arguments, **options):
        if not said:
            said.append((tmp_path / "run" / "run.json").read_bytes())
            assert run(*words, "--seed", 1) == 2
        return real(*arguments, **options)

    monkeypatch.setattr(training, "train", while_another_begins)
    assert run(*words) == 0
    assert "already holds a run" in capsys.readouterr().err
    assert (tmp_path / "run" / "run.json").read_bytes() == said[0]


def test_it_starts_from_weights_of_another_run_with_the_head_first(learn, tmp_path, capsys):
    torch.manual_seed(5)
    before = VisionTransformer(image_size=16, in_channels=3, num_classes=7, **SIZES)
    save_weights(before, tmp_path / "start.safetensors")
    words = [*learn, *SMALL, "--out", tmp_path / "run"]
    words += ["--weights", tmp_path / "start.safetensors", "--head-epochs", 1, "--epochs", 1]
    printed = output(capsys, *words)
    assert "positions resampled from 2 x 2 to 4 x 4" in printed
    assert "start.safetensors does not say what it has learned from" in printed
    assert "those of the pictures here are taken" in printed
    assert printed.index("first the head alone") < printed.index("now all weights")
    head = weights(tmp_path / "run" / "head")
    whole = weights(tmp_path / "run")
    name = "encoder.blocks.0.mlp.fc1.weight"
    assert torch.equal(head[f"model.{name}"], before.state_dict()[name])
    assert not torch.equal(whole[f"model.{name}"], before.state_dict()[name])
    assert head["model.head.weight"].shape == (3, 16)
    assert head["model.head.weight"].abs().max() > 0


def test_a_run_from_weights_with_an_empty_block_is_tested_with_a_word_and_a_damaged_one_is_not(
    trained, learn, tmp_path, capsys
):
    state = weights(trained)
    state = {name.removeprefix("model."): x for name, x in state.items() if "model." in name}
    pruned = {name: x * ("blocks.1" not in name) for name, x in state.items()}
    save_file(pruned, tmp_path / "pruned.safetensors")
    words = [*learn, *SMALL, "--weights", tmp_path / "pruned.safetensors", "--head-epochs", 0]
    assert run(*words, "--epochs", 1, "--out", tmp_path / "run") == 0
    capsys.readouterr()
    assert run("evaluate", tmp_path / "run") == 0
    said = capsys.readouterr().err
    assert re.search(r"nothing but zeros in encoder.blocks.1\S* and 3 more: were they all", said)
    path = tmp_path / "run" / "checkpoint.safetensors"
    head = weights(tmp_path / "run")["model.head.weight"].numpy().tobytes()
    path.write_bytes(path.read_bytes().replace(head, head[:-4] + bytes(4)))
    said = refusal(capsys, "evaluate", tmp_path / "run")
    assert "checkpoint.safetensors is damaged: its numbers" in said


def test_a_resumed_run_ends_in_the_weights_of_one_that_was_not_stopped(
    trained, learn, tmp_path, monkeypatch, capsys
):
    words = [*learn, *SMALL, "--epochs", 2, "--weights", trained, "--head-epochs", 1]
    assert run(*words, "--out", tmp_path / "whole") == 0
    real, calls = training.train, []

    def stops(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(training, "train", stops)
    assert run(*words, "--out", tmp_path / "stopped") == 130
    again = ["train", "--resume", "--out", tmp_path / "stopped", "--no-progress"]
    assert run(*again) == 0
    assert "already finished" not in capsys.readouterr().out
    assert "stopped is already finished: nothing was left to do" in output(capsys, *again)
    whole, stopped = (weights(tmp_path / name) for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)


def test_a_resumed_run_says_what_is_other_than_before(photos, tmp_path, monkeypatch, capsys):
    root, out = shutil.copytree(photos, tmp_path / "in"), tmp_path / "run"
    stop = [KeyboardInterrupt()]
    real = training.RunFolder.save

    def save(self, step, seconds):
        real(self, step, seconds)
        if stop:
            raise stop.pop()

    monkeypatch.setattr(training.RunFolder, "save", save)
    words = ["train", "--data", "folder", "--root", root, *SMALL, "--epochs", 2, "--out", out]
    assert run(*words) == 130
    parts = json.loads((out / "parts.json").read_text())

    def moved(part, to):
        name = next(name for name, of in parts.items() if of == part and name.startswith("red/1"))
        return (root / name).rename(root / to), root / name

    for to, words in (
        ("red/9z.png", "now the same in another order: were files renamed?"),
        ("green/9z.png", "now the same with other labels"),
    ):
        new, old = moved("train", to)
        assert words in refusal(capsys, "train", "--resume", "--out", out)
        new.rename(old)
    moved("test", "green/9z.png")
    said = output(capsys, "train", "--resume", "--out", out, "--no-progress")
    assert "The pictures of the part test or their classes are others than" in said
    assert "are others than before" not in output(capsys, "train", "--resume", "--out", out)


def test_a_model_of_timm_is_fine_tuned_evaluated_and_asked(
    photos, learn, tmp_path, monkeypatch, capsys
):
    real = timm.create_model

    def create_model(name, pretrained=False, **options):
        model = real(name, pretrained=False, embed_dim=32, depth=2, num_heads=2, **options)
        if pretrained:
            torch.nn.init.constant_(model.cls_token, 7.0)
        return model

    monkeypatch.setattr(timm, "create_model", create_model)
    words = [*learn, "--timm", TINY, "--batch-size", 12]
    words += ["--head-epochs", 1, "--epochs", 1, "--no-progress", "--out", tmp_path / "run"]
    assert f"starts from timm's weights of {TINY}" in output(capsys, *words)
    head = weights(tmp_path / "run" / "head")
    assert (head["model.cls_token"] == 7).all()
    settings = settings_in(tmp_path / "run")
    assert settings["image_size"] == 224
    assert settings["mean"] == [0.5, 0.5, 0.5]
    assert run("evaluate", tmp_path / "run") == 0
    assert "1.png: " in output(capsys, "predict", tmp_path / "run", photos / "red" / "1.png")
    looks = ["attention", photos / "red" / "1.png", "--run", tmp_path / "run"]
    looks += ["--out", tmp_path / "a.png", "--query", "13,13"]
    for more, what in (([], "attention"), (["--rollout"], "rollout")):
        assert f"{what} of the patch at 13,13" in output(capsys, *looks, *more)
    assert "the grid of 14 x 14" in refusal(capsys, *looks, "--query", "14,0")


TWO_HEADS = {
    "deit_tiny_distilled_patch16_224": {"head", "head_dist"},
    "levit_128s": {"head", "head_dist"},
    "pit_ti_distilled_224": {"head", "head_dist"},
    "crossvit_tiny_240": {"head"},  # a list of two
}


@pytest.mark.parametrize("name", TWO_HEADS)
def test_a_model_with_two_heads_is_trained_from_both(name, tmp_path):
    model = timm.create_model(name, num_classes=3)
    head = {id(parameter) for parameter in own_pictures.head_of(model).parameters()}
    found = {n.split(".")[0] for n, parameter in model.named_parameters() if id(parameter) in head}
    assert found == TWO_HEADS[name]
    file = tmp_path / "theirs.safetensors"
    save_file(timm.create_model(name, num_classes=7).state_dict(), file)
    own_pictures.start_from(model, {"weights": file, "timm": name})
    theirs = load_file(file)
    for key, tensor in model.state_dict().items():
        alike = tensor.shape == theirs[key].shape and torch.equal(tensor, theirs[key])
        assert alike or key.split(".")[0] in found, key


def test_what_does_not_fit_is_refused_with_a_sentence(
    photos, trained, tmp_path, capsys, monkeypatch
):
    train = ["train", "--data", "folder", "--out", tmp_path / "run", "--no-progress"]
    fill(tmp_path / "two" / "cat", GREEN, range(5))
    fill(tmp_path / "two" / "dog", RED, range(5))
    for words, expected in (
        (train, "--root DIR"),
        ([*train, "--root", photos, "--image-size", 30], "--patch-size must divide"),
        ([*train, "--root", photos, "--weights", tmp_path / "no.safetensors"], "there is no"),
        ([*train, "--root", photos, "--timm", "tst_vit"], "nearest that it has: test_vit, "),
        (["train", "--image-size", 30, "--out", tmp_path / "x"], "only data 'folder' has such"),
        (["predict", trained, photos], "is a folder; name the picture files in it"),
        (["evaluate", trained, "--root", tmp_path / "two"], "the run learned green, red, violet"),
    ):
        assert run(*words) == 2, words
        assert expected in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()
    monkeypatch.setitem(sys.modules, "timm", None)
    assert "pip install timm" in refusal(capsys, *train, "--root", photos, "--timm", TINY)


def test_the_warmup_of_a_small_folder_leaves_most_updates_to_the_full_rate(learn, tmp_path, capsys):
    words = [*learn, *SMALL[:-2]]  # no word of the warm-up
    assert run(*words, "--epochs", 10, "--out", tmp_path / "run") == 0
    assert settings_in(tmp_path / "run")["warmup_steps"] == 8  # a fifth of 10 epochs of 36 // 8

    weights = tmp_path / "run" / "checkpoint.safetensors"
    words = [*learn, *SMALL, "--steps", 2]
    words += ["--weights", weights, "--head-epochs", 3]
    assert run(*words, "--warmup-steps", 100, "--out", tmp_path / "own") == 0
    settings = settings_in(tmp_path / "own")
    assert settings["warmup_steps"] == 100  # what was said is kept
    assert "the rate is not reached: --warmup-steps 100 of " in capsys.readouterr().out
    head = (tmp_path / "own" / "head" / "metrics.csv").read_text().splitlines()[1:]
    rates = [float(line.split(",")[3]) for line in head]
    assert rates.index(max(rates)) == 1  # a fifth of its own 12


def labels_by_picture(settings, part, root):
    images, labels = load_part(settings, part, str(root))
    return {
        hash(image.numpy().tobytes()): int(label)
        for image, label in zip(images.to("cpu"), labels, strict=True)
    }


def test_a_run_is_never_tested_on_what_it_learned_from_after_labels_were_mended(tmp_path, capsys):
    root, out = tmp_path / "photos", tmp_path / "run"
    fill(root / "cat", GREY, range(40))
    fill(root / "dog", GREY, range(100, 140))
    words = trains(root, "--out", out)
    said = output(capsys, *words)
    assert "2 classes (pictures to learn from + to test): cat 32 + 8, dog 32 + 8" in said
    assert "parts" not in settings_in(out)
    settings = stored_run(out)["settings"]
    learned = labels_by_picture(settings, "trainval", root)
    tested = labels_by_picture(settings, "test", root)
    for path in sorted((root / "cat").iterdir())[:9]:
        path.rename(root / "dog" / path.name)
    for path in sorted((root / "dog").iterdir())[-5:]:
        path.unlink()
    now = labels_by_picture(settings, "test", root)
    assert now.keys() <= tested.keys()
    assert not now.keys() & learned.keys()
    assert now != {picture: tested[picture] for picture in now}, "no label of the test was mended"
    free = {name: value for name, value in settings.items() if name != "parts"}
    assert labels_by_picture(free, "test", root).keys() & learned.keys(), "the folder alone leaks"
    for words in (["evaluate", out], ["results", out, "--out", tmp_path / "page.html"]):
        printed = output(capsys, *words)
        assert "kept in the part that the training had it in" in printed
        assert f"of {len(now)} right" in printed
    assert "it is no test" in output(capsys, "evaluate", out, "--part", "train")
    (out / "parts.json").unlink()
    said = refusal(capsys, "evaluate", out)
    assert "parts.json is missing: it says which pictures the run" in said
    with safe_open(out / "checkpoint.safetensors", "pt") as file:
        told = file.metadata()
    notes = json.loads(told["notes"])
    del notes["settings"]["parts"]  # as older runs are
    save_file(weights(out), out / "checkpoint.safetensors", told | {"notes": json.dumps(notes)})
    assert "a time when parts were not kept" in output(capsys, "evaluate", out)


def test_what_lent_weights_learned_is_never_a_test(photos, trained, tmp_path, capsys):
    known = json.loads((trained / "parts.json").read_text())
    root = shutil.copytree(photos, tmp_path / "in")
    for name, colour in COLOURS.items():
        fill(root / name, colour, range(30, 50))  # a folder alone would part all of them anew
    words = ["train", "--data", "folder", "--root", root, "--weights", trained, *SMALL[-3:]]
    words += ["--batch-size", 8, "--head-epochs", 0, "--steps", 1, "--learn-from", "train"]
    words += ["--image-size", 32]
    said = output(capsys, *words, "--out", tmp_path / "run")
    assert "lent it weights, has learned from the part validation" in said
    parts = json.loads((tmp_path / "run/parts.json").read_text())
    assert len(parts) == len(known) + 3 * 60 + 1  # by content, name and pixels; the folder
    assert {key: parts[key] for key in known} == known
    said = output(capsys, "evaluate", tmp_path / "run", "--part", "validation")
    assert "has learned from the part validation: it is no test" in said
    assert "it is no test" not in output(capsys, "evaluate", tmp_path / "run")
    for path in root.rglob("*.png"):  # as a tool would that makes files smaller
        if path.name != "broken.png":
            Image.open(path).save(path, compress_level=1)
    settings = stored_run(trained)["settings"]
    tested = labels_by_picture(settings, "test", root).keys()
    assert len(labels_by_picture(settings, "test", photos).keys() - tested) == 0
    assert len(labels_by_picture(settings, "trainval", photos).keys() & tested) == 0
    for path in root.rglob("*[0-9].png"):
        Image.open(path).save(path.with_suffix(".bmp"))  # another name, other bytes
        path.unlink()
    with_pixels = labels_by_picture(settings, "test", root).keys()
    assert with_pixels & labels_by_picture(settings, "test", photos).keys()
    assert not labels_by_picture(settings, "trainval", photos).keys() & with_pixels
    for path in root.rglob("*.bmp"):
        Image.open(path).save(path.with_name(f"{path.stem}x.jpg"))  # other pixels as well
        path.unlink()
    said = output(capsys, "evaluate", trained, "--root", root)
    assert "are gone: if they are the same, it has learned from them" in said
    shutil.rmtree(root)
    shutil.copytree(photos, root)
    for path in root.glob("*/[3-9]?.png"):  # what is left has been seen
        path.unlink()
    for path in root.rglob("*.png"):
        if parts.get(path.relative_to(root).as_posix()) == "test":
            path.unlink()
    assert "lent: none is left for a test" in refusal(capsys, *words, "--out", tmp_path / "none")


def test_a_test_of_near_copies_of_what_lent_weights_learned_is_told(tmp_path, capsys):
    first, second, places = tmp_path / "first", tmp_path / "second", ("green", "red")
    for number, name in enumerate(places):
        for part in ("train", "test"):
            (second / part / name).mkdir(parents=True)
        (first / name).mkdir(parents=True)
        for seed in range(20):
            coarse = painted(COLOURS[name], (4, 5), seed=seed + 100 * number)
            picture = coarse.resize((80, 100))
            picture.save(first / name / f"{seed}.png")
            picture.save(second / "test" / name / f"old{seed}.jpg")
            other = painted(COLOURS[name], (4, 5), seed=seed + 1000 * number + 300)
            other.resize((80, 100)).save(second / "train" / name / f"new{seed}.png")
    lender, out = tmp_path / "lender", tmp_path / "out"
    assert run(*trains(first, "--out", lender)) == 0
    words = [*trains(second, "--weights", lender, "--head-epochs", 0)]
    told = r"\d\d of 40 pictures of the test look like one that is learned from \(test/\w+/old"
    for command in ([*words, "--out", out], ["evaluate", out]):
        assert re.search(told, output(capsys, *command))
    shutil.rmtree(first)
    told = f"are copies of learned ones was not seen: none of these is in {first}"
    for command in ([*words, "--out", tmp_path / "again"], ["evaluate", tmp_path / "again"]):
        assert told in output(capsys, *command)


def test_copies_that_came_after_the_training_are_told_in_the_test(tmp_path, capsys):
    root, out = tmp_path / "photos", tmp_path / "run"
    for number, name in enumerate(("green", "red")):
        (root / name).mkdir(parents=True)
        for seed in range(20):
            picture = painted(COLOURS[name], (4, 5), seed=seed + 100 * number)
            picture.resize((80, 100)).save(root / name / f"{seed}.png")
    assert run(*trains(root, "--out", out)) == 0
    capsys.readouterr()
    for path in root.rglob("*.png"):
        Image.open(path).save(path.with_name(f"export{path.stem}x.jpg"))
    said = output(capsys, "evaluate", out)
    looks = r"[4-9] of \d+ pictures of the test that are new look like one .* \(\w+/export"
    assert re.search(looks, said)
    for path in root.rglob("*.png"):
        path.unlink()
    said = output(capsys, "evaluate", out)
    assert (
        "Whether new pictures of the part test are copies of learned ones was not seen: none of"
        in said
    )


def test_a_test_of_other_pictures_or_classes_than_at_the_training_is_told(
    photos, trained, tmp_path, capsys
):
    root = shutil.copytree(photos, tmp_path / "in")
    parts = json.loads((trained / "parts.json").read_text())
    tested = [name for name, part in parts.items() if part == "test" and name.startswith("red/")]
    words = ["evaluate", trained, "--root", root]
    assert "others than before" not in output(capsys, *words)
    for name in tested:
        (root / name).rename(root / "green" / f"was-{name[4:]}")
    count = sum(part == "test" and "/" in name for name, part in parts.items())
    told = "The pictures of the part test or their classes are others than before "
    told += f"({count} of 3 x 32 x 32 then"
    page = ["results", trained, "--root", root, "--out", tmp_path / "page.html"]
    drawn = ["attention", 0, "--run", trained, "--out", tmp_path / "look.png"]
    for command in (words, page, [*drawn, "--root", root]):
        assert f"{told}, now the same with other labels)" in output(capsys, *command)
    assert "others than before" not in output(capsys, *words, "--part", "train")
    name = next(n for n, part in parts.items() if part == "train" and n.startswith("red/"))
    (root / name).rename(root / "green" / "other.png")
    moved = (
        "elsewhere than at the training (renamed, or in another class), kept in its part: green/o"
    )
    said = output(capsys, "examine", trained, "--root", root, "--updates", 50)
    assert "now the same with other labels): the run has learned from the earlier ones" in said
    for part in ("test", "trainval"):
        assert moved in output(capsys, *words, "--part", part)
    for part in ("train", "validation", "trainval"):
        said = output(capsys, *words, "--part", part)
        assert "part trainval or their classes are others than before (" in said
        assert "now the same with other labels): the run has learned from the earlier" in said
    next((root / "green").glob("was-*")).unlink()
    assert f"{told}, now {count - 1} of 3 x 32 x 32)" in output(capsys, *words)
    out = shutil.copytree(trained, tmp_path / "older")
    with safe_open(out / "checkpoint.safetensors", "pt") as file:
        kept = file.metadata()
    notes = json.loads(kept["notes"])
    notes["tested"] = notes["tested"]["labelled"]  # a sum alone, as older runs have it
    save_file(weights(out), out / "checkpoint.safetensors", kept | {"notes": json.dumps(notes)})
    assert "others than before: losses" in output(capsys, "evaluate", out, "--root", root)
    assert "others than before" not in output(capsys, "evaluate", out)


def test_a_run_inside_its_pictures_is_refused_and_tilde_is_home(learn, photos, monkeypatch, capsys):
    said = refusal(capsys, *learn, *SMALL, "--steps", 1, "--out", photos / "run")
    assert "out must lie outside of root: " in said
    assert not (photos / "run").exists()
    monkeypatch.setenv("HOME", str(photos))
    said = refusal(capsys, *learn, *SMALL, "--steps", 1, "--out=~/run")
    assert f"{photos}/run would be taken" in said


def test_maps_are_not_drawn_among_the_pictures(trained, photos, tmp_path, capsys):
    place = photos / "red" / "maps.png"
    words = ["attention", 0, "--run", trained, "--out"]
    assert f"out must lie outside of root: {place} would be" in refusal(capsys, *words, place)
    assert not place.exists()


def test_a_run_whose_classes_are_called_like_parts_knows_them(tmp_path, capsys):
    root, out = tmp_path / "in", tmp_path / "run"
    fill(root / "train" / "a", GREEN, range(8))
    fill(root / "test" / "b", RED, range(8, 16))
    assert run(*trains(root, "--folders-are-classes", "--out", out)) == 0
    assert settings_in(out)["classes"] == ["test", "train"]
    assert re.search("[0-4] of 4 right", output(capsys, "evaluate", out))


def test_damaged_files_never_stand_for_the_test_of_a_small_class(tmp_path, capsys):
    fill(tmp_path / "in" / "green", GREEN, range(6))
    fill(tmp_path / "in" / "red", RED, range(6))
    damaged = (b"\x89PNG" + bytes([i]) for i in range(250))
    first = sorted(damaged, key=lambda data: blake2b(data, digest_size=16).hexdigest())[:2]
    for i, data in enumerate(first):
        (tmp_path / "in/red" / f"damaged {i}.png").write_bytes(data)
    listed = list_folder(tmp_path / "in").files
    tests = [file.path.stem for file in listed if file.part == "test" and file.label == 1]
    assert sorted(tests) == ["damaged 0", "damaged 1"]
    said = output(capsys, *trains(tmp_path / "in", "--out", tmp_path / "run"))
    assert "left out: cannot be read as a picture: red/damaged 0" in said
    assert "2 right" in output(capsys, "evaluate", tmp_path / "run")


def test_what_fits_in_no_memory_lies_in_a_file_and_the_run_is_the_same(
    learn, tmp_path, monkeypatch, capsys
):
    words = [*learn, *SMALL, "--epochs", 1, "--out"]
    assert "lie in a file" not in output(capsys, *words, tmp_path / "held")
    monkeypatch.setattr(room, "free_memory", lambda: 200_000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert run(*words, tmp_path / "filed") == 0
    told = "of 32 x 32 pixels take 0.1 MB, of memory 0.2 MB are free: they lie in a file"
    assert capsys.readouterr().out.count(told) == 1  # the test part is smaller
    assert (tmp_path / "filed/metrics.csv").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["filed", "held"]
    held, filed = weights(tmp_path / "held"), weights(tmp_path / "filed")
    assert all(torch.equal(held[name], filed[name]) for name in held)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    said = refusal(capsys, *words, tmp_path / "nowhere")
    assert "ask for smaller images (--image-size) or name a folder" in said
    assert not (tmp_path / "nowhere").exists()


def test_statistics_and_batches_are_those_of_all_pixels_at_once():
    pixels = torch.randint(256, (600, 3, 5, 4), generator=seeded(0), dtype=torch.uint8)
    found = own_pictures._statistics(pixels)
    x = pixels.double() / 255
    assert found["mean"] == [round(m, 4) for m in x.mean(dim=(0, 2, 3)).tolist()]
    assert found["std"] == [round(s, 4) for s in x.std(dim=(0, 2, 3)).tolist()]
    images = room.NormalizedImages(pixels, found["mean"], found["std"])
    whole = normalize(pixels, found["mean"], found["std"])
    some = torch.tensor([5, 599, 0])
    assert torch.equal(images[100:][some % 500].to("cpu"), whole[100:][some % 500])
    assert images.shape == whole.shape
    assert len(images[::7]) == len(whole[::7])


def test_with_class_weights_each_class_counts_alike(photos, tmp_path):
    labels = torch.tensor([0] * 6 + [1] * 2 + [2])
    settings = {"data": "folder", "classes": list("abc"), "image_size": 8}
    settings |= {"label_smoothing": 0.1, "class_weights": True}
    logits = torch.randn(9, 3, generator=seeded(1))
    found = loss_function(settings, labels)(logits, labels)
    by_class = [
        cross_entropy(logits[labels == k], labels[labels == k], label_smoothing=0.1)
        for k in range(3)
    ]
    torch.testing.assert_close(found, torch.stack(by_class).mean())
    assert loss_function(settings | {"class_weights": False}, labels) is None

    shutil.rmtree(shutil.copytree(photos, tmp_path / "in") / "green")
    for path in sorted((tmp_path / "in/red").iterdir())[6:]:
        path.unlink()
    words = trains(tmp_path / "in", "--steps", 2)
    assert run(*words, "--out", tmp_path / "alike", "--class-weights") == 0
    assert settings_in(tmp_path / "alike")["class_weights"] is True
    assert run(*words, "--out", tmp_path / "plain") == 0
    alike, plain = (weights(tmp_path / name) for name in ("alike", "plain"))
    assert any(not torch.equal(alike[name], plain[name]) for name in alike)


def test_classes_that_pictures_do_not_show_are_told_after_the_training(tmp_path, capsys):
    fill(tmp_path / "a" / "seen", GREY, range(20))
    fill(tmp_path / "a" / "unseen", GREY, range(50, 70))
    said = output(capsys, *trains(tmp_path / "a", "--out", tmp_path / "run"))
    assert "is not clearly more than the 4 of who always answers the l" in said
    labels = torch.arange(3).repeat(5)
    assert own_pictures.no_better(1.0, labels, "test") == []
    assert own_pictures.no_better(0.4, labels, "test")


def test_uneven_classes_are_named_with_the_share_that_the_largest_has_of_the_test():
    learned, tested = torch.tensor([0] * 4 + [1] * 20), torch.tensor([0, 0, 0, 1])
    labels, classes = {"trainval": learned, "test": tested}, ("few", "many")
    told = own_pictures._counted(classes, labels, weighted=False)
    assert "few 4 + 3, many 20 + 1. They are uneven, 20 to 4: who always answers the" in told
    assert "largest is right 25 % of the time" in told
    assert told.endswith("; with --class-weights each counts alike")
    assert own_pictures._counted(classes, labels, weighted=True).endswith("by class (results)")
    labels = {"train": learned[:23], "validation": learned[3:5], "test": tested}
    told = own_pictures._counted(classes, labels, weighted=False)
    assert told.endswith(
        "(pictures to learn from + to choose by + to test): few 4 + 1 + 3, many 19 + 1 + 1"
    )


IDLE = {
    "train --folders-are-classes": "--folders-are-classes must be left out: only --data folder",
    "train --data folder --root ROOT --folders-are-classes": "must be left out: no folder of",
    "train --root .": "--root must be left out: digits come with the package; one's own pictures",
    "train --data folder --root ROOT --download": "--download must be left out",
    "train --data folder --root ROOT --weights RUN --position-std 1": "--position-std must be left",
    "train --data folder --root ROOT --timm test_vit --pool cls --post-norm": "--post-norm, --pool",
    "train --mirror http://x": "--mirror must be left out: it says from where --download",
    "compare x.py:X --root .": "--root must be left out: only --task garments",
    "attention x.png --timm test_vit --random --root .": "--root must be left out: it counts where",
    "attention x.png --timm test_vit --random --invert": "--invert must be left out: it counts for",
    "attention x.png --run RUN --part train": "--part must be left out: it counts where IMAGE is",
    "attention 3 --run RUN --invert": "--invert must be left out",
    "attention 3 --run RUN --weights x": "--weights must be left out: a run knows its own",
    "attention 3 --run RUN --layers x --png": "--layers must be left out: they count for an .html",
    "attention 3 --run RUN --target 0 --no-audit": "--target must be left out: it says of which",
    "attention 3 --run RUN --num-prefix 0 --png": "--num-prefix must be left out: they count for",
}


@pytest.mark.parametrize("words", IDLE)
def test_an_option_that_would_do_nothing_is_refused(words, photos, trained, tmp_path, capsys):
    ending = "png" if "--png" in words else "html"
    filled = [{"ROOT": photos, "RUN": trained}.get(word, word) for word in words.split()]
    filled = [word for word in filled if word != "--png"]
    assert IDLE[words] in refusal(capsys, *filled, "--out", tmp_path / f"x.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_timm_learns_at_another_size(learn, tmp_path, capsys):
    torch.save(timm.create_model("test_vit").state_dict(), tmp_path / "theirs.pth")
    words = [*learn, "--timm", "test_vit", "--steps", 1, "--head-epochs", 0, "--batch-size", 4]
    words += ["--no-progress", "--weights", tmp_path / "theirs.pth", "--out", tmp_path / "run"]
    printed = output(capsys, *words, "--image-size", 96)
    assert "images of 3 x 96 x 96 to learn from" in printed
    assert "positions resampled from 101 to 37 tokens" in printed
    assert f"starts from {tmp_path / 'theirs.pth'}; head drawn anew" in printed
    settings = settings_in(tmp_path / "run")
    assert settings["image_size"] == 96
    assert not settings.keys() & {"depth", "pool", "drop_path", "patch_size", "model"}
    said = refusal(capsys, *words[:-1], tmp_path / "odd", "--image-size", 100)
    assert "test_vit takes no images of 100 pixels" in said


@pytest.mark.parametrize(("world", "batch"), [(1, 9), (2, 8), (4, 8), (16, 16)])
def test_the_batch_that_is_chosen_can_be_shared_out(photos, monkeypatch, world, batch):
    monkeypatch.setattr("vitbook.training.processes.world", lambda: world)
    given = {"data": "folder", "image_size": 16}
    found, _, _ = own_pictures.describe(settings_of(given), str(photos), given)
    assert found["batch_size"] == batch


def test_names_of_any_encoding_stop_nothing_on_any_terminal(tmp_path, monkeypatch):
    root = tmp_path / "photos"
    names = [os.fsdecode(b"caf\xe9"), "\u732b <b>"]
    for first, name in enumerate(names):
        fill(root / name, RED, range(50 * first, 50 * first + 8))
        (root / name / "broken.png").write_bytes(name.encode("utf-8", "surrogateescape"))
    pages = [tmp_path / f"{name}.html" for name in ("utf-8", "ascii", "locale")]
    for page in pages[:2]:
        for stream in ("stdout", "stderr"):
            terminal = io.TextIOWrapper(io.BytesIO(), encoding=page.stem, errors="strict")
            monkeypatch.setattr(sys, stream, terminal)
        folder = tmp_path / page.stem
        assert run(*trains(root, "--out", folder)) == 0
        assert run("results", folder, "--out", page) == 0
    # names are read as other letters
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ["results", folder, "--out", pages[2]]
    told = subprocess.run(
        [sys.executable, "-m", "vitbook", *words],
        env=os.environ | plain | {"PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
    )
    assert told.returncode == 0, told.stderr
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "caf\\xe9" in text
        assert "\u732b &lt;b&gt;" in text


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--batch-size", 0, "--batch-size must be at least 1, got 0"),
        ("--batch-size", 99, "--batch-size must be at most the number of images"),
        ("--head-epochs", -1, "--head-epochs must be at least 0, got -1"),
        ("--shift", -1, "shift must be at least 0, got -1"),
        ("--shift", 99, "shift must be at most "),
        ("--seed", 2**64, "seed must be below 2**64"),
    ],
)
def test_what_cannot_be_is_refused_before_a_file_is_written(
    learn, tmp_path, capsys, option, value, words
):
    out = tmp_path / "run"
    assert words in refusal(capsys, *learn, *SMALL, "--epochs", 1, "--out", out, option, value)
    assert not out.exists()


def test_a_folder_that_cannot_be_is_a_sentence(learn, trained, tmp_path, capsys):
    for words in ([*learn, "--out"], ["train", "--resume", "--out"], ["evaluate"]):
        assert "File name too long" in refusal(capsys, *words, tmp_path / ("n" * 300))


def test_a_run_json_that_is_not_what_was_written_is_called_damaged(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    kept = path.read_bytes()
    spoiled = [b"[" * 100_000, b"\xff" + kept, kept.replace(b'"mean"', b'"meat"')]
    spoiled += [
        kept.replace(b'"classes": [', b'"classes": 1, "were": ['),
        kept.replace(b'"root": "', b'"root": 1, "was": "'),
    ]
    for data in spoiled:
        path.write_bytes(data)
        for words in (["evaluate"], ["train", "--resume", "--out"]):
            told = refusal(capsys, *words, tmp_path / "run")
            assert "run.json is damaged" in told
            assert len(told) < len(str(path)) + 200


EDITS = {  # what somebody wrote by hand into a file of a run, in the place of what stood there
    "classes was ['green', 'red', 'violet'], now ['red', 'green', 'violet']": (
        "run.json",
        '"green",\n      "red",',
        '"red",\n      "green",',
    ),
    "pool was cls, now mean": ("run.json", '"pool": "cls"', '"pool": "mean"'),
    "parts was ": ("parts.json", '"train"', '"test"'),
}


@pytest.mark.parametrize("words", EDITS)
def test_what_was_changed_by_hand_in_a_run_is_refused_by_name(words, trained, tmp_path, capsys):
    out = tmp_path / "run"
    shutil.copytree(trained, out)
    assert run("evaluate", out) == 0
    name, there, now = EDITS[words]
    text = (out / name).read_text()
    assert there in text
    (out / name).write_text(text.replace(there, now))
    for command in (["evaluate"], ["train", "--resume", "--out"]):
        assert f"which the checkpoint remembers: {words}" in refusal(capsys, *command, out)


def test_pictures_of_equal_pixels_in_two_classes_and_a_test_without_a_class_are_told(tmp_path):
    fill(tmp_path / "train" / "green", GREEN, range(4))
    fill(tmp_path / "train" / "red", RED, range(4))
    fill(tmp_path / "test" / "red", RED, range(4, 7))
    (tmp_path / "test" / "green").mkdir()
    for seed in range(2):
        again = Image.open(tmp_path / "train" / "green" / f"{seed}.png")
        again.save(tmp_path / "test" / "green" / f"{seed}.bmp")
    again.save(tmp_path / "train" / "red" / "again.ppm")
    first = Image.open(tmp_path / "train" / "green" / "3.png")
    first.save(tmp_path / "test" / "red" / "of_green.ppm")
    given = {"data": "folder", "image_size": 16}
    _, _, told = own_pictures.describe(settings_of(given), str(tmp_path), given)
    assert "No picture of green is left in the part test." in told
    both = "2 files, equal to one of another class, pixel by pixel, so that one is wrong: "
    assert f"{both}test/red/of_green.ppm, train/red/again.ppm." in told


def test_pictures_of_more_channels_than_are_read_are_one_note(tmp_path, capfd):
    root = tmp_path / "in"
    for name, colour in COLOURS.items():
        fill(root / name, colour, range(8))
        painted(colour).save(path := root / name / "bands.tif")
        three, bands = (struct.pack("<HHIHH", 277, 3, 1, n, 0) for n in (3, 13))
        path.write_bytes(path.read_bytes().replace(three, bands))
    assert run(*trains(root, "--out", tmp_path / "run")) == 0
    said = capfd.readouterr()
    assert "left out: cannot be read as a picture: green/bands.tif" in said.out
    assert not said.err


def test_pictures_of_others_are_a_test_in_each_part(trained, tmp_path, capsys):
    for name, colour in COLOURS.items():
        fill(tmp_path / name, colour, range(100, 110))
    words = ["evaluate", trained, "--root", tmp_path]
    told = "None of these files was at the training: a fifth of them are the test"
    for part in ("test", "trainval"):
        said = output(capsys, *words, "--part", part)
        assert told in said
        assert "it is no test" not in said


def test_a_part_of_copies_saved_anew_is_told(tmp_path, capsys):
    root, out = tmp_path / "in", tmp_path / "run"
    for part, ending in (("train", "png"), ("val", "jpg"), ("test", "webp")):
        for name in ("green", "red"):
            (root / part / name).mkdir(parents=True)
            for seed in range(6):
                path = root / part / name / f"{seed}.{ending}"
                painted(COLOURS[name], seed=seed).resize((120, 144)).save(path)
    words = "12 of 12 pictures of the {} look like one that is learned from"
    said = output(capsys, *trains(root, "--learn-from", "train", "--out", out))
    for part in ("validation", "test"):
        assert words.format(part) in said
        assert words.format(part) in output(capsys, "evaluate", out, "--part", part)
    assert "look like" not in output(capsys, "evaluate", out, "--part", "train")


def test_a_register_is_not_called_a_class_token_and_is_none_of_the_patches():
    model = timm.create_model("vit_little_patch16_reg4_gap_256", img_size=32, depth=1).eval()
    images = torch.randn(1, 3, 32, 32, generator=seeded(2))
    settings = {"data": "folder", "timm": "it", "classes": [str(i) for i in range(1000)]}
    settings |= {"mean": [0.5] * 3, "std": [0.5] * 3}
    found = attention_maps(model, images)
    of_patches = found[0, 0, :, 4:, 4:].mean(dim=(0, 1))  # (4,)
    who, heatmap = opening(Look(images, found, (2, 2), 4, []), None, False, None)
    assert who == "the mean of all patches' rows, layer 1, mean of heads"
    torch.testing.assert_close(heatmap(model, images).flatten(), of_patches)
    maps, told = results._maps(model, images)
    assert "where the mean of all patches looks" in told
    torch.testing.assert_close(torch.from_numpy(maps).flatten(), 4 * of_patches)
    _, told = attention_figure(model, images[0], settings)
    assert told.endswith("attention of the mean of all patches")


def test_no_command_prints_what_a_terminal_would_obey(tmp_path, capsys):
    root, out = tmp_path / "photos", tmp_path / "run"
    fill(root / "a\x1b[2Jb", RED, range(8))
    fill(root / "c\nd", RED, range(50, 58))
    picture = root / "c\nd" / "51.png"
    for words in (
        trains(root, "--out", out),
        ["predict", out, picture, root / "c\nd" / "\x1b.png"],
        ["evaluate", out],
        ["attention", picture, "--run", out, "--out", tmp_path / "a.png"],
        ["attention", 1, "--run", out, "--out", tmp_path / "a.html"],
        ["export", out, "--out", tmp_path / "a.pt2"],
        ["results", out, "--out", tmp_path / "b.html"],
    ):
        assert run(*words) == (2 if words[0] == "predict" else 0)
        printed = "".join(capsys.readouterr())
        assert "\x1b" not in printed
        assert "c\nd" not in printed


def test_predict_says_what_was_done_to_a_picture(trained, tmp_path, capsys):
    Image.new("RGBA", (40, 40), (20, 200, 40, 99)).save(tmp_path / "logo.png")
    assert run("predict", trained, tmp_path / "logo.png") == 0
    assert capsys.readouterr().out.rstrip().endswith("% (transparent parts: on white)")
    words = ["--timm", "test_vit", "--random", "--no-audit", "--out", tmp_path / "look.html"]
    said = output(capsys, "attention", tmp_path / "logo.png", *words)
    assert "transparent parts: on white" in said
    assert "transparent parts: on white" in (tmp_path / "look.html").read_text()
