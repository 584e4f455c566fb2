"""Is what a layer has shown a map of its tokens?"""

from typing import Any

from torch import Tensor


def not_of_tokens(weights: Tensor, values: Tensor | None, given: list[Tensor], strict: bool) -> str:
    """Why the rows or columns of a map are not the tokens that the layer was given, or nothing.

    What was called from outside may be given an image, and make tokens of it itself. Then (not
    strict) the map is in doubt only where another axis is as long as the tokens are many.
    """
    x = given[0]
    turned = weights.ndim == 4 and x.ndim == 3 and weights.shape[1] == len(x) != len(weights)
    if turned and weights.shape[-1] == x.shape[1]:
        return f"the axes of its map are {tuple(weights.shape)}: heads come before images"
    tokens = tokens_of(given, len(weights))
    count = min(tokens)
    if weights.ndim == 3:  # the first axis may be anything
        tokens |= tokens_of(given, -1)
    Nq, Nk = weights.shape[-2:]
    if weights.ndim == 4:  # heads that were made outside, (B, h, N, d)
        tokens |= {Nq for x in given if x.ndim == 4 and x.shape[1:3] == weights.shape[1:3]}
    width = values.shape[-1] if values is not None else 0
    if not tokens & {Nq, Nk}:
        if tokens & {width, *weights.shape[1:-2]}:
            return (
                f"its {Nq} x {Nk} weights are not of its {count} tokens: channels attend, or "
                "heads, or tokens that it makes itself"
            )
        if strict:
            last = ", but of these, or of tokens given as (B, D, N)"
            return (
                f"its {Nq} x {Nk} weights are not of its {count} tokens, where the last axis is "
                f"that of channels{last if Nq == Nk == given[0].shape[-1] else ''}"
            )
    if Nk in tokens and Nq == width and Nq not in tokens:
        return f"its {Nq} rows may be the channels of its heads, of which there are as many"
    if values is not None and Nq == Nk == width and Nq in tokens and values.stride(-1) != 1:
        return f"{Nq} tokens and heads of width {Nq}: it is open which of the two attend"
    return ""


def no_weights(said: Any) -> str:
    """Why what a layer says can be no weights (..., N_q, N_k), or nothing."""
    if isinstance(said, Tensor) and not said.is_floating_point():
        return f"its attention_weights gives no weights (B, h, N_q, N_k) but {said.dtype}"
    if not isinstance(said, Tensor) or said.ndim < 3:
        shape = tuple(said.shape) if isinstance(said, Tensor) else type(said).__name__
        return f"its attention_weights gives no weights (B, h, N_q, N_k) but {shape}"
    return ""


def padded(weights: Tensor, x: Tensor, outer: Tensor | None) -> str:
    """Was the grid (B, H, W, D) of a layer cut or padded by the block round it? Or nothing."""
    if outer is None or x.ndim != 4 or outer.ndim != 4 or x.shape[-1] != outer.shape[-1]:
        return ""
    (H, W), (h, w) = outer.shape[1:3], x.shape[1:3]
    image = len(x) == len(outer) and (h - H) * (w - W) <= 0  # (B, C, H, W), as wide as tokens are
    if (h, w) == (H, W) or weights.shape[-2] != h * w or image:
        return ""
    return f"it attends within windows of {h} x {w}, of a grid of {H} x {W}"


def tokens_of(given: list[Tensor], batch: int) -> set[int]:
    """How many tokens inputs may hold: (N, D), (B, N, D), (N, B, D), a grid's or an image's."""
    found = set()
    for x in given:
        if x.ndim > 3:
            found |= {x.shape[1] * x.shape[2], x.shape[2] * x.shape[3]}
        else:
            found.add(x.shape[1] if x.ndim == 3 and batch != x.shape[1] else x.shape[0])
    return found


def with_heads(weights: Tensor, x: Tensor) -> Tensor:
    """Maps (B, N_q, N_k) of one head, or (h, N_q, N_k) of one sequence, with both axes.

    And without further axes of length 1.
    """
    if weights.ndim > 4:
        B, *middle, Nq, Nk = weights.shape
        weights = weights.reshape(B, *(size for size in middle if size > 1), Nq, Nk)
    if weights.ndim != 3:
        return weights
    if x.ndim == 2 or (x.ndim == 3 and x.shape[:2] == (weights.shape[1], 1)):  # (N, 1, D)
        return weights[None]
    if x.ndim == 3 and x.shape[1] != weights.shape[1]:
        return weights  # perhaps (N, B, D)
    if len(weights) == len(x):
        return weights[:, None]
    return weights[None] if len(x) == 1 else weights
