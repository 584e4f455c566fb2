"""Figures of the chapter `qk_merge`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from vitbook.plotting import COLORS, INK, SIGNED


def score_tables(M: Tensor, tables: Mapping[str, Tensor]) -> Figure:
    """M (D, D), and tables of scores (N, N) on one scale, with one entry framed.

    Args:
        M: The product of the two matrices.
        tables: Title -> scores; the first gives the scale.
    """
    fig, axes = plt.subplots(1, 1 + len(tables), figsize=(6.4, 2.1))
    first = next(iter(tables.values()))
    for ax, (name, table) in zip(axes, {"M": M, **tables}.items(), strict=True):
        top = (M if name == "M" else first).abs().max()
        ax.imshow(table, cmap=SIGNED, vmin=-top, vmax=top)
        ax.set(title=name, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if name != "M":
            ax.add_patch(plt.Rectangle((2.5, 0.5), 1, 1, fill=False, ec=INK, lw=2))
            ax.set(xlabel="token j", ylabel="token i" if name == "separate" else "")
    axes[0].set(xlabel="feature b", ylabel="feature a")
    return fig


def costs_figure(
    heads: Sequence[int],
    numbers: Sequence[float],
    by_heads: Sequence[float],
    asking: Sequence[int],
    by_queries: Mapping[str, Sequence[float]],
) -> Figure:
    """Numbers and multiplications of merged scores, as a multiple of separate ones.

    Args:
        heads: Of the left panel.
        numbers: A stored M's, for each.
        by_heads: Multiplications of a stored M, for each, where all tokens ask.
        asking: How many tokens ask, in the right panel.
        by_queries: "re-ordered" and "stored" -> multiplications for each.
    """
    looks = {"re-ordered": ("s--", COLORS["green"]), "stored": ("o-", COLORS["vermillion"])}
    grid = {"wspace": 0.08}
    fig, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.2), sharey=True, gridspec_kw=grid)
    left.plot(heads, numbers, "^:", color=COLORS["purple"])
    left.plot(heads, by_heads, *looks["stored"][:1], color=looks["stored"][1])
    left.text(7.2, 5.6, "multiplications", color=looks["stored"][1], ha="right")
    left.text(8.2, 2.4, "numbers", color=COLORS["purple"])
    left.set(yscale="log", ylim=(0.018, 11), xlabel="heads h")
    left.set(title="all 197 tokens ask", ylabel="merged : separate")
    left.set_xticks([1, 2, 4, 6, 8, 12])
    for way, ratios in by_queries.items():
        right.plot(asking, ratios, looks[way][0], color=looks[way][1])
    right.text(4.6, 0.62, "stored", color=looks["stored"][1], ha="right")
    right.text(7, 0.09, "re-ordered", color=looks["re-ordered"][1])
    right.set(xscale="log", xlabel="tokens that ask, n", title="12 heads, n tokens ask")
    right.set_xticks([1, 10, 100], ["1", "10", "100"])
    left.set_yticks([0.03, 0.1, 0.3, 1, 3, 10], ["0.03", "0.1", "0.3", "1", "3", "10"])
    for ax in (left, right):
        ax.axhline(1, color=INK, lw=1)
        ax.minorticks_off()
    return fig


def fitted_maps(widths: Sequence[int], missed: Mapping[str, Tensor]) -> Figure:
    """Weight in the wrong place against the width of queries and keys.

    Args:
        widths: Of queries and keys.
        missed: What each token is to look at -> per cent, (widths, starts).
    """
    fig, ax = plt.subplots(figsize=(5.6, 3.2))
    looks = zip(("o-", "s--", "^-.", "D:"), ("blue", "green", "vermillion", "purple"), strict=True)
    for (name, values), (line, color) in zip(missed.items(), looks, strict=True):
        ax.plot(widths, values.mean(1), line, color=COLORS[color], label=name)
        ax.vlines(widths, *values.T.aminmax(dim=0), color=COLORS[color])
    ax.set(xlabel="components of queries and keys, d", ylabel="weight in the wrong place, %")
    ax.set_xticks(list(widths))
    ax.legend(title="each token looks at", title_fontsize=11)
    return fig


def four_terms(panels: Mapping[str, Tensor]) -> Figure:
    """Six tables of scores (N, N) on one scale of colours, column by column."""
    top = max(table.abs().max().item() for table in panels.values())
    fig, axes = plt.subplots(2, 3, figsize=(6.0, 4.2))
    for ax, (name, table) in zip(axes.T.flat, panels.items(), strict=True):
        ax.imshow(table, cmap=SIGNED, vmin=-top, vmax=top)
        ax.set(title=name, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    fig.supxlabel("key j", fontsize=11)
    fig.supylabel("query i", fontsize=11)
    return fig


def walks(paths: Mapping[str, Sequence[Tensor]]) -> Figure:
    """How far the biases are from their start, over the steps of trainings.

    Args:
        paths: Way of training -> for each training the distances of b_Q, b_K, b_V, (steps, 3).
    """
    fig, ax = plt.subplots(figsize=(5.9, 3.7))
    looks = {"Adam": ("-", "vermillion"), "SGD": ("--", "blue"), "Adam, float64": ("-.", "green")}
    steps = torch.arange(1, len(paths["Adam"][0]) + 1)
    for name, (line, color) in looks.items():
        for path in paths[name]:
            track = path[:, 1].where(path[:, 1] > 0, math.nan)  # zero has no logarithm
            ax.plot(steps, track, line, color=COLORS[color], lw=1.2)
        words = f"$b_K$, {name}".replace(", float", ",\nfloat")
        ax.text(508, track[-1].item(), words, color=COLORS[color], va="center", fontsize=11)
    for path in paths["Adam"]:
        ax.plot(steps, path[:, 0], ":", color=INK, lw=1.2)
    ax.text(508, 2, "$b_Q$, Adam", va="center", fontsize=11)
    ax.set(yscale="log", xlabel="training step", ylabel="distance from the start")
    ax.set(xlim=(0, 683), ylim=(1e-14, 20))
    ax.set_xticks([0, 250, 500])
    ax.set_yticks([1e-12, 1e-8, 1e-4, 1])
    return fig
