"""One picture as the pixels a model takes; what had to be done to it is told.

Every command and function that opens a picture does it here, so that a file is the same to all.
"""

import hashlib
import io
import re
import warnings
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vitbook import require
from vitbook.files import ends_with_zeros, what_instead

if TYPE_CHECKING:
    from PIL import Image

PIXELS = "pixels:"  # how a key of pixels begins; their size follows
SMALLEST = 8  # pixels of the shorter side; from fewer nothing can be learned
ORIENTATION = 0x0112  # EXIF's tag: how the camera was held
UPRIGHT = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # its value -> Pillow's Image.Transpose
PLAIN = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX")  # modes of which convert loses nothing
# What several pictures in a file are; of MPO the second is of the other eye, or smaller.
FRAMES = {"TIFF": "several pages: the first", "MPO": ""}
SAMPLES, FORMAT, PHOTOMETRIC, SIGNED = 277, 339, 262, 2  # tags of TIFF, and a value of FORMAT
NEGATIVE, SIGN = "vitbook: zero is white", "vitbook: one bit is the sign"
ON_WHITE = "transparent parts: on white"
GAMMA, NEAR = 1 / 2.2, 0.05  # of PNG: that of screens, and what share of it nobody sees
SAME = 3  # of 255: colours of a profile that differ less from those of screens are these
FOREIGN = ("EPS", "MPEG")  # Ghostscript runs what the file says; films are named, not decoded


class PictureError(ValueError):
    """A file that gives no picture; the message says why, ``kind`` without the numbers of one."""

    def __init__(self, message: str, kind: str = "cannot be read as a picture"):
        super().__init__(message)
        self.kind = kind


class Picture(NamedTuple):
    """Pixels uint8 (C, H, W), and what was done to them, a few words each."""

    pixels: Tensor
    remarks: tuple[str, ...]


def pixel_key(pixels: Tensor) -> str:
    """A key that is equal where the pixels (C, S, S) are, whatever file they are from."""
    told = hashlib.blake2b(pixels.contiguous().numpy().tobytes(), digest_size=16).hexdigest()
    return f"{PIXELS}{pixels.shape[-1]}:{told}"


def endings() -> frozenset[str]:
    """The endings, such as ".png", of files that Pillow and its plugins decode here."""
    from PIL import Image

    known = Image.registered_extensions()  # reads all plugins
    return frozenset(end for end, kind in known.items() if kind in _decoded())


def read_picture(
    picture: "str | Path | Image.Image",
    size: int | tuple[int, int],
    channels: int = 3,
    smallest: int = SMALLEST,
) -> Picture:
    """Read a picture, scale it to cover the size and cut out the middle.

    Cameras' rotation is undone; CMYK, palettes, other depths and colours of other profiles become
    sRGB of 8 bits; what is transparent stands on white; of an animation the first frame is taken.

    Args:
        picture: A file of any kind that Pillow reads, or an image of Pillow's.
        size: In pixels, of a square or (height, width).
        channels: 3, or 1 for grey.
        smallest: Pixels that its shorter side must have.

    Returns:
        Picture(pixels, remarks).

    Raises:
        PictureError: No picture, a damaged one, or one that is too small.
        ValueError: No such file, or a size or number of channels that cannot be.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    height, width = require.pair("size", size)
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, got {channels!r}")
    if not isinstance(picture, Image.Image):
        picture = _existing(Path(picture))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of decoders: what they could not read is refused
            upright, remarks = _upright(picture)
            if min(upright.size) >= smallest:
                told, mode = upright.info, "RGB" if channels == 3 else "L"
                upright, converted = _eight_bits(upright, mode)
                cut = ImageOps.fit(upright, (width, height), Image.Resampling.BICUBIC)
                cut, coloured = _in_srgb(cut, told)
                pixels = torch.from_numpy(np.array(cut.convert(mode)))
                pixels = pixels.reshape(height, width, channels)
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise PictureError(
            f"has more than {most:,} pixels, Pillow's limit", "too large to be opened"
        ) from None
    except Exception as error:  # decoders meet damage with errors of every kind
        if isinstance(error, OSError) and error.strerror:  # of the system, not of a decoder
            why = f"cannot be opened: {error.strerror.lower()}"
            raise PictureError(why, "cannot be opened") from None
        if instead := what_instead(picture) if isinstance(picture, Path) else "":
            why = f"cannot be read as a picture ({instead})"
            raise PictureError(why, why) from None
        why = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, UnidentifiedImageError):
            why = "of no kind that is read here; save it as PNG or JPEG"
        raise PictureError(f"cannot be read as a picture ({why})") from None
    if min(upright.size) < smallest:
        raise PictureError(
            f"has {upright.width} x {upright.height} pixels, fewer than {smallest} on a side",
            "too small",
        )
    remarks += converted + coloured
    if not 1 / 2 <= upright.width * height / (upright.height * width) <= 2:
        remarks.append("more than half of it is cut off: its middle is taken")
    if isinstance(picture, Path) and ends_with_zeros(picture):
        remarks.append("ends with zeros: was it all written?")
    if upright.width < width or upright.height < height:
        remarks.append("smaller than the model's images: enlarged")
    return Picture(pixels.permute(2, 0, 1).contiguous(), tuple(remarks))


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the picture files in it")
    if address := re.match(r"(https?|ftp|file):/", path.as_posix()):
        shown = path.as_posix().replace(address[0], f"{address[0]}/", 1)
        raise ValueError(f"{shown} is a web address: download the picture and name its file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file but a pipe or a device")
    if not path.is_file():
        raise ValueError(f"there is no picture file {path}")
    return path


def _decoded() -> list[str]:
    """The formats that Pillow decodes itself or by a plugin."""
    from PIL import Image

    Image.init()
    return [kind for kind in Image.OPEN if kind not in FOREIGN]


def _upright(picture: "Path | Image.Image") -> tuple["Image.Image", list[str]]:
    """The first frame with its pixels read, as it was seen, and remarks."""
    from PIL import Image

    opened = Image.open(picture, formats=_decoded()) if isinstance(picture, Path) else picture
    try:
        remarks = []
        frames = FRAMES.get(opened.format or "", "an animation: its first frame")
        if frames and getattr(opened, "n_frames", 1) > 1:
            remarks.append(frames)
        if any(";16" in str(tile[3]) for tile in getattr(opened, "tile", ())) and not _deep(opened):
            remarks.append("16 bits a channel: the upper 8")  # by Pillow's decoder
            if isinstance(clear := opened.info.get("transparency"), tuple):
                opened.info["transparency"] = tuple(number >> 8 for number in clear)
        # Pillow turns TIFF itself, and takes the tag; of others EXIF is asked when all is read
        told = _orientation(opened) if opened.format == "TIFF" else 1
        opened.load()
        if opened.format == "PNG" and isinstance(picture, Path):
            with Image.open(picture) as again:
                again.verify()  # its checksums, which loading passes over
        opened, more = _as_its_tags_say(opened)
        remarks += more
        left = _orientation(opened)
        if left is None:
            remarks.append("its EXIF cannot be read: taken as it lies")
        if told in UPRIGHT or left in UPRIGHT:
            remarks.append("rotated by its camera: turned upright")
        if left in UPRIGHT:
            return opened.transpose(Image.Transpose(UPRIGHT[left])), remarks
        return opened.copy(), remarks
    finally:
        if isinstance(picture, Path):
            opened.close()


def _as_its_tags_say(picture: "Image.Image") -> tuple["Image.Image", list[str]]:
    """A TIFF whose numbers Pillow took as they lie; ``info`` keeps what they mean."""
    from PIL import Image

    tags, remarks = getattr(picture, "tag_v2", {}), []
    if tags.get(SAMPLES, 1) > len(picture.getbands()):
        remarks.append("further channels: left out")
    signed = SIGNED in tags.get(FORMAT, ())
    if signed and not _deep(picture):
        raise ValueError("its bytes are signed numbers, which are not read")
    picture.info[NEGATIVE] = _deep(picture) and tags.get(PHOTOMETRIC) == 0
    picture.info[SIGN] = signed
    if picture.mode == "I" and not signed and (values := np.asarray(picture)).min() < 0:
        upper = Image.fromarray((values.view(np.uint32) >> 16).astype(np.uint16))
        upper.info.update(picture.info)
        return upper, [*remarks, "32 bits: the upper 16"]
    return picture, remarks


def _orientation(picture: "Image.Image") -> int | None:
    """What EXIF says of how the camera was held; None if it cannot be read."""
    try:
        return picture.getexif().get(ORIENTATION, 1)
    except Exception:  # a picture is a picture, whatever stands beside it
        return None


def _deep(picture: "Image.Image") -> bool:
    """Whether a grey picture holds numbers of more than 8 bits."""
    return picture.mode.startswith("I;16") or picture.mode in ("I", "F")


def _eight_bits(picture: "Image.Image", mode: str) -> tuple["Image.Image", list[str]]:
    """A picture of 8 bits without transparency, and what had to be converted.

    It is in the mode, but where a colour profile speaks of the numbers as they are.
    """
    from PIL import Image

    remarks, told = [], picture.info
    if _deep(picture):
        numbers = np.asarray(picture)
        values, remark = _scaled(numbers, told.get(SIGN, False))
        if told.get(NEGATIVE):
            values, remark = 255 - values, f"{remark}, zero is white"
        remarks.append(remark)
        if (clear := told.get("transparency")) is not None:
            values[numbers == clear] = 255
            remarks.append(ON_WHITE)
        picture = Image.fromarray(values)
    elif picture.mode not in PLAIN:
        remarks.append(f"{picture.mode}: converted")
    two = mode == "RGB" and len(picture.getcolors(2) or ()) == 2
    shades = " in two shades, as masks are" if two else ""
    if picture.has_transparency_data:
        whole = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole)
        remarks += [ON_WHITE] if np.asarray(whole)[..., 3].min() < 255 else []
    elif mode == "RGB" and not remarks and picture.mode in ("1", "L"):
        remarks, two = [f"grey{shades}: all three channels alike"], False
    remarks += [shades.strip()] if two else []
    if "icc_profile" in told:
        mode = picture.mode if picture.mode in ("L", "CMYK") else "RGB"
    return picture.convert(mode), remarks


def _in_srgb(picture: "Image.Image", told: dict) -> tuple["Image.Image", list[str]]:
    """A picture in the colours of screens, if its file has told that its numbers mean others."""
    from PIL import ImageCms

    if profile := told.get("icc_profile"):
        try:
            transform = _transform(profile, picture.mode)
            if transform is None:
                return picture, []
            return transform.apply(picture), ["colours of another profile: converted to sRGB"]
        except (ImageCms.PyCMSError, OSError):
            return picture, ["its colour profile cannot be used: read without it"]
    own = 0 if "srgb" in told else told.get("gamma", 0)
    if own and abs(own / GAMMA - 1) > NEAR:
        table = [round(255 * (i / 255) ** (GAMMA / own)) for i in range(256)]
        return picture.point(table * len(picture.getbands())), ["another gamma: that of sRGB"]
    return picture, []


@lru_cache(8)  # a camera's is in all its pictures, and takes longer than a small one
def _transform(profile: bytes, mode: str) -> Any:
    """From the colours of a profile to those of screens, None where they are the same."""
    from PIL import Image, ImageCms

    own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if mode != "RGB" and "sRGB" in ImageCms.getProfileDescription(own):
        return None
    transform = ImageCms.buildTransform(own, ImageCms.createProfile("sRGB"), mode, "RGB")
    if mode != "RGB":
        return transform
    colours = np.array([list(product((64, 128, 192), repeat=3))], dtype=np.uint8)  # (1, 27, 3)
    shown = np.asarray(transform.apply(Image.fromarray(colours)))
    return transform if np.abs(shown.astype(int) - colours).max() > SAME else None


def _scaled(values: Any, signed: bool) -> tuple[np.ndarray, str]:
    """Numbers of any range as bytes, and how: what range was meant, no such file says.

    Whole numbers are taken for those of the fewest bits (8, 10, 12 ...; 15 or 31 beside a sign)
    that hold the largest; fractions up to 1 as they are; others, and what is below zero, from the
    least to the largest.
    """
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("it holds no finite number")
    known = values[finite].astype(np.float64)
    low, high = float(known.min()), float(known.max())
    if values.dtype.kind in "iu" and low >= 0:
        bits = int(high).bit_length()
        bits = bits if signed and bits in (15, 31) else max(8, 2 * -(-bits // 2))
        low, top, remark = 0.0, 2.0**bits - 1, f"{bits} bits: scaled to 8"
    elif low >= 0 and high <= 1:
        low, top, remark = 0.0, 1.0, "fractions: 0 to 1 are black to white"
    else:
        top, remark = high, "other numbers: the least is black, the largest white"
    shown = np.where(finite, values, low).astype(np.float64)
    shown = (shown - low) / max(top - low, np.finfo(np.float64).tiny) * 255
    if not finite.all():
        remark += ", what is no number black"
    return shown.clip(0, 255).round().astype(np.uint8), remark
