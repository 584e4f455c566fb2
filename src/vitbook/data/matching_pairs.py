"""Matching pairs: are two glyphs far apart the same? Where attention could look is known."""

from typing import NamedTuple

import torch
from torch import Tensor

from vitbook import require
from vitbook.data.glyphs import GLYPH_SIZE, covered_patches, glyphs, require_jitter, stamp

IMAGE_SIZE, CELL = 32, 8  # glyphs stand inside the cells of a 4 x 4 grid


class MatchingPairs(NamedTuple):
    """What ``matching_pairs`` returns.

    Args:
        images: (n, 1, 32, 32) float in [0, 1].
        labels: int64 (n,); 1 = the two glyphs are the same.
        kinds: int64 (n, 2), which glyphs they are.
        boxes: int64 (n, 2, 4): top, left, bottom, right of both glyphs, the last two exclusive.
    """

    images: Tensor
    labels: Tensor
    kinds: Tensor
    boxes: Tensor

    def glyph_patches(self, patch_size: int) -> Tensor:
        """Which patches each of the two glyphs touches, boolean (n, 2, N)."""
        return covered_patches(self.boxes, IMAGE_SIZE, patch_size)


def matching_pairs(
    n: int, seed: int = 0, *, num_kinds: int = 16, noise: float = 0.15, jitter: int = 0
) -> MatchingPairs:
    """Draw images with two glyphs at least two cells apart; half of the pairs match.

    Every kind is equally frequent in both classes and all glyphs have the same ink, so one glyph
    alone says nothing about the class.

    Args:
        n: Number of images.
        seed: The same seed gives the same images.
        num_kinds: How many different glyphs there are, 2 ... 16.
        noise: Standard deviation of the noise on every pixel; the glyphs' ink is 1 on 0.
        jitter: How many places a glyph may take in each direction within its cell of 8 x 8
            pixels, less one: 0 (always the same) ... 3. With 3 a glyph looks 16 ways to a patch,
            which takes far longer to learn.

    Returns:
        :class:`MatchingPairs`.
    """
    n = require.whole("n", n, at_least=0)
    glyphs(num_kinds)  # refuses a senseless number
    if not 0 <= require.real("noise", noise) <= 1:
        raise ValueError(f"noise must be between 0 and 1, got {noise}")
    jitter = require_jitter(jitter)
    random = torch.Generator().manual_seed(require.whole("seed", seed, at_least=0))
    labels = torch.randperm(n, generator=random) % 2  # (n,) balanced
    first = torch.randint(num_kinds, (n,), generator=random)
    other = torch.randint(1, num_kinds, (n,), generator=random)  # a kind that differs
    kinds = torch.stack([first, (first + other * (1 - labels)) % num_kinds], dim=1)  # (n, 2)
    far = _far_cells()  # (pairs, 2)
    cells = far[torch.randint(len(far), (n,), generator=random)]  # (n, 2)
    offset = (3 - jitter) // 2 + torch.randint(jitter + 1, (n, 2, 2), generator=random)
    side = IMAGE_SIZE // CELL
    top_left = torch.stack([cells // side, cells % side], dim=-1) * CELL + offset  # (n, 2, 2)

    images = torch.zeros(n, 1, IMAGE_SIZE, IMAGE_SIZE)
    for i in range(2):
        stamp(images, kinds[:, i], top_left[:, i, 0], top_left[:, i, 1])
    images = (images + noise * torch.randn(images.shape, generator=random)).clamp(0, 1)
    return MatchingPairs(
        images, labels, kinds, torch.cat([top_left, top_left + GLYPH_SIZE], dim=-1)
    )


def _far_cells() -> Tensor:
    """All ordered pairs of cells of which neither touches the other, not even at a corner."""
    side = IMAGE_SIZE // CELL
    row, column = torch.arange(side**2) // side, torch.arange(side**2) % side
    apart = torch.maximum((row[:, None] - row).abs(), (column[:, None] - column).abs())
    return (apart >= 2).nonzero()  # (pairs, 2)
