"""Pointer: the glyph in the first cell names another cell; the class is the glyph found there."""

from typing import NamedTuple

import torch
from torch import Tensor

from vitbook import require
from vitbook.data.glyphs import covered_patches, glyphs, require_jitter, stamp

CELL = 8


class Pointer(NamedTuple):
    """What ``pointer`` returns; S = 8 * cells_per_side.

    Args:
        images: (n, 1, S, S) float in [0, 1].
        labels: int64 (n,), the kind of the glyph that is pointed at, 0 ... num_classes - 1.
        targets: int64 (n,), the cell that is pointed at, 1 ... cells_per_side ** 2 - 1.
        kinds: int64 (n, cells), the glyph in each cell; cell 0 holds the pointer.
    """

    images: Tensor
    labels: Tensor
    targets: Tensor
    kinds: Tensor

    def target_patches(self, patch_size: int) -> Tensor:
        """Which patches touch the cell that is pointed at, boolean (n, N)."""
        size = self.images.shape[-1]
        row, column = self.targets // (size // CELL), self.targets % (size // CELL)
        boxes = torch.stack([row, column, row + 1, column + 1], dim=-1) * CELL
        return covered_patches(boxes, size, patch_size)


def pointer(
    n: int,
    seed: int = 0,
    *,
    cells_per_side: int = 3,
    num_classes: int = 4,
    noise: float = 0.1,
    jitter: int = 0,
) -> Pointer:
    """Draw grids of glyphs in which the first one says where the answer stands.

    With k = cells_per_side the pointer is one of k * k - 1 glyphs: glyph number j in the first
    cell names cell j + 1 (row-major). Every other cell holds one of num_classes glyphs.

    Args:
        n: Number of images.
        seed: The same seed gives the same images.
        cells_per_side: 2, 3 or 4.
        num_classes: How many kinds stand in the other cells, 2 ... 16.
        noise, jitter: As in :func:`~vitbook.data.matching_pairs`.

    Returns:
        :class:`Pointer`.
    """
    n = require.whole("n", n, at_least=0)
    require.one_of("cells_per_side", cells_per_side, (2, 3, 4))
    glyphs(num_classes)
    if not 0 <= require.real("noise", noise) <= 1:
        raise ValueError(f"noise must be between 0 and 1, got {noise}")
    jitter = require_jitter(jitter)
    random = torch.Generator().manual_seed(require.whole("seed", seed, at_least=0))
    cells = cells_per_side**2
    targets = torch.randint(1, cells, (n,), generator=random)
    kinds = torch.randint(num_classes, (n, cells), generator=random)
    labels = kinds.gather(1, targets[:, None])[:, 0]
    kinds[:, 0] = targets - 1
    offset = (3 - jitter) // 2 + torch.randint(jitter + 1, (n, cells, 2), generator=random)
    images = torch.zeros(n, 1, cells_per_side * CELL, cells_per_side * CELL)
    for cell in range(cells):
        row, column = divmod(cell, cells_per_side)
        top, left = row * CELL + offset[:, cell, 0], column * CELL + offset[:, cell, 1]
        stamp(images, kinds[:, cell], top, left)
    images = (images + noise * torch.randn(images.shape, generator=random)).clamp(0, 1)
    return Pointer(images, labels, targets, kinds)
