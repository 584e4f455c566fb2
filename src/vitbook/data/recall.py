"""Recall: a dot in every patch says which other patch is meant; every patch answers its colour."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitbook import require

PATCH = 8  # pixels
COLORS = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.6, 0.1], [0.1, 0.2, 0.8], [0.8, 0.7, 0.1]])
PARTNERS = ("named", "right", "labelled")


class Recall(NamedTuple):
    """What ``recall`` returns; S = 8 * side, N = side ** 2.

    Args:
        images: (n, 3, S, S) float in [0, 1].
        labels: int64 (n, N), for each patch the colour of its partner, 0 ... 3.
        colors: int64 (n, N), for each patch its own colour.
        targets: int64 (n, N), for each patch the one that its white dot names, never itself.
        names: int64 (n, N), what each patch is called: its place, or its label.
    """

    images: Tensor
    labels: Tensor
    colors: Tensor
    targets: Tensor
    names: Tensor


def recall(
    n: int, seed: int = 0, *, side: int = 4, partner: str = "named", noise: float = 0.1
) -> Recall:
    """Draw grids of coloured patches; each is a small map of the grid with a white dot.

    The patch where the dot would lie on the large grid is the one that is named. Each colour is
    equally frequent in every image, so that counting says nothing.

    Args:
        n: Number of images.
        seed: The same seed gives the same images.
        side: Patches in a row: 2, 4 or 8.
        partner: Whose colour a patch is asked for. "named": of the patch that its dot names by its
            place. "right": of its neighbour on the right; at the edge, where there is none, its
            own. "labelled": of the patch that carries the dot as its label: every patch has a black
            dot, too, in a place of its own that is drawn anew for each image, and the white dot
            names the patch whose black dot lies there.
        noise: Standard deviation of the noise on every pixel.

    Returns:
        :class:`Recall`; with "named" and "right" the same images, with "labelled" their colours and
        targets and other dots.
    """
    n = require.whole("n", n, at_least=0)
    require.one_of("side", side, (2, 4, 8))
    require.one_of("partner", partner, PARTNERS)
    N, random = side**2, torch.Generator().manual_seed(require.whole("seed", seed, at_least=0))
    colors = torch.rand(n, N, generator=random).argsort(dim=1) % len(COLORS)
    place = torch.arange(N)
    targets = (place + torch.randint(1, N, (n, N), generator=random)) % N
    names = place.expand(n, N)
    if partner == "labelled":
        names = torch.rand(n, N, generator=random).argsort(dim=1)
    neighbours = (place + (place % side < side - 1)).expand(n, N)
    labels = colors.gather(1, neighbours if partner == "right" else targets)
    cells = COLORS[colors][..., None, None].expand(-1, -1, -1, PATCH, PATCH)  # (n, N, 3, P, P)
    if partner == "labelled":
        cells = cells * (1 - _dots(names, side))
    cells = torch.maximum(cells, _dots(names.gather(1, targets), side))
    grid = cells.unflatten(1, (side, side)).permute(0, 3, 1, 4, 2, 5)  # (n, 3, rows, P, columns, P)
    images = grid.reshape(n, 3, side * PATCH, side * PATCH)
    images = (images + noise * torch.randn(images.shape, generator=random)).clamp(0, 1)
    return Recall(images, labels, colors, targets, names)


def _dots(places: Tensor, side: int) -> Tensor:
    """Places (n, N) on a map of the grid -> 1 where the dot lies, 0 elsewhere (n, N, 1, P, P)."""
    dots = nn.functional.one_hot(places, side**2).float().unflatten(2, (1, side, side))
    return dots.repeat_interleave(PATCH // side, dim=3).repeat_interleave(PATCH // side, dim=4)
