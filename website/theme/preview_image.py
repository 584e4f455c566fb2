"""The picture that stands beside a shared link: the title, and the stream of a ViT."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from website.photograph import dahlia

WIDTH, HEIGHT = 1200, 630
INK, MUTED, STREAM, HEAT, NORM = "#1b2330", "#4f5b6b", "#56b4e9", "#d55e00", "#e69f00"


def draw(path: Path, title: str) -> None:
    """Write a PNG of 1200 x 630 pixels, the same bytes for the same title.

    Args:
        path: The file; its folder is made where it is missing.
        title: What is written large, in two lines after its comma.
    """
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    axes.text(70, 130, title.replace(", ", ",\n"), size=50, weight="bold", color=INK, va="center")
    words = "Build a Vision Transformer, train it on a laptop,\nfind out what it looks at."
    axes.text(70, 262, words, size=22, color=MUTED, va="center", linespacing=1.5)
    flower = np.asarray(dahlia())[:, 100:527]
    third, gap, side = 142, 8, 72
    for at in range(9):
        row, column = divmod(at, 3)
        piece = flower[third * row : third * (row + 1), third * column : third * (column + 1)]
        left, top = 70 + column * (side + gap), 340 + row * (side + gap)
        axes.imshow(piece, extent=(left, left + side, top + side, top), zorder=2)
    axes.plot([330, 1130], [390, 390], color=STREAM, linewidth=9, solid_capstyle="butt")
    _block(axes, 440)
    axes.fill([1118, 1118, 1146], [372, 408, 390], color=STREAM)
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="auto")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _block(axes: Axes, left: float) -> None:
    """Two branches that leave the stream and are added again."""
    _frame(axes, (left, 345), (620, 235), ("none", INK))
    heat = np.array([[0, 1, 4, 1], [1, 0, 1, 5], [4, 1, 0, 1], [0, 5, 1, 1]]) / 5
    for at, (width, name) in enumerate(((225, "attention"), (130, "MLP"))):
        x = left + 40 + 350 * at
        axes.plot([x + 25, x + 25], [390, 425], color=MUTED, linewidth=2)
        axes.add_patch(Rectangle((x, 425), 70, 30, color=NORM))
        axes.text(x + 35, 440, "norm", size=14, color=INK, ha="center", va="center")
        axes.plot([x + 25, x + 25], [455, 472], color=MUTED, linewidth=2)
        _frame(axes, (x, 472), (width, 94), ("#fdf1e7", HEAT) if at == 0 else ("white", INK))
        axes.text(x + 14, 519, name, size=17, weight="bold", color=INK, va="center")
        if at == 0:
            for (row, column), share in np.ndenumerate(heat):
                cell = (x + 142 + 18 * column, 484 + 18 * row)
                axes.add_patch(Rectangle(cell, 15, 15, color=HEAT, alpha=0.12 + 0.88 * share))
        turn = x + width + 30
        axes.plot([x + width, turn, turn], [519, 519, 400], color=MUTED, linewidth=2)
        axes.plot([turn], [390], "o", markersize=20, mfc="white", mec=INK, mew=2)
        axes.text(turn, 389, "+", size=17, color=INK, ha="center", va="center_baseline")


def _frame(
    axes: Axes, at: tuple[float, float], size: tuple[float, float], colors: tuple[str, str]
) -> None:
    """A box with round corners; its colours are those of ground and edge."""
    face, edge = colors
    shape = "round,pad=0,rounding_size=12"
    box = FancyBboxPatch(at, *size, boxstyle=shape, facecolor=face, edgecolor=edge, linewidth=2)
    axes.add_patch(box)
