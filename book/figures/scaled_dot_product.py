"""Figures of the chapter `scaled_dot_product`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from vitbook.plotting import COLORS, FAINT, INK

# Weights (N,), their entropy in nats, and the norm of the softmax's Jacobian.
State = tuple[Tensor, float, float]


def four_rules(
    weights: Mapping[str, Sequence[float]], granted: Mapping[str, Sequence[float]]
) -> Figure:
    """For each rule its weights of the scores 2, 1, 0 and -1, and how often it grants each wish.

    Args:
        weights: Rule -> the four weights.
        granted: Rule -> for each of the four wishes the share of the rows in which it comes true.
    """
    grid = {"wspace": 0.06, "hspace": 0.12}
    size = (5.9, 3.9)
    fig, axes = plt.subplots(4, 2, figsize=size, width_ratios=(1, 1.35), gridspec_kw=grid)
    for (bars, tiles), (name, values) in zip(axes, weights.items(), strict=True):
        colors = [COLORS["blue" if w > 0 else "vermillion"] for w in values]
        bars.bar(range(4), values, width=0.7, color=colors)
        for i, w in enumerate(values):
            low, side = (0.06, "bottom") if w >= 0 else (-0.09, "top")
            words = f"{w:.2f}".replace("-", "−")
            bars.text(i, w + low, words, ha="center", va=side, fontsize=10)
        bars.axhline(0, color=INK, lw=0.8)
        bars.set(ylim=(-0.75, 1.5), yticks=[])
        bars.set_xticks(range(4), ["2", "1", "0", "−1"] if name == "softmax" else [""] * 4)
        bars.set_ylabel(name.replace(" ", "\n"), rotation=0, ha="right", va="center", fontsize=11)
        bars.tick_params(length=0)
        bars.spines[:].set_visible(False)
        for i, share in enumerate(granted[name]):
            full = share == 1
            face, edge = (COLORS["blue"],) * 2 if full else ("none", FAINT)
            tiles.add_patch(plt.Rectangle((i, 0), 0.92, 1, fc=face, ec=edge, lw=1.5))
            words = f"{share:.0%}".replace("%", " %")
            color = "white" if full else INK
            tiles.text(i + 0.46, 0.5, words, ha="center", va="center", fontsize=11, color=color)
            if name == "raw":
                tiles.text(i + 0.46, 1.1, f"wish {i + 1}", ha="center", va="bottom", fontsize=10)
        tiles.set(xlim=(-0.2, 4), ylim=(-0.35, 1.5))
        tiles.set_axis_off()
    axes[3, 0].set_xlabel("score", fontsize=10)
    return fig


def temperatures(states: Mapping[float, State]) -> Figure:
    """The weights of the scores 2, 1, 0 and -1 at each temperature."""
    fig, axes = plt.subplots(1, len(states), figsize=(5.8, 2.6), sharey=True)
    for ax, (T, found) in zip(axes, states.items(), strict=True):
        _bars(ax, found, "blue", ["2", "1", "0", "−1"])
        ax.set_title(f"T = {T:g}", fontsize=11)
    axes[0].set_ylabel("weight")
    fig.supxlabel("score", fontsize=11)
    return fig


def widths_of_heads(without: Mapping[int, State], with_factor: Mapping[int, State]) -> Figure:
    """The weights of 16 keys for each width d, above without the factor, below with it."""
    fig, axes = plt.subplots(2, len(without), figsize=(5.8, 3.9), sharey=True)
    for column, d in enumerate(without):
        _bars(axes[0, column], without[d], "vermillion", [])
        _bars(axes[1, column], with_factor[d], "blue", [])
        axes[0, column].set_title(f"d = {d}", fontsize=11)
    axes[0, 0].set_ylabel("without 1/√d")
    axes[1, 0].set_ylabel("with it")
    fig.supxlabel("16 keys, largest weight first", fontsize=11)
    return fig


def trainings(right: Mapping[tuple[bool, int], Tensor], frequent: float) -> Figure:
    """Accuracy of each training against the width of queries and keys.

    Args:
        right: (with the factor?, width) -> right answers in per cent, one for each seed.
        frequent: What the most frequent answer gets, in per cent.
    """
    ds = list(dict.fromkeys(d for _, d in right))
    looks = ((True, "with 1/√d", "blue", "s", 0.88), (False, "without", "vermillion", "o", 1.13))
    fig, ax = plt.subplots(figsize=(5.4, 3.2))
    for kind, name, color, mark, shift in looks:
        for d in ds:
            values = right[kind, d]
            spread = [shift * d * 1.035 ** (i - 2) for i in range(len(values))]
            face = COLORS[color] if kind else "none"
            label = name if d == ds[0] else None
            (points,) = ax.plot(spread, values, mark, color=COLORS[color], ms=6, label=label)
            points.set(mfc=face, alpha=0.85)
    ax.axhline(frequent, color=INK, lw=1, ls=(0, (1, 3)))
    ax.text(330, frequent + 2, "the most frequent glyph", ha="right", fontsize=10)
    ax.set(xscale="log", xlim=(2.6, 360), ylim=(20, 106))
    ax.set(xlabel="width d of queries and keys", ylabel="right answers, %")
    ax.set_xticks(ds, [str(d) for d in ds])
    ax.tick_params(axis="x", which="minor", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 0.3))
    return fig


def _bars(ax: Axes, found: State, color: str, ticks: Sequence[str]) -> None:
    """Bars for the weights; entropy and gradient above them."""
    weights, spread, size = found
    ax.bar(range(len(weights)), weights, color=COLORS[color])
    words = f"entropy {spread:.2f}\ngradient {size:.{2 if size >= 0.005 else 4}f}"
    ax.text(len(weights) - 0.5, 1.3, words, ha="right", va="top", fontsize=10, linespacing=1.2)
    ax.set(ylim=(0, 1.35), yticks=[0, 0.5, 1])
    ax.set_xticks(range(len(weights)) if ticks else [], ticks)
    ax.tick_params(axis="x", length=0)
