"""The image that a command is asked about: one of a data set, or a picture file."""

import argparse
from pathlib import Path

from torch import Tensor

from vitbook.command.recipes import class_names, shape_of, statistics_of
from vitbook.command.runs import read_part
from vitbook.data import normalize, pictures


def read_image(options: argparse.Namespace, settings: dict, root: str | None) -> tuple[Tensor, str]:
    """The image that was asked for as the model takes it (C, H, W), and what to call it."""
    if options.image.isdecimal():
        number = int(options.image)
        (images, labels), titles, _ = read_part(options, settings, root)
        if number >= len(images):
            raise ValueError(
                f"IMAGE must be below {len(images)}, the number of {options.part} images, "
                f"got {number}"
            )
        name = class_names(settings)[labels[number]]
        image = images[number : number + 1].to("cpu")[0]
        called = f"{options.part} image {number}"
        called += f" ({titles[number]})" if settings["data"] == "folder" else ""
        return image, f"{called}, label {name}"
    image, remarks = read_picture(Path(options.image), settings, invert=options.invert)
    return image, f"{options.image}{remarks}"


def read_picture(path: Path, settings: dict, *, invert: bool = False) -> tuple[Tensor, str]:
    """A picture file as the model takes it (C, S, S), and in brackets what was done to it."""
    shape = shape_of(settings)
    try:
        pixels, remarks = pictures.read_picture(path, shape["image_size"], shape["in_channels"])
    except pictures.PictureError as error:
        raise ValueError(f"{path} {error}") from None
    image = pixels / 255
    image = normalize((1 - image if invert else image)[None], *statistics_of(settings))[0]
    return image, f" ({'; '.join(remarks)})" if remarks else ""
