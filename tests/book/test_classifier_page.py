"""The cell of chapter 10 that the build cannot run: it would download weights."""

import re
from pathlib import Path

import timm
import torch
from PIL import Image
from torch.testing import assert_close

from vitbook.plotting import show_attention
from vitbook.models.vit import vit
from vitbook.models.weights import from_timm, load_weights

PAGE = Path(__file__).parents[2] / "book" / "vit" / "10_classifier.md"


def test_the_optional_cell_for_a_photo_runs_with_random_weights(tmp_path, capsys):
    """All of it but the download, which the build cannot do."""
    cells = re.findall(r"```{code-cell} ipython3\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (maps,) = (cell for cell in cells if "def class_token_looks" in cell)
    (photo,) = (cell for cell in cells if "MY_PHOTO = None" in cell)
    assert "pretrained=True" in photo  # what a reader runs
    shown = []
    page = {"torch": torch, "timm": timm, "vit": vit, "assert_close": assert_close}
    page |= {"load_weights": load_weights, "from_timm": from_timm}
    page["show_attention"] = show_attention
    page["show"] = lambda fig, alt: shown.append(len(fig.axes))

    exec(maps.partition("chosen =")[0], page)
    exec(photo, page)
    assert capsys.readouterr().out.startswith("Not run here")

    Image.new("RGB", (300, 260), "teal").save(tmp_path / "photo.png")
    page["look_at"](str(tmp_path / "photo.png"), pretrained=False)
    assert capsys.readouterr().out.count("%") == 5  # the five likeliest classes
    assert shown == [6]  # one panel for each head
