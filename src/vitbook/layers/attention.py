"""Attention: mix tokens by similarity.

The pure function comes first; the modules only add learned projections and heads.
One convention throughout, the one of ``F.scaled_dot_product_attention``: a mask is boolean and
True means "may attend".
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Average the values, weighted by how well each query matches each key.

    Args:
        q: Queries (..., N_q, d).
        k: Keys (..., N_k, d).
        v: Values (..., N_k, d_v).
        mask: Boolean, broadcastable to (..., N_q, N_k); True = may attend. A query that may
            attend to nothing gets zero weights and a zero output.

    Returns:
        The output (..., N_q, d_v) and the weights (..., N_q, N_k), whose rows sum to one.

    Raises:
        TypeError: A tensor is not floating-point, or the mask is not boolean.
        ValueError: The shapes do not fit together.

    Source: Vaswani et al. 2017, equation 1.
    """
    _require_qkv(q, k, v, mask)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., N_q, N_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:  # a softmax over nothing but -inf is nan: such a row becomes zero
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights  # (..., N_q, d_v), (..., N_q, N_k)


def causal_mask(n: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let token i attend to the tokens 0 ... i only.

    Args:
        n: Number of tokens.
        device: Where the mask is made.

    Returns:
        Boolean (n, n), True on and below the diagonal.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    n = require.whole("n", n)
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """Hide the padding at the end of each sequence from every query.

    Args:
        lengths: How many real tokens each sequence has, whole numbers (B,).
        n: Number of tokens after padding.

    Returns:
        Boolean (B, 1, 1, n), True for real tokens; it broadcasts over heads and queries.

    Raises:
        TypeError: The lengths are not whole numbers.
        ValueError: They are not of shape (B,) or lie outside 0 ... n.
    """
    n = require.whole("n", n)
    lengths = torch.as_tensor(lengths)
    if lengths.ndim != 1:
        raise ValueError(f"lengths must have the axis (B,), got the shape {tuple(lengths.shape)}")
    if lengths.numel() and (lengths.is_floating_point() or lengths.dtype == torch.bool):
        raise TypeError(f"lengths must hold whole numbers, got {lengths.dtype}")
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= n:
        raise ValueError(f"lengths must lie between 0 and n = {n}, got {lengths.tolist()}")
    return (torch.arange(n, device=lengths.device) < lengths[:, None])[:, None, None, :]


class MultiHeadSelfAttention(nn.Module):
    """Multi-head self-attention: h heads attend over the same sequence in parallel.

    Args:
        embed_dim: D, the width of a token.
        num_heads: h; must divide embed_dim. Each head is d = D / h wide.
        qkv_bias: Whether the projections to queries, keys and values have biases.
        dropout: Dropout rate of the attention weights, while training.
        rotary: Optional module that turns (B, h, N, d) into the same shape; applied to queries
            and keys, between projection and scores.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(
        self,
        *,
        embed_dim: int,
        num_heads: int,
        qkv_bias: bool = True,
        dropout: float = 0.0,
        rotary: nn.Module | None = None,
    ):
        super().__init__()
        self.num_heads, self.head_dim = _require_heads(embed_dim, num_heads)
        self.dropout = require.fraction("dropout", dropout)
        self.rotary = rotary
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turn tokens (B, N, D) into queries, keys and values, each (B, h, N, d)."""
        B, N, _ = x.shape  # batch, tokens, width
        qkv = self.qkv(x).view(B, N, 3, self.num_heads, self.head_dim)  # (B, N, 3, h, d)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, h, N, d)
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        return q, k, v

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the tokens: (B, N, D) -> (B, N, D); mask broadcastable to (B, h, N, N)."""
        B, N, D = x.shape  # batch, tokens, width
        q, k, v = self.project(x)  # each (B, h, N, d)
        _require_mask(mask, q, k)
        dropout = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.proj(out.transpose(1, 2).reshape(B, N, D))  # (B, h, N, d) -> (B, N, D)

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights that ``forward`` uses but never shows, (B, h, N, N); without dropout."""
        q, k, v = self.project(x)
        _require_mask(mask, q, k)
        return scaled_dot_product_attention(q, k, v, mask)[1]


class MultiHeadCrossAttention(nn.Module):
    """Every token of one sequence asks every token of another, the context.

    Args:
        embed_dim: D, the width of a token in both sequences.
        num_heads: h; must divide embed_dim.
        qkv_bias: Whether the projections to queries, keys and values have biases.
        dropout: Dropout rate of the attention weights, while training.

    Source: Vaswani et al. 2017, section 3.2.3 (encoder-decoder attention).
    """

    def __init__(
        self, *, embed_dim: int, num_heads: int, qkv_bias: bool = True, dropout: float = 0.0
    ):
        super().__init__()
        self.num_heads, self.head_dim = _require_heads(embed_dim, num_heads)
        self.dropout = require.fraction("dropout", dropout)
        self.q = nn.Linear(embed_dim, embed_dim, bias=qkv_bias)
        self.kv = nn.Linear(embed_dim, 2 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, h, N_q, d) from x; keys and values (B, h, N_k, d) from the context."""
        (B, Nq, _), Nk = x.shape, context.shape[1]
        q = self.q(x).view(B, Nq, self.num_heads, self.head_dim).transpose(1, 2)
        kv = self.kv(context).view(B, Nk, 2, self.num_heads, self.head_dim)
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, h, N_k, d)
        return q, k, v

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, N_q, D), context (B, N_k, D) -> (B, N_q, D); mask fits (B, h, N_q, N_k)."""
        B, Nq, D = x.shape  # batch, tokens that ask, width
        q, k, v = self.project(x, context)  # (B, h, N_q, d) and twice (B, h, N_k, d)
        _require_mask(mask, q, k)
        dropout = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.proj(out.transpose(1, 2).reshape(B, Nq, D))  # (B, h, N_q, d) -> (B, N_q, D)

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights that ``forward`` uses, (B, h, N_q, N_k); without dropout."""
        q, k, v = self.project(x, context)
        _require_mask(mask, q, k)
        return scaled_dot_product_attention(q, k, v, mask)[1]


def _require_heads(embed_dim: int, num_heads: int) -> tuple[int, int]:
    embed_dim = require.whole("embed_dim", embed_dim)
    num_heads = require.whole("num_heads", num_heads)
    if embed_dim % num_heads:
        raise ValueError(f"num_heads must divide embed_dim = {embed_dim}, got {num_heads}")
    return num_heads, embed_dim // num_heads


def _require_mask(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    if mask is None:
        return
    if isinstance(mask, Tensor) and mask.ndim == 3:
        raise ValueError(  # it would be read as (1, h, N_q, N_k): silently wrong when B equals h
            f"mask of shape {tuple(mask.shape)} could mean one per sequence or one per head; "
            "write mask[:, None] or mask[None] to make it fit (B, h, N_q, N_k)"
        )
    require.mask(mask, "(B, h, N_q, N_k)", (*q.shape[:-1], k.shape[-2]))


def _require_qkv(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    for name, value in (("q", q), ("k", k), ("v", v)):
        require.floats(name, value, "(..., N, d)")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"k must be as wide as q, d = {q.shape[-1]}, got {tuple(k.shape)}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"v must have one row per key, {k.shape[-2]}, got {tuple(v.shape)}")
    try:
        leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        shapes = ", ".join(str(tuple(value.shape)) for value in (q, k, v))
        raise ValueError(f"q, k and v must have leading axes that fit, got {shapes}") from None
    if mask is not None:
        require.mask(mask, "(..., N_q, N_k)", (*leading, q.shape[-2], k.shape[-2]))
