"""`your_own_pictures`: the figure of the surest mistakes, for runs with more of them or fewer."""

import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
import torch
from test_pretraining_page import CELL

from vitbook.plotting import ATTENTION

PAGE = Path(__file__).parents[2] / "book" / "yours" / "your_own_pictures.md"


@pytest.mark.parametrize("made", [1, 7, 8, 20])
def test_the_figure_has_a_picture_and_a_map_for_each_mistake_up_to_eight(made):
    cells = re.findall(CELL, PAGE.read_text("utf-8"), re.DOTALL)
    (cell,) = (cell for cell in cells if "mistakes(runs" in cell)
    images, labels = torch.rand(30, 3, 32, 32), torch.zeros(30, dtype=torch.long)
    says = torch.tensor([[0.1, 0.9]]).expand(30, 2)
    told = {}
    names = {
        "ATTENTION": ATTENTION,
        "attention_maps": lambda model, images: torch.rand(2, len(images), 3, 17, 17),
        "mistakes": lambda run: (
            {"mean": [0.5] * 3, "std": [0.2] * 3},
            *(None, images, labels, says, torch.arange(made)),
        ),
        "pictures": SimpleNamespace(classes=["china", "flower"]),
        "planted": {"0.png"},
        "plt": plt,
        "runs": Path(),
        "show": lambda fig, **words: told.update(words, fig=fig),
        "tested": SimpleNamespace(files=[f"{n}.png" for n in range(30)]),
        "torch": torch,
    }
    exec(cell, names)
    shown = min(made, 8)
    seen = [ax for ax in told["fig"].axes if ax.get_visible()]
    assert [len(ax.images) for ax in seen] == [1] * 2 * shown
    assert told["alt"].startswith(f"The {shown} surest mistakes")
    assert told["alt"].count("a true mistake") == shown - 1
    assert told["caption"].startswith(f"The {shown} mistakes")
    plt.close(told["fig"])
