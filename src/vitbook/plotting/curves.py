"""Curves over steps or sizes, with the spread over seeds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike

from vitbook.book.intervals import student_half
from vitbook.plotting import require
from vitbook.plotting.font_sizes import drawn_width, enlarge, smallest
from vitbook.plotting.style import style

LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@style()
def show_curves(
    curves: Mapping[str, ArrayLike],
    x: ArrayLike | None = None,
    *,
    xlabel: str,
    ylabel: str,
    level: float = 0.95,
    title: str | None = None,
    xscale: str = "linear",
    yscale: str = "linear",
    width: float = 6.0,
) -> Figure:
    """One labelled curve for each name: the mean over seeds, in a band that is its interval.

    Args:
        curves: Name -> values (seeds, points), or (points,) for a single run. Each name is
            written at the end of its curve; line style and marker differ as well as colour.
        x: Where the points lie (points,); 1, 2, 3, ... by default.
        xlabel: Name of the horizontal axis, with its unit.
        ylabel: Name of the vertical axis, with its unit.
        level: Confidence level of the interval of the mean (Student's t). A single run has none.
        title: A line above the curves.
        xscale: "linear" or "log".
        yscale: "linear" or "log".
        width: Width of the figure in inches.
    """
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError(f"curves must be a dict of name -> values, got {curves!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    fig = Figure(figsize=(width, 3.6))
    ax = fig.subplots()
    ends: list[tuple[float, float, str, ColorType]] = []
    for i, (name, values) in enumerate(curves.items()):
        values = np.atleast_2d(
            require.array(f"curves[{name!r}]", values, "(seeds, points)", "(points,)")
        )
        points = (
            np.arange(1, values.shape[1] + 1) if x is None else require.array("x", x, "(points,)")
        )
        if points.shape != values.shape[1:]:
            raise ValueError(
                f"x has {len(points)} points, but curves[{name!r}] has {values.shape[1]}"
            )
        low, mean, high = mean_interval(values, level)
        (line,) = ax.plot(
            points, mean, ls=LINES[i % 4], marker=MARKERS[i % 7], markevery=max(1, len(points) // 8)
        )
        if len(values) > 1:
            ax.fill_between(points, low, high, color=line.get_color(), alpha=0.18, linewidth=0)
        ends.append((points[-1], mean[-1], name, line.get_color()))
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title or "", xscale=xscale, yscale=yscale)
    ax.grid(axis="y")
    label_ends(ax, ends)
    return fig


def mean_interval(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, ...]:
    """Lower end, mean and upper end of the mean's interval over the first axis (Student's t)."""
    mean = values.mean(axis=0)
    half = student_half(values, level) if len(values) > 1 else 0.0
    return mean - half, mean, mean + half


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
