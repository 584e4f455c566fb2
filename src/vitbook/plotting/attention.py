"""Pictures of attention over the image, layer by layer."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitbook.plotting import require
from vitbook.plotting.colormaps import ATTENTION
from vitbook.plotting.images import draw_image, ink
from vitbook.plotting.style import bare, style

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


def _digits(value: float) -> str:
    """Two decimals, or two significant digits: of many patches none has a hundredth, perhaps."""
    return f"{value:.2f}" if value == 0 or value >= 0.1 else f"{value:#.2g}"
