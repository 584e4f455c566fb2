"""Attention layers with the weights of the usual one that compute less: windows, no softmax.

Both have the parameters of :class:`~vitbook.layers.attention.MultiHeadSelfAttention` under the
same names, so a trained state dict fits: ``VisionTransformer(..., attn_layer=LinearAttention)``.
"""

from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention


def window_mask(grid: tuple[int, int], window: int, *, num_prefix: int = 1) -> Tensor:
    """Who may attend to whom: a patch to its own window, and prefix tokens to and from everybody.

    Args:
        grid: Rows and columns of patches.
        window: Side of a square window, in patches; must divide both.
        num_prefix: Tokens before the patches.

    Returns:
        Boolean (N, N), True = may attend.

    Source: Liu et al. 2021, section 3.2 (without shifted windows, and with a class token).
    """
    rows, columns = _require_windows(grid, window)
    place = torch.arange(rows * columns)
    row, column = place // columns, place % columns
    number = row // window * (columns // window) + column // window  # of each patch's window
    mask = torch.ones((num_prefix + rows * columns,) * 2, dtype=torch.bool)
    mask[num_prefix:, num_prefix:] = number[:, None] == number
    return mask


class WindowAttention(MultiHeadSelfAttention):
    """Attention within square windows; what a mask would hide is not computed.

    Args:
        grid: Rows and columns of patches.
        window: Side of a window, in patches; must divide both.
        num_prefix: Tokens before the patches. They attend to all, and every window to them.
        **sizes: As for :class:`~vitbook.layers.attention.MultiHeadSelfAttention`.

    Source: Liu et al. 2021, section 3.2 (without shifted windows, and with a class token).
    """

    def __init__(self, *, grid: tuple[int, int], window: int, num_prefix: int = 1, **sizes: Any):
        super().__init__(**sizes)
        self.grid, self.window = _require_windows(grid, window), window
        self.num_prefix = require.whole("num_prefix", num_prefix, at_least=0)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the tokens: (B, N, D) -> (B, N, D)."""
        _require_no_mask(mask)
        q, k, v = self.project(x)  # each (B, h, N, d)
        B, N, _ = x.shape
        if (tokens := self.num_prefix + self.grid[0] * self.grid[1]) != N:
            raise ValueError(f"x must hold {tokens} tokens, got {N}")
        first, side = self.num_prefix, self.window
        shape = {"R": self.grid[0] // side, "r": side, "c": side}
        apart = "b h (R r C c) d -> (b R C) h (r c) d"
        into = [rearrange(t[:, :, first:], apart, **shape) for t in (q, k, v)]  # (B W, h, w w, d)
        windows = len(into[0]) // B
        before = [t[:, :, :first].repeat_interleave(windows, dim=0) for t in (k, v)]
        keys, values = (torch.cat(pair, dim=2) for pair in zip(before, into[1:], strict=True))
        out = F.scaled_dot_product_attention(into[0], keys, values)
        together = "(b R C) h (r c) d -> b h (R r C c) d"
        out = rearrange(out, together, b=B, **shape)  # (B, h, rows * columns, d)
        prefix = F.scaled_dot_product_attention(q[:, :, :first], k, v)  # these see everything
        out = torch.cat([prefix, out], dim=2)  # (B, h, N, d)
        return self.proj(out.transpose(1, 2).reshape(x.shape))


class LinearAttention(MultiHeadSelfAttention):
    """Attention whose weights are phi(q) phi(k) over their row's sum: no softmax, and no N x N map.

    Without the softmax the products can be bracketed the other way round: keys and values first.
    Arguments as for :class:`~vitbook.layers.attention.MultiHeadSelfAttention`.

    Source: Katharopoulos et al. 2020, equations 4, 6 and 7.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the tokens: (B, N, D) -> (B, N, D)."""
        _require_no_mask(mask)
        q, k, v = self.project(x)  # each (B, h, N, d)
        q, k = F.elu(q) + 1, F.elu(k) + 1  # phi: positive, so that weights are
        summary = k.mT @ v  # (B, h, d, d): its size does not know N
        total = q @ k.sum(dim=2)[..., None]  # (B, h, N, 1)
        out = q @ summary / total  # (B, h, N, d)
        return self.proj(out.transpose(1, 2).reshape(x.shape))


def _require_windows(grid: tuple[int, int], window: int) -> tuple[int, int]:
    rows, columns = require.pair("grid", grid)
    if rows % require.whole("window", window) or columns % window:
        raise ValueError(f"window must divide the grid {rows} x {columns}, got {window}")
    return rows, columns


def _require_no_mask(mask: Tensor | None) -> None:
    if mask is not None:
        raise ValueError("mask must be None: this attention has none of its own")
