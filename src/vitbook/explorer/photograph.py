"""A photograph as a model takes it, and the maps that the model then makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.data.pictures import PictureError, read_picture
from vitbook.data.transforms import normalize
from vitbook.inspection import attention_maps, find_num_prefix
from vitbook.inspection.patches import require_patches


@dataclass(frozen=True)
class Preparation:
    """How a model's images were prepared.

    Args:
        mean, std: One number for each channel, in the scale of [0, 1].
        size: (height, width) in pixels.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: tuple[int, int]

    def __str__(self) -> str:
        mean, std = (", ".join(f"{x:.4g}" for x in numbers) for numbers in (self.mean, self.std))
        return f"{self.size[0]} \u00d7 {self.size[1]} pixels, mean {mean}, std {std}"


@dataclass(frozen=True)
class Look:
    """What one look at a photograph gave: pixels (1, C, H, W) in 0 ... 1 and the maps of it."""

    pixels: Tensor
    maps: Tensor
    grid: tuple[int, int]
    num_prefix: int
    notes: list[str]


def look(
    model: nn.Module,
    photograph: Any,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | tuple[int, int] | None = None,
    num_prefix: int | None = None,
    layers: str | Sequence[str] | None = None,
) -> Look:
    """The maps of one photograph; arguments and errors are those of ``attention_explorer``."""
    known = preparation(model, mean, std, size)
    pixels, remarks = read_photograph(photograph, known.size, len(known.mean))
    weight = next(model.parameters(), torch.empty(0))
    x = normalize(pixels, known.mean, known.std).to(weight.device, weight.dtype)
    maps = attention_maps(model, x, layers).float().cpu()
    prefix = find_num_prefix(model) if num_prefix is None else num_prefix
    grid = require_patches(model, x, prefix, layers)
    notes = [f"The model saw {known}."]
    if remarks:
        notes.append(f"The picture: {'; '.join(remarks)}.")
    if layers not in (None, "*"):
        notes.append(f"Only these layers are shown, and in the rollout: {layers}.")
    return Look(pixels, maps, grid, prefix, notes)


def preparation(
    model: nn.Module,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | tuple[int, int] | None = None,
) -> Preparation:
    """What is said, else what the model's ``pretrained_cfg`` says. Nothing is guessed.

    Raises:
        ValueError: Something is neither said nor known.
    """
    config = getattr(model, "pretrained_cfg", None)
    config = config if isinstance(config, Mapping) else {}
    known: dict[str, Any] = {
        "mean": config.get("mean") if mean is None else mean,
        "std": config.get("std") if std is None else std,
        "size": (config.get("input_size") or (None,))[1:] if size is None else size,
    }
    if missing := [name for name, value in known.items() if not value]:
        raise ValueError(
            f"{' and '.join(missing)} of this model's images must be said, for example "
            "mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), size=224; take them from the "
            "model's training: other ones give plausible, wrong maps"
        )
    means, stds = (tuple(float(x) for x in known[name]) for name in ("mean", "std"))
    if len(means) != len(stds) or len(means) not in (1, 3):
        raise ValueError(
            f"mean and std must hold 1 or 3 numbers each, got {len(means)} and {len(stds)}"
        )
    if not all(0 <= x <= 1 for x in means) or not all(0 < x <= 1 for x in stds):
        raise ValueError(
            f"mean and std must lie in 0 to 1, as pixels do, got {means} and {stds}; of 0 to 255, "
            "divide them by 255"
        )
    return Preparation(means, stds, require.pair("size", known["size"]))


def read_photograph(
    photograph: Any, size: tuple[int, int], channels: int = 3
) -> tuple[Tensor, tuple[str, ...]]:
    """The middle of a photograph, scaled, (1, C, H, W) in 0 ... 1, and what was done to it.

    Args:
        photograph: A file, a PIL image, or pixels: (C, H, W) floats in 0 ... 1 or bytes, or an
            array of bytes (H, W, C).
        size: (height, width) to scale to.
        channels: 1 or 3.

    Raises:
        TypeError, ValueError: It is none of these, or no picture.
    """
    from PIL import Image

    name = "the photograph" if not isinstance(photograph, (str, Path)) else photograph
    if isinstance(photograph, Tensor):
        values = photograph.detach().cpu()
        values = values.mul(255).round().clamp(0, 255) if values.is_floating_point() else values
        photograph = values.byte().squeeze(0).movedim(0, -1).squeeze(-1).numpy()
    try:
        if isinstance(photograph, np.ndarray):
            photograph = Image.fromarray(photograph)
        picture = read_picture(photograph, size, channels, smallest=1)
    except TypeError as error:
        raise TypeError(f"photograph must be a file, an image or pixels ({error})") from None
    except PictureError as error:
        raise ValueError(f"{name} {error}") from None
    return picture.pixels[None].float() / 255, picture.remarks
