"""Fewer tokens from block to block: a trained ViT that merges or drops some as it goes."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import Encoder, EncoderBlock


def merge_tokens(
    x: Tensor, size: Tensor | None, q: Tensor, k: Tensor, *, r: int, num_prefix: int = 1
) -> tuple[Tensor, Tensor]:
    """Let r patches go into others with similar keys, as means weighted by their sizes.

    Every second token looks for its most similar partner among the others; the r most similar
    pairs are merged. What comes out: the unmerged ones of the first kind, then the second kind.

    Args:
        x: Tokens (B, N, D).
        size: How many patches are in each, (B, N); None where it is one each.
        q: Queries (B, h, N, d); not used.
        k: Keys (B, h, N, d) of the attention before.
        r: How many tokens fewer; at most half of them.
        num_prefix: 1 with a class token, which is never merged, or 0.

    Returns:
        Tokens (B, N - r, D), class token first, and their sizes (B, N - r).

    Source: Bolya et al. 2023, section 3.
    """
    D, r = x.shape[-1], _require_fewer(r, x.shape[1], num_prefix)
    size = x.new_ones(x.shape[:2]) if size is None else size
    keys = F.normalize(k.detach().mean(dim=1), dim=-1)  # (B, N, d), mean over the heads
    similar = keys[:, ::2] @ keys[:, 1::2].mT  # (B, N / 2, N / 2)
    similar[:, :num_prefix] = -torch.inf
    best, partner = similar.max(dim=-1)  # (B, N / 2)
    order = best.argsort(dim=-1, descending=True)
    merged, kept = order[:, :r], order[:, r:].sort(dim=-1).values
    target = partner.gather(1, merged)  # (B, r)
    sums = torch.cat([x * size[..., None], size[..., None]], dim=-1)  # (B, N, D + 1)
    first, second = sums[:, ::2], sums[:, 1::2]
    second = second.scatter_add(1, _wide(target, D + 1), first.gather(1, _wide(merged, D + 1)))
    sums = torch.cat([first.gather(1, _wide(kept, D + 1)), second], dim=1)  # (B, N - r, D + 1)
    return sums[..., :D] / sums[..., D:], sums[..., D]


def prune_tokens(
    x: Tensor, size: Tensor | None, q: Tensor, k: Tensor, *, r: int
) -> tuple[Tensor, Tensor | None]:
    """Drop the r patches the class token attends to least; the class token comes first.

    Arguments and results are those of :func:`merge_tokens`.

    Source: Liang et al. 2022, section 3.2 (without the token that holds what was dropped).
    """
    (_, N, D), r = x.shape, _require_fewer(r, x.shape[1], 1)
    scores = q[:, :, :1] @ k.mT / q.shape[-1] ** 0.5  # (B, h, 1, N)
    look = scores.detach().softmax(dim=-1).mean(dim=1)[:, 0]  # (B, N), mean over the heads
    look[:, 0] = torch.inf  # the class token itself
    kept = look.topk(N - r, dim=-1).indices.sort(dim=-1).values
    return x.gather(1, _wide(kept, D)), None if size is None else size.gather(1, kept)


class ShrinkingEncoder(nn.Module):
    """A trained encoder that hands on fewer tokens after the attention of each block.

    Use: ``model.encoder = ShrinkingEncoder(model.encoder, partial(merge_tokens, r=16))``.

    Args:
        encoder: Pre-norm blocks with :class:`~vitbook.layers.attention.MultiHeadSelfAttention`.
        shrink: Called as ``shrink(x, size, q, k)``, returns tokens and their sizes;
            :func:`merge_tokens` or :func:`prune_tokens` with ``r`` bound.

    Raises:
        ValueError: Blocks that it would compute in another way than they do themselves.

    Source: Bolya et al. 2023, section 3 (proportional attention: equation 1).
    """

    def __init__(self, encoder: Encoder, shrink: Callable[..., tuple[Tensor, Tensor | None]]):
        super().__init__()
        for number, block in enumerate(encoder.blocks):
            _require_plain(block, number)
        self.blocks, self.norm = encoder.blocks, encoder.norm
        self.shrink = shrink

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> fewer tokens (B, M, D)."""
        if mask is not None:
            raise ValueError("mask must be None: tokens that merge have no place of their own")
        size: Tensor | None = None  # one patch in each token
        block: Any
        for block in self.blocks:
            q, k, v = block.attn.project(block.norm1(x))  # each (B, h, N, d)
            bias = None if size is None else size.log()[:, None, None]  # (B, 1, 1, N)
            dropout = block.attn.dropout if self.training else 0.0  # below: two patches count twice
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)
            out = block.attn.proj(out.transpose(1, 2).reshape(x.shape))  # (B, N, D)
            x = x + block.drop_path1(block.ls1(block.dropout(out)))
            x, size = self.shrink(x, size, q, k)
            x = x + block.drop_path2(block.ls2(block.dropout(block.mlp(block.norm2(x)))))
        return self.norm(x)


def _require_plain(block: Any, number: int) -> None:
    """Whether the forward pass above is what this block computes, but for the tokens it loses."""
    where = f"encoder.blocks[{number}]"
    if type(block) is not EncoderBlock:
        raise ValueError(f"{where} must be an EncoderBlock, got {type(block).__name__}")
    if not block.norm_first:
        raise ValueError(f"{where} must be pre-norm (norm_first=True), got a post-norm block")
    if type(block.attn) is not MultiHeadSelfAttention:
        raise ValueError(
            f"{where} must mix its tokens by MultiHeadSelfAttention, whose keys say what is "
            f"alike, got {type(block.attn).__name__}"
        )
    if block.attn.rotary is not None:
        raise ValueError(
            f"{where} must have no rotary positions: a token that was merged has none of its own"
        )


def _require_fewer(r: int, n: int, num_prefix: int) -> int:
    if num_prefix not in (0, 1):
        raise ValueError(f"num_prefix must be 0 or 1, got {num_prefix!r}")
    most = (n + 1) // 2 - num_prefix  # one half looks for partners in the other
    if require.whole("r", r, at_least=0) > most:
        raise ValueError(f"r must be at most {most} of {n} tokens, got {r}")
    return r


def _wide(index: Tensor, width: int) -> Tensor:
    return index[..., None].expand(-1, -1, width)
