"""Figures of the chapter `qk_merge`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from vitbook.book.intervals import Interval
from vitbook.book.records import Record
from vitbook.models.cost import count_multiplies
from vitbook.plotting import COLORS, INK, SIGNED

KINDS = {"queries": "blue", "keys": "green", "scores": "vermillion"}
ROOM = 12  # rows of the picture that the highest block fills


def bill(D: int, h: int, N: int, asking: int, d: int | None = None) -> dict[str, dict[str, int]]:
    """Multiplications for the scores of a layer in three ways, counted product by product.

    Args:
        D: Width of the tokens.
        h: Heads.
        N: Tokens.
        asking: How many of them ask.
        d: Width of a head, D / h if nothing else is said.

    Returns:
        Way -> "queries", "keys", "scores" -> multiplications.
    """
    with torch.device("meta"):  # shapes only
        asks, x, M = torch.empty(asking, D), torch.empty(N, D), torch.empty(h, D, D)
        W_Q, W_K = torch.empty(2, h, D, d or D // h)
    q, k = asks @ W_Q, x @ W_K  # (h, asking, d), (h, N, d)
    wide = asks @ M  # (h, asking, D), as q @ W_K.mT
    queries, over_tokens = (
        count_multiplies(lambda: asks @ W_Q),
        count_multiplies(lambda: wide @ x.mT),
    )
    return {
        "separate": {
            "queries": queries,
            "keys": count_multiplies(lambda: x @ W_K),
            "scores": count_multiplies(lambda: q @ k.mT),
        },
        "merged": {"queries": count_multiplies(lambda: asks @ M), "keys": 0, "scores": over_tokens},
        "re-ordered": {
            "queries": queries + count_multiplies(lambda: q @ W_K.mT),
            "keys": 0,
            "scores": over_tokens,
        },
    }


def bill_figure(bills: Mapping[str, Mapping[str, int]]) -> Figure:
    """Each product as a block whose area is its multiplications; kinds below each other.

    Args:
        bills: Way -> kind of product -> multiplications, of :func:`bill`.
    """
    once = bills["separate"]
    times = {
        way: {kind: count / once[kind] for kind, count in lines.items()}
        for way, lines in bills.items()
    }
    high = ROOM / max(max(one.values()) for one in times.values())
    fig, ax = plt.subplots(figsize=(6.6, 3.0))
    top = 0.0
    for way, lines in times.items():
        left, rows = 0.0, max(max(lines.values()) * high, 4)
        for kind, color in KINDS.items():
            ax.barh(-top, once[kind], -high * lines[kind], left, align="edge", color=COLORS[color])
            left += once[kind]
        total = sum(bills[way].values())
        said = f"{total / 1e6:,.0f} million" if total >= 1e8 else f"{total:,}"
        ax.text(1.02 * left, -top, f"{way}\n{said}", va="top", fontsize=11)
        top += rows + 2
    left = 0.0
    for kind, color in KINDS.items():
        if once[kind] > 0.05 * sum(once.values()):
            ax.text(left, 0.6, kind, color=COLORS[color], fontsize=11)
        left += once[kind]
    ax.set(xlim=(0, 1.3 * left), ylim=(-top, 2.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
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
    ax.set(xscale="log", xlabel="components of queries and keys, d")
    ax.set_ylabel("weight in the wrong place, %")
    ax.set_xticks(list(widths), [str(width) for width in widths])
    ax.minorticks_off()
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


SAID = {
    "separate": "two matrices",
    "merged": "one $M$ for each head",
    "identity": "$W_Q = I$",
    "narrow": "control: one component",
    "uniform": "control: even weights",
}


def right(record: Record, task: str, kind: str) -> np.ndarray:
    """Right answers of each training of ``qk_variants``, in per cent."""
    return 100 * record.values("test_accuracy", task=task, model=kind)


def minus_separate(record: Record, kind: str) -> Interval:
    """Points on pointer that a kind has more than two matrices, paired by seed."""
    other, base = ({"task": "pointer", "model": model} for model in (kind, "separate"))
    return Interval(*(100 * one for one in record.difference("test_accuracy", other, base)))


def kinds_table(record: Record) -> dict[str, Any]:
    """What kinds of scores learn, for :func:`~vitbook.book.table.show_table`."""
    rows = []
    for kind, said in SAID.items():
        paired = "–" if kind == "separate" else minus_separate(record, kind)
        learned = f"{(right(record, 'recall', kind) > 99).sum()} of {len(record.seeds)}"
        rows.append([said, right(record, "pointer", kind).mean(), paired, learned])
    paired = "pointer, minus separate"
    return {
        "rows": rows,
        "header": ["scores from", "pointer, %", paired, "recall, learned"],
        "best": SAID["narrow"],
        "of": paired,
        "formats": {paired: "+.1f"},
    }


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
