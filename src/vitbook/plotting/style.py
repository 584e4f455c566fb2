"""One look for every figure: white ground, colour-blind safe colours, large type."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes

# Okabe and Ito (2008), "Color Universal Design", in the order in which lines take them.
# Yellow comes last: it is too light for a thin line on white.
COLORS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
}
# One colour for one model, through the whole book; a hybrid's partner is told by its line.
MODEL_COLORS = {
    "ViT": COLORS["blue"],
    "Mixer": COLORS["vermillion"],
    "ConvMixer": COLORS["green"],
    "CNN": COLORS["purple"],
    "hybrid": COLORS["sky"],
    "uniform": COLORS["orange"],  # attention that gives each patch the same weight
    "none": COLORS["black"],  # nothing mixes the patches
    "other": "#777777",  # neighbours, logistic regression, guesses
}
INK = "#1b2330"  # text and axes
FAINT = "#c9ced8"  # grid lines and frames

STYLE: dict[Any, Any] = {
    "figure.figsize": (6.0, 3.4),
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.dpi": 96,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so every machine draws the same
    "font.size": 12,  # in a figure 6 inches wide 10 px on a phone
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "legend.fontsize": 12,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlelocation": "left",
    "axes.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=list(COLORS.values())[:7]),
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "legend.frameon": False,
    "image.interpolation": "nearest",
    "savefig.facecolor": "white",
}


def use_style() -> None:
    """Give every later figure of this session the style of the book."""
    matplotlib.rcParams.update(STYLE)


@contextmanager
def style() -> Iterator[None]:
    """The style of the book inside a ``with`` block, the caller's own style after it."""
    with matplotlib.rc_context(STYLE):
        yield


def bare(ax: Axes) -> None:
    """Take ticks and frame away from a panel that holds a picture."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
