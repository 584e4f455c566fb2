"""Colour scales whose lightness changes evenly, so that they also read in grey."""

import numpy as np
from matplotlib.colors import ListedColormap, to_rgb

# From the colour of paper through orange to dark brown; only hue and chroma are taken from these,
# lightness is set evenly between the two ends.
_ATTENTION = ("#f4f6fa", "#fcd9a8", "#f9a94b", "#ee7d16", "#c3500a", "#8a3206", "#561c04")
_NEGATIVE = ("#f4f6fa", "#cfe0f3", "#9bc1e8", "#5d9dd6", "#2f77b5", "#175387", "#0b3358")

# Ottosson (2020), "A perceptual color space for image processing": linear sRGB <-> OKLab.
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """OKLab (lightness, green-red, blue-yellow) of sRGB colours (..., 3) from 0 to 1."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T


def srgb(lab: np.ndarray) -> np.ndarray:
    """sRGB colours from 0 to 1 of OKLab colours (..., 3); what no screen shows is cut off."""
    linear = (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
    linear = linear.clip(0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def _even(stops: tuple[str, ...], n: int = 256) -> np.ndarray:
    """n colours (n, 3) along the stops, evenly spaced in lightness."""
    lab = oklab(np.array([to_rgb(stop) for stop in stops]))
    lightness = np.linspace(lab[0, 0], lab[-1, 0], n)
    rest = [np.interp(-lightness, -lab[:, 0], lab[:, axis]) for axis in (1, 2)]
    return srgb(np.stack([lightness, *rest], axis=-1)).round(6)


# For what is never negative, such as attention: from the colour of paper to dark brown.
ATTENTION = ListedColormap(_even(_ATTENTION), name="vitbook_attention")
# For what may be negative, such as scores: blue below zero, orange above.
SIGNED = ListedColormap(
    np.concatenate([_even(_NEGATIVE, 128)[::-1], _even(_ATTENTION, 128)]), name="vitbook_signed"
)
