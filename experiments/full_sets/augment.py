"""Random changes of images for longer training, each with its own numbers for each image.

All randomness comes from the generator: `train` hands one to `augment` that depends on the step.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vitbook.data import STATISTICS
from vitbook.data.transforms import random_flip, random_shift


def random_affine(
    images: Tensor,
    generator: torch.Generator,
    *,
    degrees: float,
    zoom: float,
    pixels: float,
    fill: float = 0.0,
) -> Tensor:
    """Turn, scale and move each image: (B, C, H, W) -> (B, C, H, W), H = W.

    Args:
        images: Square ones.
        generator: On the CPU.
        degrees: The largest angle.
        zoom: The largest change of the scale; 0.1 is from 0.9 to 1.1 of the size.
        pixels: The largest shift in each direction, in pixels; any fraction of one.
        fill: What comes in at the edge.
    """
    B, _, H, _ = images.shape
    drawn = 2 * torch.rand(4, B, generator=generator) - 1  # (4, B) in -1 ... 1
    angle, size = drawn[0] * math.radians(degrees), 1 + drawn[1] * zoom
    shift = drawn[2:] * 2 * pixels / H  # (2, B); the grid goes from -1 to 1
    cos, sin = angle.cos() / size, angle.sin() / size
    rows = [torch.stack([cos, -sin, shift[0]]), torch.stack([sin, cos, shift[1]])]
    matrices = torch.stack(rows).permute(2, 0, 1)  # (B, 2, 3)
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    return F.grid_sample(images - fill, grid, align_corners=False) + fill


def random_erase(
    images: Tensor, generator: torch.Generator, *, sides: tuple[int, int], share: float = 1.0
) -> Tensor:
    """Put 0, the mean of normalised images, over a rectangle: (B, C, H, W) -> (B, C, H, W).

    Args:
        images: Normalised.
        generator: On the CPU.
        sides: The least and the largest height, and width, of the rectangle. Its centre is any
            pixel, so that a part of it may lie outside.
        share: Of the images that lose one.

    Source: DeVries and Taylor 2017; Zhong et al. 2020.
    """
    B, _, H, W = images.shape
    hidden = torch.rand(B, 1, generator=generator) < share  # (B, 1)
    stripes = []
    for length in (H, W):
        side = torch.randint(sides[0], sides[1] + 1, (B, 1), generator=generator)
        start = torch.randint(length, (B, 1), generator=generator) - side // 2
        place = torch.arange(length)
        stripes.append((place >= start) & (place < start + side))  # (B, length)
    mask = (stripes[0] & hidden)[:, :, None] & stripes[1][:, None, :]  # (B, H, W)
    return images.masked_fill(mask[:, None], 0.0)


def stronger(name: str) -> Callable[[Tensor, torch.Generator], Tensor]:
    """The augmentation of a data set, "mnist", "fashion-mnist" or "cifar10", for `train`."""
    mean, std = STATISTICS[name]
    black = -mean[0] / std[0]

    def mnist(images: Tensor, generator: torch.Generator) -> Tensor:
        return random_affine(images, generator, degrees=10, zoom=0.1, pixels=2, fill=black)

    def fashion(images: Tensor, generator: torch.Generator) -> Tensor:
        images = random_flip(random_shift(images, generator, pixels=2, fill=black), generator)
        return random_erase(images, generator, sides=(4, 12), share=0.5)

    def cifar(images: Tensor, generator: torch.Generator) -> Tensor:
        images = random_flip(random_shift(images, generator, pixels=4), generator)
        return random_erase(images, generator, sides=(8, 8))

    return {"mnist": mnist, "fashion-mnist": fashion, "cifar10": cifar}[name]
