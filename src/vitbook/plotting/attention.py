"""Pictures of attention: over the image, as a matrix, layer by layer, by distance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitbook.plotting import require
from vitbook.plotting.colormaps import ATTENTION, SIGNED, oklab
from vitbook.plotting.images import draw_image, ink
from vitbook.plotting.style import COLORS, bare, style

OVERLAY_TOP = 0.55  # how far up the scale an overlay goes, so that dark pixels stay visible on it


@style()
def show_attention(
    image: ArrayLike,
    maps: ArrayLike,
    *,
    row_labels: Sequence[object] | None = None,
    column_labels: Sequence[object] | None = None,
    shared_scale: bool = False,
    invert: bool | None = None,
    width: float = 6.5,
) -> Figure:
    """Attention over the image: one row of panels for each layer, one column for each head.

    Args:
        image: (H, W), (C, H, W) or (H, W, C); 1 or 3 channels.
        maps: What one token takes from each patch (L, h, rows, columns), not negative.
        row_labels: L texts instead of "layer 1", "layer 2", ...
        column_labels: h texts instead of "head 1", "head 2", ...
        shared_scale: Whether all panels share one scale. Else the darkest patch of each panel is
            that panel's maximum, which stands below it.
        invert: Whether the image is drawn as a negative, so that bright strokes become ink on
            paper; by default, images with one channel are.
        width: Width of the figure in inches.
    """
    pixels = require.image("image", image)
    maps = _weights("maps", maps, "(L, h, rows, columns)")
    L, h = maps.shape[:2]
    row_labels = require.labels("row_labels", row_labels, L, "layer")
    column_labels = require.labels("column_labels", column_labels, h, "head")
    side = (width - 0.7) / h * pixels.shape[0] / pixels.shape[1]
    fig = Figure(figsize=(width, L * (side + (0.08 if shared_scale else 0.24)) + 0.3))
    axes = fig.subplots(L, h, squeeze=False)
    for layer in range(L):
        for head in range(h):
            ax, panel = axes[layer, head], maps[layer, head]
            draw_overlay(ax, pixels, panel, maps.max() if shared_scale else panel.max(), invert)
            if not shared_scale:
                ax.set_xlabel(f"max {_digits(panel.max())}", fontsize=12, labelpad=2)
            if layer == 0:
                ax.set_title(column_labels[head], loc="center", fontsize=12, pad=4)
            if head == 0:
                ax.set_ylabel(row_labels[layer], fontsize=12, labelpad=4)
    return fig


@style()
def show_rollout(
    image: ArrayLike,
    rollouts: ArrayLike,
    *,
    labels: Sequence[object] | None = None,
    invert: bool | None = None,
    width: float = 6.5,
) -> Figure:
    """The image, and next to it what has flowed into one token after each layer.

    Args:
        image: (H, W), (C, H, W) or (H, W, C); 1 or 3 channels.
        rollouts: The share of each patch after each layer (L, rows, columns), not negative.
        labels: L texts instead of "after layer 1", ...
        invert: As for ``show_attention``.
        width: Width of the figure in inches.
    """
    pixels = require.image("image", image)
    rollouts = _weights("rollouts", rollouts, "(L, rows, columns)")
    L = len(rollouts)
    labels = require.labels("labels", labels, L, "after layer")
    columns = min(L + 1, 5)
    rows = -(-(L + 1) // columns)
    side = width / columns * pixels.shape[0] / pixels.shape[1]
    fig = Figure(figsize=(width, rows * (side + 0.45)))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    bare(axes[0])
    draw_image(axes[0], 1 - pixels if _inverted(pixels, invert) else pixels)
    axes[0].set_title("image", loc="center", fontsize=12, pad=4)
    for ax, rollout, label in zip(axes[1:], rollouts, labels, strict=False):
        draw_overlay(ax, pixels, rollout, rollout.max(), invert)
        ax.set_title(label, loc="center", fontsize=12, pad=4)
        ax.set_xlabel(f"max {_digits(rollout.max())}", fontsize=12, labelpad=2)
    for ax in axes[L + 1 :]:
        ax.set_visible(False)
    return fig


@style()
def show_attention_matrix(
    weights: ArrayLike,
    *,
    query_labels: Sequence[object] | None = None,
    key_labels: Sequence[object] | None = None,
    values: bool | None = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """A matrix of queries by keys: each row says what one token takes from the others.

    Scores may be negative: then blue is below zero and orange above.

    Args:
        weights: (N_q, N_k), finite.
        query_labels: N_q texts for the rows; numbers from 0 by default.
        key_labels: N_k texts for the columns; the query labels where they fit, else numbers.
        values: Whether each cell holds its number; by default, up to 8 columns do.
        title: A line above the matrix.
        width: Width of the figure in inches.
    """
    weights = require.array("weights", weights, "(N_q, N_k)")
    Nq, Nk = weights.shape
    if key_labels is None and query_labels is not None and Nq == Nk:
        key_labels = query_labels
    values = Nk <= 8 if values is None else values
    width = min(6.0, 1.6 + 0.7 * Nk) if width is None else width
    fig = Figure(figsize=(width, (width - 1.4) * Nq / Nk + (1.1 if title else 0.8)))
    ax = fig.subplots()
    top = np.abs(weights).max() or 1.0
    signed = weights.min() < 0
    scale: dict[str, Any] = (
        {"cmap": SIGNED, "vmin": -top, "vmax": top}
        if signed
        else {"cmap": ATTENTION, "vmin": 0, "vmax": top}
    )
    drawn = ax.imshow(weights, interpolation="nearest", **scale)
    _name_axis(ax.xaxis, "key_labels", key_labels, Nk)
    _name_axis(ax.yaxis, "query_labels", query_labels, Nq)
    ax.set(xlabel="key", ylabel="query", title=title or "")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(Nk + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(Nq + 1) - 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    if Nk <= 32:
        ax.grid(which="minor", color="white", linewidth=1.5)
    if not values:
        fig.colorbar(drawn, ax=ax, shrink=0.8, label="weight" if not signed else "score")
        return fig
    for (q, k), value in np.ndenumerate(weights):
        lightness = oklab(np.array(drawn.to_rgba(value)[:3]))[0]
        ax.text(
            k,
            q,
            _short(value),
            ha="center",
            va="center",
            color="black" if lightness > 0.6 else "white",
        )
    return fig


@style()
def show_attention_distance(
    distances: ArrayLike, *, image_size: int | None = None, width: float = 6.0
) -> Figure:
    """How far each head looks, layer by layer: one dot for each head, a line through the means.

    Args:
        distances: Mean attention distances in pixels (L, h).
        image_size: Side of the image in pixels; draws a line there, as a measure.
        width: Width of the figure in inches.

    Source: after Dosovitskiy et al. 2021, figure 7 (right).
    """
    distances = _weights("distances", distances, "(L, h)")
    L, h = distances.shape
    layers = np.arange(1, L + 1)
    fig = Figure(figsize=(width, 3.4))
    ax = fig.subplots()
    ax.plot(layers, distances.mean(axis=1), color=COLORS["vermillion"], zorder=1)
    ax.annotate(
        "mean",
        (L, distances[-1].mean()),
        xytext=(10, 0),
        textcoords="offset points",
        color=COLORS["vermillion"],
        va="center",
    )
    ax.plot(layers, distances, "o", color=COLORS["blue"], markeredgecolor="white")
    if image_size is not None:
        ax.axhline(require.whole("image_size", image_size), color="#5b6473", ls=":", lw=1.2)
        ax.text(
            0.02, image_size, "side of the image", transform=ax.get_yaxis_transform(), va="bottom"
        )
    ax.set_xticks(layers)
    ax.set(xlabel="layer", ylabel="distance in pixels", xlim=(0.6, L + 0.4))
    ax.set_ylim(0, 1.12 * max(distances.max(), image_size or 0) or 1.0)
    ax.set_title(f"one dot for each of {h} heads")
    return fig


def draw_overlay(
    ax: Axes, pixels: np.ndarray, weights: np.ndarray, top: float, invert: bool | None
) -> None:
    """One panel: the weights as coloured patches, the image as ink on top of them."""
    bare(ax)
    H, W = pixels.shape[:2]
    rows, columns = weights.shape
    if H % rows or W % columns:
        raise ValueError(
            f"maps of {rows} x {columns} patches do not tile the image of {H} x {W} pixels"
        )
    heat = ATTENTION(OVERLAY_TOP * weights / (top or 1.0))[..., :3]  # (rows, columns, 3)
    heat = heat.repeat(H // rows, axis=0).repeat(W // columns, axis=1)  # (H, W, 3)
    seen = ink(1 - pixels if _inverted(pixels, invert) else pixels)
    ax.imshow(heat * seen[..., None], interpolation="nearest")


def _inverted(pixels: np.ndarray, invert: bool | None) -> bool:
    return pixels.ndim == 2 if invert is None else bool(invert)


def _weights(name: str, value: ArrayLike, axes: str) -> np.ndarray:
    value = require.array(name, value, axes)
    if value.min() < 0:
        raise ValueError(f"{name} must not be negative, got {value.min():g}")
    return value


def _name_axis(axis: Any, name: str, labels: Sequence[object] | None, count: int) -> None:
    if labels is not None:
        labels = require.labels(name, labels, count, "")
        axis.set_ticks(range(count), labels)
        if axis.axis_name == "x" and sum(map(len, labels)) > 42:
            axis.set_tick_params(rotation=60)
    elif count <= 12:
        axis.set_ticks(range(count))


def _digits(value: float) -> str:
    """Two decimals, or two significant digits: of many patches none has a hundredth, perhaps."""
    return f"{value:.2f}" if value == 0 or value >= 0.1 else f"{value:#.2g}"


def _short(value: float) -> str:
    """Two decimals, or "less than one" of the last for what is small but not nothing."""
    if value == 0 or abs(value) >= 0.005:
        return f"{value:.2f}".replace("-", "−")
    return "<0.01" if value > 0 else f"{value:.2f}".replace("-", "−")
