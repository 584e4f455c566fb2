"""Sixteen small glyphs with the same amount of ink, and how they get into an image."""

import torch
from torch import Tensor

from vitbook import require

GLYPH_SIZE = 5
# Nine pixels each: no class can be told by weighing ink.
_ROWS = """
..#.. #...# ##### #.... ..#.. ....# ##### ##### #...# ..#.. ...## ##... ..... ..#.. #.... ....#
..#.. .#.#. ..#.. #.... ..#.. ....# #.... ....# #...# .#.#. .##.. ..##. .###. .#.#. #.... ....#
##### ..#.. ..#.. #.... ..#.. ....# #.... ....# .#.#. .#.#. #.... ....# .###. #.#.# ##### #####
..#.. .#.#. ..#.. #.... ..#.. ....# #.... ....# .#.#. #...# .##.. ..##. .###. .#.#. #.... ....#
..#.. #...# ..#.. ##### ##### ##### #.... ....# ..#.. #...# ...## ##... ..... ..#.. #.... ....#
"""
GLYPH_NAMES = (
    "plus",
    "cross",
    "T",
    "corner lower left",
    "T upside down",
    "corner lower right",
    "corner upper left",
    "corner upper right",
    "V",
    "V upside down",
    "V pointing left",
    "V pointing right",
    "square",
    "diamond",
    "T lying right",
    "T lying left",
)


def glyphs(num_kinds: int = 16) -> Tensor:
    """The first ``num_kinds`` glyphs, (num_kinds, 5, 5), ink 1 on 0."""
    if not 2 <= num_kinds <= 16:
        raise ValueError(f"num_kinds must be between 2 and 16, got {num_kinds}")
    rows = [[[c == "#" for c in word] for word in line.split()] for line in _ROWS.split("\n")[1:6]]
    return torch.tensor(rows, dtype=torch.float32).transpose(0, 1)[:num_kinds]  # (16, 5, 5)


def stamp(images: Tensor, kinds: Tensor, top: Tensor, left: Tensor) -> None:
    """Add one glyph to each image, in place: images (n, 1, H, W); kinds, top, left (n,)."""
    steps = torch.arange(GLYPH_SIZE)
    rows, columns = top[:, None, None] + steps[:, None], left[:, None, None] + steps  # (n, 5, 5)
    images[torch.arange(len(images))[:, None, None], 0, rows, columns] += glyphs()[kinds]


def covered_patches(boxes: Tensor, image_size: int, patch_size: int) -> Tensor:
    """Which patches a glyph touches, so that an attention map can be scored.

    Args:
        boxes: (..., 4) whole numbers: top, left, bottom, right in pixels, the last two exclusive.
        image_size: Side of the square image in pixels.
        patch_size: P, must divide image_size.

    Returns:
        Boolean (..., N), row-major over the patch grid.
    """
    if image_size % patch_size:
        raise ValueError(f"patch_size must divide image_size = {image_size}, got {patch_size}")
    starts = torch.arange(0, image_size, patch_size)
    top, left, bottom, right = boxes[..., None].unbind(-2)  # each (..., 1)
    rows = (starts < bottom) & (starts + patch_size > top)  # (..., side)
    columns = (starts < right) & (starts + patch_size > left)
    return (rows[..., :, None] & columns[..., None, :]).flatten(-2)


def require_jitter(jitter: int) -> int:
    if require.whole("jitter", jitter, at_least=0) > 3:
        raise ValueError(f"jitter must be between 0 and 3, got {jitter}")
    return jitter
