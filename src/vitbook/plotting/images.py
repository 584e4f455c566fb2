"""Pictures of images and of their patches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from vitbook.plotting import require
from vitbook.plotting.style import INK, bare, style


@style()
def show_images(
    images: ArrayLike,
    titles: Sequence[str] | None = None,
    *,
    columns: int | None = None,
    width: float = 6.0,
) -> Figure:
    """Images side by side.

    Args:
        images: (n, H, W), (n, C, H, W) or (n, H, W, C); 1 or 3 channels.
        titles: n short texts, one above each image.
        columns: How many stand in one row; all of them up to 8 by default.
        width: Width of the figure in inches.
    """
    pixels = [require.image("images", one) for one in _one_by_one(images)]
    n = len(pixels)
    titles = [""] * n if titles is None else require.labels("titles", titles, n, "")
    columns = min(n, 8) if columns is None else require.whole("columns", columns)
    rows = -(-n // columns)
    H, W = pixels[0].shape[:2]
    line = 0.25 if any(titles) else 0.08
    fig = Figure(figsize=(width, rows * (width / columns * H / W + line)))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes:
        bare(ax)
    for ax, one, title in zip(axes, pixels, titles, strict=False):
        draw_image(ax, one)
        ax.set_title(title, loc="center", pad=3)
    for ax in axes[n:]:
        ax.set_visible(False)
    return fig


@style()
def show_patches(
    image: ArrayLike,
    patch_size: int | tuple[int, int],
    *,
    numbers: bool | None = None,
    width: float = 6.0,
) -> Figure:
    """An image with its patch borders, and the patches pulled apart in reading order.

    Args:
        image: (H, W), (C, H, W) or (H, W, C); 1 or 3 channels.
        patch_size: P, or (height, width) of a patch; divides the image.
        numbers: Whether each patch carries its index in the sequence; by default, up to 64 do.
        width: Width of the figure in inches.
    """
    pixels = require.image("image", image)
    H, W = pixels.shape[:2]
    height, breadth = require.pair("patch_size", patch_size)
    if H % height or W % breadth:
        raise ValueError(f"patch_size {height} x {breadth} must divide the image, {H} x {W}")
    rows, columns = H // height, W // breadth
    numbers = rows * columns <= 64 if numbers is None else numbers
    gap = 0.18  # between patches, in patches
    fig = Figure(figsize=(width, width / 2 * H / W * 1.04 + 0.3))
    whole, apart = fig.subplots(1, 2, width_ratios=(1, 1 + gap / 2))
    for ax in (whole, apart):
        bare(ax)
        ax.set_anchor("N")
    draw_image(whole, pixels)
    whole.hlines(np.arange(1, rows) * height - 0.5, -0.5, W - 0.5, color="#0072B2", lw=1)
    whole.vlines(np.arange(1, columns) * breadth - 0.5, -0.5, H - 0.5, color="#0072B2", lw=1)
    whole.set_title(f"{H} × {W} pixels")
    vmax = {"vmin": 0, "vmax": 1, "cmap": "gray", "interpolation": "nearest"}
    for n in range(rows * columns):
        r, c = divmod(n, columns)
        top, left = r * (1 + gap), c * (1 + gap)
        patch = pixels[r * height : (r + 1) * height, c * breadth : (c + 1) * breadth]
        apart.imshow(patch, extent=(left, left + 1, top + 1, top), **vmax)
        if numbers:
            apart.text(left + 0.06, top + 0.04, str(n), va="top", fontsize=12, **_readable(patch))
    apart.set(xlim=(0, columns * (1 + gap) - gap), ylim=(rows * (1 + gap) - gap, 0))
    apart.set_aspect(height / breadth)
    apart.set_title(f"{rows * columns} patches of {height} × {breadth}")
    return fig


def ink(pixels: np.ndarray) -> np.ndarray:
    """An image as grey ink (H, W) under which a map's colours stay readable when multiplied.

    A drawing keeps its dark strokes. A photograph is lifted into its top third of lightness, or
    the strongest patch would drown where the photograph is dark.
    """
    if pixels.ndim == 2:
        return 0.15 + 0.85 * pixels
    return (2 + pixels @ (0.2126, 0.7152, 0.0722)) / 3


def draw_image(ax: Axes, pixels: np.ndarray) -> None:
    """One image, grey or in colour, with the same black and white in every panel."""
    ax.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")


def _readable(patch: np.ndarray) -> dict:
    """A number on a plate of its own, so that it is readable on any pixels."""
    return {
        "color": INK,
        "bbox": {"boxstyle": "round,pad=0.12", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
    }


def _one_by_one(images: Any) -> list:
    if hasattr(images, "ndim") and images.ndim not in (3, 4):
        raise ValueError(f"images must have the axes (n, H, W) or (n, C, H, W), got {images.shape}")
    images = list(images)
    if not images:
        raise ValueError("images is empty; there is nothing to draw")
    return images
