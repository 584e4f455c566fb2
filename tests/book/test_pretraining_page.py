"""The cells beside `pretraining` that the build cannot run: they would download weights."""

import re
from pathlib import Path

import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

from vitbook.models.weights import read_weights

PAGE = Path(__file__).parents[2] / "book" / "vit" / "pretraining_depth_photos.md"


CELL = r"```{code-cell} ipython3\n(?::tags: [^\n]*\n\n)?(.*?)```"


@pytest.fixture(scope="module")
def page():
    """What the page's first cells define."""
    cells = re.findall(CELL, PAGE.read_text("utf-8"), re.DOTALL)
    (published,) = (cell for cell in cells if "def published" in cell)
    (photos,) = (cell for cell in cells if "MY_FOLDER = None" in cell)
    (timing,) = (cell for cell in cells if "def images_per_second" in cell)
    names: dict = {}
    exec(cells[0], names)
    exec(published, names)
    exec(photos, names)
    exec(timing.partition("if torch.cuda.is_available")[0], names)
    assert "pretrained=True" in photos  # what a reader runs
    return names


def randomized(name):
    """A model of timm, every parameter random."""
    model = timm.create_model(name).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.05)
    return model


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("vit_tiny_patch16_224", (224, 224)),
        ("vit_tiny_patch16_224", (96, 160)),
        ("vit_small_patch16_384", (192, 192)),
    ],
)
def test_any_plain_vit_gives_the_features_of_timm(page, name, size, monkeypatch, tmp_path):
    """From a file in the format of the published ones, at their size and at another."""
    theirs = randomized(name)
    save_file(theirs.state_dict(), tmp_path / "published.safetensors")

    def downloaded(wanted, pretrained):
        assert (wanted, pretrained) == (name, True)
        model = timm.models._registry.model_entrypoint(name)()
        model.load_state_dict(read_weights(tmp_path / "published.safetensors")[0])
        return model

    monkeypatch.setattr(page["timm"], "create_model", downloaded)
    ours, config, notes = page["published"](name, pretrained=True, image_size=size, num_classes=4)
    said = " ".join(notes)
    assert "head drawn anew: 4 classes" in said
    assert ("positions resampled" in said) == (size != tuple(config["input_size"][1:]))
    theirs.set_input_size(img_size=size)
    images = torch.randn(2, 3, *size)
    with torch.no_grad():
        expected = theirs.forward_features(images)
        assert_close(ours.forward_features(images), expected, atol=1e-3, rtol=1e-3)


def test_a_model_with_further_parts_is_refused_by_their_names(page):
    with pytest.raises(
        ValueError, match=r"ls1\.gamma is unknown to the model .*: layer_scale decides"
    ):
        page["published"]("deit3_small_patch16_224", pretrained=False)


def test_the_cell_for_photographs_runs_with_random_weights(page, tmp_path, capsys):
    """All of it but the download; the two folders differ in their colour."""
    for name, color in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
        (tmp_path / name).mkdir()
        for i in range(10):
            shade = tuple(min(255, c + 5 * i) for c in color)
            Image.new("RGB", (120 + i, 90), shade).save(tmp_path / name / f"{name}{i}.png")
    torch.manual_seed(0)
    page["probe_my_photos"](str(tmp_path), pretrained=False)
    lines = capsys.readouterr().out.splitlines()
    answers = [line for line in lines if line.startswith(("right", "WRONG"))]
    assert len(answers) == 4  # each fifth of twenty
    assert all(re.match(r"(right|WRONG)  (red|blue)\d\.png: (red|blue)$", line) for line in answers)


@pytest.mark.filterwarnings("ignore:User provided device_type of 'cuda'")
def test_the_gpus_clock_counts_milliseconds(page, monkeypatch):
    """20 batches of 64 in half a second; a GPU that is none, so only the arithmetic is tested."""

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            pass

        def elapsed_time(self, end):
            return 500.0

    shapes = []
    randn = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *shape, device: randn(*shape))
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for dtype in (None, torch.bfloat16):
        speed = page["images_per_second"](lambda x: shapes.append(x.shape), dtype)
        assert speed == 64 * 20 / 0.5
    assert set(shapes) == {(64, 3, 224, 224)}
