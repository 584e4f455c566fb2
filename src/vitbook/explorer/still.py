"""The picture that stands where the figure cannot start, and on paper."""

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

HEAT = np.array([[238, 241, 246], [253, 228, 198], [253, 194, 125], [245, 149, 52], [224, 96, 11]])
TOP = 6  # even shares at which the colour scale ends


def painted(pixels: np.ndarray, shown: np.ndarray, longest: int = 560) -> "Image.Image":
    """One map over its photograph.

    Args:
        pixels: Bytes (H, W, 3).
        shown: Weights (rows, columns) in even shares.
        longest: Pixels of the longer side, about.
    """
    from PIL import Image

    rows, columns = shown.shape
    shares = shown.clip(0, TOP) / TOP * (len(HEAT) - 1)
    heat = np.stack([np.interp(shares, range(len(HEAT)), channel) for channel in HEAT.T], axis=-1)
    side = max(1, round(longest / max(rows, columns)))  # pixels of a patch
    heat = heat.repeat(side, axis=0).repeat(side, axis=1)
    grey = Image.fromarray(pixels).convert("L").resize((columns * side, rows * side))
    lifted = (2 / 3 + np.asarray(grey) / 255 / 3)[..., None]  # the top third of lightness
    return Image.fromarray((heat * lifted).round().astype(np.uint8))


def embedded(picture: "Image.Image") -> str:
    """A picture as the address that an ``img`` takes."""
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def still(pixels: np.ndarray, shown: np.ndarray) -> str:
    """HTML of one map over its photograph; arguments as for :func:`painted`."""
    return (
        f'<img alt="The map shown first, over the image, orange where a patch gets {TOP} even '
        f'shares or more." src="{embedded(painted(pixels, shown))}" '
        'style="display:block;width:100%;max-width:35rem;margin:0 0 1rem">'
    )
