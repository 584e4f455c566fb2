"""Few bytes for maps and images: whole maps where they fit, else with their patches pooled.

What the figure's script finds, one after the other, in what :func:`pack` writes:

    images   (B, H, W, C)            bytes
    marks    (B, patches)            bytes, 0 or 1
    first    (B, L, h', prefix, N)   rows of the prefix tokens: peaks (float32), then codes (bytes)
    rest     (B, L, h', M, prefix + M)   rows of the M blocks of patches: the same

Whole maps have blocks of one patch and h' = h. Pooled ones have h' = h + 1: the last is the
rollout, worked out before pooling, which afterwards could not be done.
"""

import base64
import zlib

import numpy as np
import torch
from torch import Tensor

from vitbook.inspection.maps import attention_rollout
from vitbook.require import whole

MAX_TEXT = 2_900_000  # characters of a figure's data: with its script a file stays below 3 MB
PLAIN = 200_000  # bytes up to which nothing is compressed, so that any browser reads them at once
WHOLE = 14 * 14  # patches whose maps are rather coarse than pooled
LEVELS = (255, 127, 63, 31, 23, 15, 11, 8)  # steps from 0 to a row's largest weight
FINE = 31  # the fewest levels of maps with more patches: pooling them loses less


def pack(
    images: np.ndarray,
    marks: np.ndarray,
    maps: Tensor,
    grid: tuple[int, int],
    num_prefix: int,
    most: int | None = None,
) -> dict:
    """The finest form of the maps that fits into so many characters.

    Args:
        images: Bytes (B, H, W, C).
        marks: Bytes (B, rows * columns), or of size 0.
        maps: Attention weights (L, B, h, N, N).
        grid: (rows, columns) of patches.
        num_prefix: How many tokens stand before the patches.
        most: How many; ``MAX_TEXT`` by default.

    Returns:
        "packed" (base64), "deflated" (whether zlib compressed it), "pool" (the side of a block, in
        patches), "levels" (steps of the rows of patches; those of prefix tokens have 255).

    Raises:
        TypeError: ``most`` is no whole number.
        ValueError: ``most`` is below 1, or too little even for all patches in one block.
    """
    most = MAX_TEXT if most is None else min(whole("most", most), MAX_TEXT)
    head = images.tobytes() + marks.tobytes()
    maps = maps.detach().float().cpu()
    fewest = LEVELS[-1] if grid[0] * grid[1] <= WHOLE else FINE
    for pool in range(1, max(grid) + 1):
        if maps.numel() / pool**4 > 3 * most:
            continue  # less than two bits for each weight: not worth the try
        first, rest = pooled(maps, grid, num_prefix, pool)
        start = head + _bytes(first, 255)
        for levels in (level for level in LEVELS if level >= fewest):
            text, deflated = _text(start + _bytes(rest, levels))
            if len(text) <= most:
                return {"packed": text, "deflated": deflated, "pool": pool, "levels": levels}
    raise ValueError(
        f"maps and images do not fit into the {most / 1e6:g} MB that a page may hold, not even "
        "pooled; pass fewer images or layers"
    )


def pooled(
    maps: Tensor, grid: tuple[int, int], num_prefix: int, pool: int
) -> tuple[Tensor, Tensor]:
    """Rows of the prefix tokens, and of blocks of ``pool`` x ``pool`` patches.

    A block's row is the mean of its patches' rows; what it gives to a block is the sum of what it
    gives to its patches. So rows still sum to one.

    Args:
        maps: Attention weights (L, B, h, N, N).

    Returns:
        (L, B, h', prefix, N) and (L, B, h', M, prefix + M); see above for h'.
    """
    if pool == 1:
        return maps[..., :num_prefix, :], maps[..., num_prefix:, :]
    rollouts = torch.stack([attention_rollout(maps[: i + 1]) for i in range(len(maps))])
    maps = torch.cat([maps, rollouts[:, :, None]], dim=2)
    rows, columns = (torch.arange(side) // pool for side in grid)
    blocks = (rows[:, None] * (columns[-1] + 1) + columns).flatten()
    member = torch.block_diag(torch.eye(num_prefix), torch.eye(int(blocks[-1]) + 1)[blocks])
    share = (member / member.sum(dim=0))[:, num_prefix:]
    return maps[..., :num_prefix, :], share.T @ (maps @ member)


def quantise(maps: Tensor, levels: int = 255) -> tuple[np.ndarray, np.ndarray]:
    """Write each weight as one byte, finer for small weights than for large ones.

    Args:
        maps: Attention weights (L, B, h, Nq, Nk).
        levels: Steps from 0 to the row's largest weight.

    Returns:
        Bytes (B, L, h, Nq, Nk) and the rows' largest weights (B, L, h, Nq), little-endian float32.
        A weight is (byte / levels) ** 2 times its row's largest weight, exact to sqrt(weight *
        largest) / levels, which is at most 1/levels of the largest.
    """
    weights = maps.detach().float().cpu().transpose(0, 1).numpy()
    peaks = weights.max(axis=-1, initial=0).astype("<f4")
    shares = weights / np.where(peaks > 0, peaks, 1)[..., None]
    return np.rint(levels * np.sqrt(shares)).clip(0, levels).astype(np.uint8), peaks


def _bytes(maps: Tensor, levels: int) -> bytes:
    codes, peaks = quantise(maps, levels)
    return peaks.tobytes() + codes.tobytes()


def _text(data: bytes) -> tuple[str, bool]:
    deflated = len(data) > PLAIN
    data = zlib.compress(data, 6) if deflated else data
    return base64.b64encode(data).decode(), deflated
