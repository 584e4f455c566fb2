"""Pixels as a network likes them, and random changes that keep the class."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vitbook import require

# Mean and standard deviation of each channel over the training images, pixels in 0 ... 1.
STATISTICS = {
    "digits": ((0.3052,), (0.3759,)),
    "mnist": ((0.1307,), (0.3081,)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}


def normalize(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Shift and scale each channel: (x - mean) / std. A small ViT learns much faster from this.

    Args:
        images: (n, C, H, W), float in [0, 1], or uint8 that stands for it.
        mean, std: One number for each channel, in the scale of [0, 1]; see ``STATISTICS``.

    Returns:
        Float (n, C, H, W).
    """
    if not isinstance(images, Tensor) or images.ndim != 4:
        raise ValueError("images must be a tensor with the axes (n, C, H, W)")
    offset, divisor = (
        torch.as_tensor(s, dtype=torch.float32, device=images.device) for s in (mean, std)
    )
    for name, value in (("mean", offset), ("std", divisor)):
        if value.shape != images.shape[1:2]:
            raise ValueError(
                f"{name} must have one number for each of the {images.shape[1]} channels, "
                f"got the shape {tuple(value.shape)}"
            )
    if not (divisor > 0).all():
        raise ValueError(f"std must be positive, got {divisor.tolist()}")
    scale = 1.0 if images.is_floating_point() else 255.0
    return (images / scale - offset[:, None, None]) / divisor[:, None, None]


def random_shift(
    images: Tensor, generator: torch.Generator, *, pixels: int, fill: float = 0.0
) -> Tensor:
    """Move each image by its own whole number of pixels; what comes in is ``fill``.

    Args:
        images: (B, C, H, W).
        generator: Where the shifts come from, on the CPU whatever device the images are on.
        pixels: The largest shift in each direction (padding, then a random crop).
        fill: The value of the padding; black is no longer 0 in normalised images.

    Returns:
        (B, C, H, W).
    """
    B, _, H, W = require.floats("images", images, "(B, C, H, W)").shape
    require.whole("pixels", pixels, at_least=0)
    padded = F.pad(images, [pixels] * 4, value=require.real("fill", fill))
    shift = torch.randint(2 * pixels + 1, (2, B, 1, 1), generator=generator).to(images.device)
    rows = shift[0] + torch.arange(H, device=images.device)[:, None]  # (B, H, 1)
    columns = shift[1] + torch.arange(W, device=images.device)  # (B, 1, W)
    batch = torch.arange(B, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[batch, rows, columns].permute(0, 3, 1, 2)  # (B, C, H, W)


def random_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image left to right, or not: (B, C, H, W) -> (B, C, H, W)."""
    require.floats("images", images, "(B, C, H, W)")
    mirrored = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


def augmentation(*, shift: int = 0, flip: bool = False, fill: float = 0.0) -> Callable | None:
    """What ``train`` takes as ``augment``: shifts, then flips; None if neither is asked for."""
    require.whole("shift", shift, at_least=0)
    require.truth("flip", flip)
    if not shift and not flip:
        return None

    def augment(images: Tensor, generator: torch.Generator) -> Tensor:
        if shift:
            images = random_shift(images, generator, pixels=shift, fill=fill)
        return random_flip(images, generator) if flip else images

    return augment
