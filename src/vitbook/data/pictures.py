"""One picture file as the pixels a model takes; what had to be done to it is told."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vitbook import require

if TYPE_CHECKING:
    from PIL import Image

SMALLEST = 8  # pixels of the shorter side; from fewer nothing can be learned
ORIENTATION = 0x0112  # EXIF's tag: how the camera was held


class PictureError(ValueError):
    """A file that gives no picture; the message says why."""


class Picture(NamedTuple):
    """Pixels uint8 (C, S, S), and what was done to them, a few words each."""

    pixels: Tensor
    remarks: tuple[str, ...]


def read_picture(path: str | Path, size: int, channels: int = 3) -> Picture:
    """Read a picture, scale its shorter side to ``size`` and cut out the middle.

    Cameras' rotation is undone; CMYK, palettes and 16 bits become 8 bits of red, green and blue;
    what is transparent stands on white; of an animation the first frame is taken.

    Args:
        path: A file of any kind that Pillow reads.
        size: S, in pixels.
        channels: 3, or 1 for grey.

    Returns:
        Picture(pixels, remarks).

    Raises:
        PictureError: No picture, a damaged one, or one with fewer than 8 pixels on a side.
        ValueError: No such file, or a size or number of channels that cannot be.
    """
    from PIL import Image, ImageOps

    require.whole("size", size)
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, got {channels!r}")
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the picture files in it")
    if not path.is_file():
        raise ValueError(f"there is no picture file {path}")
    remarks = []
    try:
        with Image.open(path) as opened:
            if getattr(opened, "n_frames", 1) > 1:
                remarks.append("an animation: its first frame")
            if opened.getexif().get(ORIENTATION, 1) != 1:
                remarks.append("rotated by its camera: turned upright")
            picture = ImageOps.exif_transpose(opened)
            picture.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise PictureError(f"cannot be read as a picture ({error})") from None
    if min(picture.size) < SMALLEST:
        raise PictureError(
            f"has {picture.width} x {picture.height} pixels, fewer than {SMALLEST} on a side"
        )
    picture, what = _eight_bits(picture, channels)
    remarks += what
    if min(picture.size) < size:
        remarks.append("smaller than the model's images: enlarged")
    picture = ImageOps.fit(picture, (size, size), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(picture)).reshape(size, size, channels)
    return Picture(pixels.permute(2, 0, 1).contiguous(), tuple(remarks))


def _eight_bits(picture: "Image.Image", channels: int) -> tuple["Image.Image", list[str]]:
    """A picture in grey or red, green and blue of 8 bits, and what had to be converted."""
    from PIL import Image

    remarks = []
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        values = np.asarray(picture, dtype=np.float64)
        top = 65535.0 if picture.mode != "F" else float(max(values.max(), 1.0))
        picture = Image.fromarray((values / top * 255).clip(0, 255).round().astype(np.uint8))
        remarks.append("16 bits: scaled to 8")
    elif picture.mode == "CMYK":
        remarks.append("CMYK: converted")
    if picture.has_transparency_data:
        whole = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole)
        remarks.append("transparent parts: on white")
    elif channels == 3 and not remarks and picture.mode in ("1", "L"):
        remarks.append("grey: all three channels alike")
    return picture.convert("RGB" if channels == 3 else "L"), remarks
