"""Figures of the chapter `scaled_dot_product`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor

from vitbook.plotting import COLORS, FAINT, INK

# Weights (N,), their entropy in nats, and the norm of the softmax's Jacobian.
State = tuple[Tensor, float, float]


WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
BINS, WIDEST = 60, 4  # of the histogram, which ends at four times the square root of d
SHOWN = 48  # the largest score on the axis


def meeting(seed: int) -> Tensor:
    """A random query meets sixteen random keys: q · k of their first 1 to 256 numbers."""
    g = torch.Generator().manual_seed(seed)
    q = torch.randn(WIDTHS[-1], generator=g, dtype=torch.float64)
    k = torch.randn(16, WIDTHS[-1], generator=g, dtype=torch.float64)
    return (q * k).cumsum(-1)


def random_pairs(d: int) -> Tensor:
    """q · k of 6,000 random pairs of d numbers."""
    q, k = torch.randn(2, 6000, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    return (q * k).sum(-1)


def spread_of(products: Tensor, d: int) -> tuple[list[float], float]:
    """How many products lie in each bin, and their typical size, the root of the mean square."""
    end = WIDEST * d**0.5
    counts = torch.histc(products, bins=BINS, min=-end, max=end)
    return counts.tolist(), products.square().mean().sqrt().item()


def sixteen_keys(scores: Tensor, d: int) -> Figure:
    """From scores to weights: sixteen keys on the histogram of q · k, and a line to each one's bar.

    Args:
        scores: q · k of the sixteen keys, (16,).
        d: How many numbers the vectors of the histogram have.
    """
    scores = scores.sort().values
    counts, typical = spread_of(random_pairs(d), d)
    edge = WIDEST * d**0.5
    places, bottoms = torch.linspace(-0.95 * SHOWN, 0.95 * SHOWN, 16).tolist(), (1.15, 1.9)
    fig, ax = plt.subplots(figsize=(6.4, 3.6))
    middles = torch.linspace(-edge, edge, 2 * BINS + 1)[1::2].tolist()
    heights = [one / max(counts) for one in counts]
    ax.bar(middles, heights, 2 * edge / BINS, bottom=2.0, color=FAINT)
    ax.plot([-typical, typical], [3.1, 3.1], "|-", color=INK)
    ax.text(typical + 1, 3.1, f"a typical score: ±{typical:.2g}", va="center", fontsize=10)
    ax.text(-SHOWN, 3.1, "q · k of 6,000 random pairs", va="center", fontsize=10)
    ax.plot([-SHOWN, SHOWN], [2, 2], color=INK, lw=0.8)
    for at in range(-40, 41, 20):
        ax.text(at, 1.94, f"{at}".replace("-", "−"), ha="center", va="top", fontsize=9)
    for score, place, weight in zip(
        scores.tolist(), places, scores.softmax(0).tolist(), strict=True
    ):
        low, high = bottoms
        way = [(score, 2.0), (score, low + 0.2), (place, high - 0.2), (place, low)]
        curve = Path(way, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        ax.add_patch(PathPatch(curve, fc="none", ec=COLORS["green"], lw=1))
        ax.plot(score, 2, "o", color=COLORS["green"], ms=5)
        ax.bar(place, 1, 3.2, color=FAINT, alpha=0.25)
        ax.bar(place, weight, 3.2, color=COLORS["vermillion"])
        ax.plot([place - 1.6, place + 1.6], [0, 0], color=COLORS["vermillion"], lw=1)
    ax.text(places[-1], weight + 0.03, f"{weight:.2f}", ha="center", va="bottom", fontsize=10)
    ax.set(xlim=(-SHOWN - 1, SHOWN + 1), ylim=(-0.02, 3.3))
    ax.set_axis_off()
    return fig


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


def gradient_ratios(ratios: Mapping[tuple[int, int], Tensor]) -> Figure:
    """The gradient without the factor, divided by that with it, against the width.

    Args:
        ratios: (keys, width) -> for each draw the softmax's own and that at the query, (draws, 2).
    """
    ds = list(dict.fromkeys(d for _, d in ratios))
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), sharey=True, gridspec_kw={"wspace": 0.08})
    looks = {197: ("o-", "blue", "full"), 16: ("s--", "vermillion", "none")}
    for which, (ax, title) in enumerate(zip(axes, ("softmax's own", "at the query"), strict=True)):
        for keys, (line, name, fill) in looks.items():
            found = [ratios[keys, d][:, which] for d in ds]
            means = [one.mean().item() for one in found]
            color = COLORS[name]
            ax.plot(ds, means, line, color=color, fillstyle=fill, label=f"{keys} keys")
            ax.vlines(ds, [one.min() for one in found], [one.max() for one in found], color=color)
        ax.axhline(1, color=INK, lw=1)
        ax.set(xscale="log", yscale="log", xlim=(50, 1400), title=title, xlabel="width d")
        ax.set_xticks(ds, [f"{d:,}" for d in ds])
        ax.minorticks_off()
    axes[0].set(ylabel="without the factor : with it")
    axes[0].set_yticks([1e-6, 1e-4, 1e-2, 1], ["0.000001", "0.0001", "0.01", "1"])
    axes[1].legend(loc="lower left")
    return fig


def trainings(right: Mapping[tuple[bool, int], Tensor]) -> Figure:
    """Accuracy of each training against the width of queries and keys.

    Args:
        right: (with the factor?, width) -> right answers in per cent, one for each seed.
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
    cells = torch.cartesian_prod(*[torch.arange(4)] * 8)  # all that the other 8 cells can hold
    frequent = 100 * torch.nn.functional.one_hot(cells).sum(1).amax(1).double().mean().item() / 8
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
