"""Objects on a larger canvas: which pixels are the object's is known."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vitbook import require


class PlacedObjects(NamedTuple):
    """What ``place_on_canvas`` returns.

    Args:
        images: (n, C, size, size) float in [0, 1].
        masks: Boolean (n, size, size), True for the object's pixels.
    """

    images: Tensor
    masks: Tensor

    def object_share(self, patch_size: int) -> Tensor:
        """Which share of each patch is the object's, (n, N) in reading order."""
        size = self.masks.shape[-1]
        if size % require.whole("patch_size", patch_size):
            raise ValueError(f"patch_size must divide the canvas of {size}, got {patch_size}")
        return F.avg_pool2d(self.masks.float()[:, None], patch_size).flatten(1)


def place_on_canvas(
    objects: Tensor, size: int, seed: int = 0, *, noise: float = 0.15, threshold: float = 0.1
) -> PlacedObjects:
    """Put each object somewhere on a dark, noisy canvas.

    Args:
        objects: (n, C, h, w) float in [0, 1], bright on dark.
        size: Side of the canvas in pixels, at least h and w.
        seed: The same seed gives the same places and the same noise.
        noise: Standard deviation of the noise on every pixel, object and canvas alike.
        threshold: A pixel is the object's where a channel is brighter than this.

    Returns:
        :class:`PlacedObjects`.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
    """
    n, C, h, w = require.floats("objects", objects, "(n, C, h, w)").shape
    if require.whole("size", size) < max(h, w):
        raise ValueError(f"size must be at least {max(h, w)}, the objects' side, got {size}")
    if not 0 <= require.real("noise", noise) <= 1:
        raise ValueError(f"noise must be between 0 and 1, got {noise}")
    random = torch.Generator().manual_seed(require.whole("seed", seed, at_least=0))
    top = torch.randint(size - h + 1, (n,), generator=random)
    left = torch.randint(size - w + 1, (n,), generator=random)
    rows = top[:, None, None] + torch.arange(h)[:, None]  # (n, h, 1)
    columns = left[:, None, None] + torch.arange(w)  # (n, 1, w)
    which = torch.arange(n)[:, None, None]
    images = torch.zeros(n, C, size, size)
    images[which, :, rows, columns] = objects.float().permute(0, 2, 3, 1)
    masks = (images > require.real("threshold", threshold)).any(dim=1)
    images = (images + noise * torch.randn(images.shape, generator=random)).clamp(0, 1)
    return PlacedObjects(images, masks)
