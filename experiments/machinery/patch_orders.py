"""The patches of images in another order, or some of them blank."""

import torch
from torch import Tensor

from vitbook.layers.patches import patchify, unpatchify


def reordered(images: Tensor, patch: int, orders: Tensor) -> Tensor:
    """Images (n, C, H, H) with patch orders[i, t] of image i at place t; orders (n, N) or (N,)."""
    patches = patchify(images, patch)  # (n, N, C * P * P)
    index = orders.expand(len(images), -1)[..., None].expand_as(patches)
    return unpatchify(patches.gather(1, index), patch, images.shape[-1], images.shape[1])


def shuffled(images: Tensor, patch: int, generator: torch.Generator) -> Tensor:
    """Each image with its patches in an order of its own."""
    return reordered(images, patch, _orders(images, patch, generator))


def dropped(images: Tensor, patch: int, share: float, generator: torch.Generator) -> Tensor:
    """Images with that share of their patches blank: zero, the mean of normalized images."""
    orders = _orders(images, patch, generator)  # (n, N)
    kept = patchify(images, patch) * (orders >= round(share * orders.shape[1]))[..., None]
    return unpatchify(kept, patch, images.shape[-1], images.shape[1])


def _orders(images: Tensor, patch: int, generator: torch.Generator) -> Tensor:
    shape = len(images), (images.shape[-1] // patch) ** 2
    return torch.rand(shape, generator=generator).argsort(dim=1)
