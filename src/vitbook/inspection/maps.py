"""What stacked attention maps (L, B, h, N, N) say: rollout, distance, the class token's view."""

import torch
from torch import Tensor

from vitbook import require

MAPS_AXES = "(L, B, h, N, N)"


def attention_rollout(maps: Tensor) -> Tensor:
    """Follow attention through the layers down to the patches.

    The heads are averaged. Half of what a token becomes is taken as the residual (the identity),
    half as attention; the layers' matrices are multiplied, later layers from the left.

    Args:
        maps: Attention weights (L, B, h, N, N). ``maps[:l]`` gives the rollout after l layers.

    Returns:
        The share of each input token in each output token (B, N, N); rows sum to one.

    Raises:
        TypeError: ``maps`` is no floating-point tensor.
        ValueError: ``maps`` has other axes, no layer or head, or values that are no weights.

    Source: Abnar & Zuidema 2020, section 3, "Attention rollout".
    """
    _, B, _, N, _ = require_maps(maps).shape
    identity = torch.eye(N, dtype=maps.dtype, device=maps.device)
    rollout = identity.expand(B, N, N)
    for weights in maps.mean(dim=2):  # (B, N, N), one layer after the other
        mixed = weights + identity
        rollout = mixed / mixed.sum(dim=-1, keepdim=True) @ rollout  # (B, N, N)
    return rollout


def mean_attention_distance(
    maps: Tensor,
    grid: int | tuple[int, int],
    patch_size: int | tuple[int, int],
    num_prefix: int = 1,
) -> Tensor:
    """How far a patch looks, in pixels, averaged over its weights and over all patches.

    Prefix tokens (the class token) have no place in the image: they are left out, as queries and
    as keys, and the weights that remain are scaled to sum to one.

    Args:
        maps: Attention weights (L, B, h, N, N).
        grid: (rows, columns) of patches, or one number for a square grid.
        patch_size: P in pixels, or (height, width) of a patch.
        num_prefix: How many tokens stand before the patches.

    Returns:
        Distances between patch centres in pixels (L, B, h). A head in which no patch looks at any
        patch has no distance: nan.

    Raises:
        TypeError: ``maps`` is no floating-point tensor, or another argument no whole number.
        ValueError: The number of tokens is not that of grid and prefix.

    Source: Dosovitskiy et al. 2021, section 4.5 and figure 7 (right).
    """
    grid = require_tokens_fit(maps, grid, num_prefix)
    height, width = require.pair("patch_size", patch_size)
    rows = torch.arange(grid[0], device=maps.device).repeat_interleave(grid[1]) * height
    columns = torch.arange(grid[1], device=maps.device).repeat(grid[0]) * width
    centres = torch.stack([rows, columns], dim=-1).to(maps.dtype)  # (N_patches, 2)
    distances = (centres[:, None] - centres[None]).norm(dim=-1)  # (N_patches, N_patches)
    weights = maps[..., num_prefix:, num_prefix:]
    total = weights.sum(dim=-1)  # (L, B, h, N_patches)
    reach = torch.einsum("lbhqk,qk->lbhq", weights, distances) / total
    return reach.nanmean(dim=-1)  # (L, B, h)


def class_token_attention(maps: Tensor, grid: int | tuple[int, int], num_prefix: int = 1) -> Tensor:
    """Where the class token looks, laid out as the image.

    Args:
        maps: Attention weights (L, B, h, N, N); the class token is token 0.
        grid: (rows, columns) of patches, or one number for a square grid.
        num_prefix: How many tokens stand before the patches, the class token among them.

    Returns:
        The class token's weights on the patches (L, B, h, rows, columns). What it gives to itself
        and to other prefix tokens is missing, so that a map sums to less than one.

    Raises:
        TypeError: ``maps`` is no floating-point tensor, or another argument no whole number.
        ValueError: There is no prefix token, or the number of tokens is not that of grid and
            prefix.
    """
    require.whole("num_prefix", num_prefix, at_least=1)
    grid = require_tokens_fit(maps, grid, num_prefix)
    return maps[..., 0, num_prefix:].unflatten(-1, grid)  # (L, B, h, rows, columns)


def require_maps(maps: Tensor) -> Tensor:
    require.floats("maps", maps, MAPS_AXES)
    L, _, h, Nq, Nk = maps.shape
    if Nq != Nk or not (L and h and Nq):
        raise ValueError(
            f"maps must have the axes {MAPS_AXES} with at least one layer, head and token, "
            f"got the shape {tuple(maps.shape)}"
        )
    if maps.numel() and not (maps.min() >= 0 and maps.max() <= 1 + 1e-3):  # nan fails both
        raise ValueError(
            "maps must hold attention weights between 0 and 1, got values from "
            f"{float(maps.min()):g} to {float(maps.max()):g}"
        )
    return maps


def require_region(name: str, patches: Tensor, maps: Tensor, num_prefix: int) -> None:
    """Some patches of each image."""
    prefix = require.whole("num_prefix", num_prefix, at_least=0, at_most=maps.shape[-1] - 1)
    shape = (maps.shape[1], maps.shape[-1] - prefix)
    if not isinstance(patches, Tensor) or patches.dtype != torch.bool:
        kind = patches.dtype if isinstance(patches, Tensor) else type(patches).__name__
        raise TypeError(f"{name} must be a boolean tensor (B, N_patches), got {kind}")
    if patches.shape != shape:
        raise ValueError(
            f"{name} must have the shape (B, N_patches) = {shape}, got {tuple(patches.shape)}"
        )


def require_tokens_fit(
    maps: Tensor, grid: int | tuple[int, int], num_prefix: int
) -> tuple[int, int]:
    N = require_maps(maps).shape[-1]
    rows, columns = require.pair("grid", grid)
    require.whole("num_prefix", num_prefix, at_least=0)
    if rows * columns + num_prefix != N:
        raise ValueError(
            f"grid {rows} x {columns} and num_prefix {num_prefix} make "
            f"{rows * columns + num_prefix} tokens, but maps have N = {N}"
        )
    return rows, columns
