"""The image that a command is asked about: one of a data set, or a picture file."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitbook.command.recipes import SHAPES, load_part
from vitbook.data import STATISTICS, normalize


def read_image(options: argparse.Namespace, settings: dict, root: str | None) -> tuple[Tensor, str]:
    """The image that was asked for as the model takes it (C, H, W), and what to call it."""
    if options.image.isdecimal():
        number = int(options.image)
        images, labels = load_part(settings, options.part, options.root or root)
        if number >= len(images):
            raise ValueError(
                f"IMAGE must be below {len(images)}, the number of {options.part} images, "
                f"got {number}"
            )
        return images[number], f"{options.part} image {number}, label {int(labels[number])}"
    return read_picture(Path(options.image), settings, invert=options.invert), options.image


def read_picture(path: Path, settings: dict, *, invert: bool = False) -> Tensor:
    """A picture file, cut to a square and scaled to what the model was trained on, (C, S, S)."""
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        raise ValueError(f"IMAGE must be a picture file or a number, but there is no file {path}")
    shape = SHAPES[settings["data"]]
    try:
        picture = Image.open(path).convert("L" if shape["in_channels"] == 1 else "RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as a picture ({error})") from None
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    size = (shape["image_size"],) * 2
    picture = picture.crop((left, top, left + side, top + side)).resize(size, Image.Resampling.BOX)
    pixels = torch.tensor(np.asarray(picture), dtype=torch.float32).reshape(*size, -1) / 255
    pixels = (1 - pixels if invert else pixels).permute(2, 0, 1)  # (C, S, S)
    statistics = STATISTICS.get(settings["data"])
    return pixels if statistics is None else normalize(pixels[None], *statistics)[0]
