"""What an attention layer is compared with: layers that mix tokens without looking, or not at all.

Each fits ``EncoderBlock(attn=...)`` and has the value and output projections of attention, so
that only the choice of whom to listen to is missing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitbook import require


class _Control(nn.Module):
    """The two projections that attention has and a control keeps."""

    def __init__(self, *, embed_dim: int):
        super().__init__()
        embed_dim = require.whole("embed_dim", embed_dim)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)


class UniformAttention(_Control):
    """Every token listens to all tokens equally: the mean of the values, then a projection.

    Args:
        embed_dim: D, the width of a token.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        _refuse(mask)
        B, N, D = x.shape  # batch, tokens, width
        mean = self.value(x).mean(dim=1, keepdim=True)  # (B, 1, D)
        return self.proj(mean.expand(B, N, D))

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights in use: 1 / N everywhere, (B, 1, N, N)."""
        _refuse(mask)
        B, N, _ = x.shape
        return x.new_full((B, 1, N, N), 1 / N)


class NoMixing(_Control):
    """Every token listens to itself only: two projections, no token sees another.

    Args:
        embed_dim: D, the width of a token.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        _refuse(mask)
        return self.proj(self.value(x))

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights in use: the identity, (B, 1, N, N)."""
        _refuse(mask)
        B, N, _ = x.shape
        identity = torch.eye(N, dtype=x.dtype, device=x.device)
        return identity.repeat(B, 1, 1, 1)


def _refuse(mask: Tensor | None) -> None:
    if mask is not None:
        raise ValueError("mask must be None: a control does not choose whom to listen to")
