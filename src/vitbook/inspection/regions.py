"""Attention by region: how far does each patch look, and how much of it goes to an object?"""

import torch
from torch import Tensor

from vitbook import require
from vitbook.inspection.maps import require_maps, require_region, require_tokens_fit


def query_distance(
    maps: Tensor,
    grid: int | tuple[int, int],
    patch_size: int | tuple[int, int],
    num_prefix: int = 1,
) -> Tensor:
    """How far each patch looks, in pixels, averaged over its weights.

    :func:`~vitbook.inspection.mean_attention_distance` is the mean of this over the patches.

    Args:
        maps: Attention weights (L, B, h, N, N).
        grid: (rows, columns) of patches, or one number for a square grid.
        patch_size: P in pixels, or (height, width) of a patch.
        num_prefix: How many tokens stand before the patches; they are left out.

    Returns:
        Distances between patch centres in pixels (L, B, h, N_patches); nan for a patch that looks
        at no patch.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
    """
    rows, columns = require_tokens_fit(maps, grid, num_prefix)
    height, width = require.pair("patch_size", patch_size)
    down = torch.arange(rows, device=maps.device).repeat_interleave(columns) * height
    right = torch.arange(columns, device=maps.device).repeat(rows) * width
    centres = torch.stack([down, right], dim=-1).to(maps.dtype)  # (N_patches, 2)
    distances = (centres[:, None] - centres).norm(dim=-1)  # (N_patches, N_patches)
    weights = maps[..., num_prefix:, num_prefix:]
    return (weights * distances).sum(dim=-1) / weights.sum(dim=-1)


def region_attention(maps: Tensor, queries: Tensor, keys: Tensor, num_prefix: int = 1) -> Tensor:
    """Which share of some patches' attention goes to some patches.

    Prefix tokens are left out, and the weights that remain are scaled to sum to one. So attention
    that is uniform gives the share of the keys among all patches.

    Args:
        maps: Attention weights (L, B, h, N, N).
        queries: Boolean (B, N_patches), True for the patches that look.
        keys: Boolean (B, N_patches), True for the patches that are looked at.
        num_prefix: How many tokens stand before the patches.

    Returns:
        Shares (L, B, h), the mean over an image's queries; nan for an image without one.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
    """
    require_maps(maps)
    for name, patches in (("queries", queries), ("keys", keys)):
        require_region(name, patches, maps, num_prefix)
    weights = maps[..., num_prefix:, num_prefix:]
    there = (weights * keys[:, None, None]).sum(dim=-1) / weights.sum(dim=-1)  # (L, B, h, N_p)
    asked = queries[:, None].to(maps.dtype)  # (B, 1, N_patches)
    return (there * asked).sum(dim=-1) / asked.sum(dim=-1)
