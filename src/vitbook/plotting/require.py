"""Accept NumPy arrays, CPU or GPU tensors and nested lists; refuse what cannot be drawn."""

from typing import Any

import numpy as np


def array(name: str, value: Any, *axes: str) -> np.ndarray:
    """``value`` as a finite float array with one of the given axes, for example "(L, h, H, W)"."""
    if hasattr(value, "detach"):  # a tensor, without importing torch
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value
    try:
        result = np.asarray(value)
        result = result.astype(float) if result.dtype != np.uint8 else result / 255
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be an array of numbers, got {type(value).__name__}"
        ) from error
    if axes and result.ndim not in [len(axis.strip("(,)").split(",")) for axis in axes]:
        raise ValueError(f"{name} must have the axes {' or '.join(axes)}, got {result.shape}")
    if result.size == 0:
        raise ValueError(f"{name} is empty, its shape is {result.shape}; there is nothing to draw")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got nan or infinity")
    return result


def image(name: str, value: Any) -> np.ndarray:
    """One image as (H, W) or (H, W, 3) from 0 to 1.

    Channels may come first, as in PyTorch, or last. Values outside 0 ... 1 (a normalised image)
    are stretched so that the smallest becomes 0 and the largest 1.
    """
    pixels = array(name, value, "(H, W)", "(C, H, W)")
    if pixels.ndim == 3:
        if pixels.shape[0] in (1, 3):
            pixels = pixels.transpose(1, 2, 0)  # (H, W, C)
        if pixels.shape[2] not in (1, 3):
            raise ValueError(f"{name} must have 1 or 3 channels, got the shape {pixels.shape}")
        pixels = pixels[..., 0] if pixels.shape[2] == 1 else pixels
    low, high = pixels.min(), pixels.max()
    if low < 0 or high > 1:
        pixels = (pixels - low) / (high - low) if high > low else np.full_like(pixels, 0.5)
    return pixels


def labels(name: str, value: Any, count: int, default: str) -> list[str]:
    """``count`` labels; without a value the default word and a number that starts at 1."""
    if value is None:
        return [f"{default} {i + 1}" for i in range(count)]
    value = [str(label) for label in value]
    if len(value) != count:
        raise ValueError(f"{name} must hold {count} labels, got {len(value)}")
    return value


def whole(name: str, value: Any, at_least: int = 1) -> int:
    """A whole number not below ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {value!r} ({type(value).__name__})")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    return int(value)


def pair(name: str, value: Any) -> tuple[int, int]:
    """(rows, columns), or one whole number for a square."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"{name} must be one number or (rows, columns), got {value!r}")
        return whole(f"{name}[0]", value[0]), whole(f"{name}[1]", value[1])
    return whole(name, value), whole(name, value)
