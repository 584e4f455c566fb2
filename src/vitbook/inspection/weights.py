"""Attention weights, worked out from what an attention function of PyTorch was called with."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def sdpa_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The weights (..., N_q, N_k) of ``F.scaled_dot_product_attention``, without dropout.

    The arguments are that function's own. What is narrower than float32 is computed in float32. A
    query that may attend to nothing has zero weights.
    """
    query, key = _wide(query), _wide(key)
    if enable_gqa:  # some heads share their keys
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale  # (..., N_q, N_k)
    if is_causal:
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~past, -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    # a softmax over nothing but -inf is nan: such a row becomes zero
    return scores.softmax(dim=-1).masked_fill(scores == -math.inf, 0.0)


def mha_weights(*args: Any, **kwargs: Any) -> Tensor:
    """The weights (B, h, N_q, N_k) of ``F.multi_head_attention_forward``, without dropout.

    The function itself can give them, so it is asked a second time.
    """
    given = dict(zip(MHA_ARGUMENTS, args, strict=False)) | kwargs
    given |= {"training": False, "need_weights": True, "average_attn_weights": False}
    wide = {name: _wide(value) for name, value in given.items()}
    weights = F.multi_head_attention_forward(**wide)[1]
    assert weights is not None  # they were asked for
    return weights


MHA_ARGUMENTS = F.multi_head_attention_forward.__code__.co_varnames


def on_the_side(work: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Work it out without gradients and in full precision, also under autocast."""
    device = next(a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)).device
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        return work(*args, **kwargs)


def _wide(value: Any) -> Any:
    narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if narrow else value
