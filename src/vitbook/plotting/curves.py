"""Names at the ends of curves."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.typing import ColorType

from vitbook.plotting.font_sizes import drawn_width, enlarge, smallest


def label_ends(ax: Axes, ends: list[tuple[float, float, str, ColorType]]) -> None:
    """Write each name (x, y, name, colour) right of its curve, moved apart where they collide."""
    fig: Any = ax.figure
    enlarge(fig)  # limits and layout are known only now
    x_right = ax.transData.transform([(x, y) for x, y, _, _ in ends])[:, 0].max()
    heights = [ax.transData.transform((x, y))[1] for x, y, _, _ in ends]
    size = max(12.0, smallest(drawn_width(fig)))
    placed = spread(heights, gap=1.25 * size * fig.dpi / 72)  # one line of text
    for (x, y, name, color), target in zip(ends, placed, strict=True):
        here = ax.transData.transform((x, y))
        offset = np.array([x_right - here[0], target - here[1]]) * 72 / fig.dpi + (8, 0)
        ax.annotate(
            name,
            (x, y),
            xytext=(offset[0], offset[1]),
            textcoords="offset points",
            color=0.72 * np.array(to_rgb(color)),  # dark enough to read as text
            va="center",
            fontsize=size,
            annotation_clip=False,
        )


def spread(wanted: list[float], gap: float) -> np.ndarray:
    """Places at least ``gap`` apart, in the same order, each as near to the wanted as can be."""
    order = np.argsort(wanted, kind="stable")
    blocks: list[
        tuple[list[int], float]
    ] = []  # members that touch each other: (their indices, place of the first)
    for i in order:
        members, start = [i], float(wanted[i])
        while blocks and blocks[-1][1] + gap * len(blocks[-1][0]) > start:
            members = blocks.pop()[0] + members
            start = np.mean([wanted[m] - gap * k for k, m in enumerate(members)])
        blocks.append((members, start))
    placed = np.empty(len(wanted))
    for members, start in blocks:
        placed[members] = start + gap * np.arange(len(members))
    return placed
