"""Attention weights, worked out from what an attention function of PyTorch was called with."""

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = (-2, -2)  # the axes of the tokens, in values and in what came out
KINDS, SOME = 3, 16  # kinds of tokens; rows of each order that are looked at
PRODUCT = {torch.matmul, Tensor.matmul, torch.linalg.matmul, torch.bmm, Tensor.bmm}


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
    if attn_mask is not None and hasattr(attn_mask, "_materialize"):  # a CausalBias
        attn_mask = attn_mask._materialize(query.device)
    if enable_gqa:  # some heads share their keys
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query * scale @ key.transpose(-2, -1)  # (..., N_q, N_k)
    if attn_mask is None and not is_causal:
        return scores.softmax(dim=-1)
    if is_causal:
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~past, -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    # a softmax over nothing but -inf is nan: such a row becomes zero
    return scores.softmax(dim=-1).masked_fill(scores == -math.inf, 0.0)


def mha_again(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """What ``F.multi_head_attention_forward`` gives, without dropout and with its weights.

    The function itself can give the weights (B, h, N_q, N_k), so it is asked a second time.
    """
    given = dict(zip(MHA_ARGUMENTS, args, strict=False)) | kwargs
    given |= {"training": False, "need_weights": True, "average_attn_weights": False}
    wide = {name: _wide(value) for name, value in given.items()}
    out, weights = F.multi_head_attention_forward(**wide)
    assert weights is not None  # they were asked for
    return out, weights


def mha_draws(*args: Any, **kwargs: Any) -> bool:
    """Does this call of ``F.multi_head_attention_forward`` drop weights?"""
    given = dict(zip(MHA_ARGUMENTS, args, strict=False)) | kwargs
    return given.get("training", True) and given["dropout_p"] > 0


def sdpa_draws(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    *_: Any,
    **__: Any,
) -> bool:
    """Does this call of ``F.scaled_dot_product_attention`` drop weights?"""
    return dropout_p > 0


MHA_ARGUMENTS = F.multi_head_attention_forward.__code__.co_varnames


def fused_values(func: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, tuple[int, int]]:
    """The values of a call of PyTorch's two attention functions, and the axes of their tokens."""
    value = args[2] if len(args) > 2 else kwargs["value"]
    return value, (0, 0) if func is F.multi_head_attention_forward else ROWS


def fused_scores(func: Any, query: Tensor, key: Tensor, *_: Any, **__: Any) -> Tensor:
    """By which token asks which in a call of these functions, but for scale, weights and mask."""
    if func is F.multi_head_attention_forward:
        query, key = query.movedim(0, -2), key.movedim(0, -2)
        if query.shape[-1] != key.shape[-1]:  # each has a projection of its own
            query, key = query.mean(-1, keepdim=True), key.mean(-1, keepdim=True)
    if query.ndim > 2 and key.shape[-3] < query.shape[-3]:  # some heads share their keys
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    return query @ key.mT


def on_the_side(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Work it out without gradients and in full precision, also under autocast."""
    if not (torch.is_grad_enabled() or torch._C._is_any_autocast_enabled()):
        return work(*args, **kwargs)
    kind = next(a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)).device.type
    with torch.no_grad():
        if not torch.is_autocast_enabled(kind):
            return work(*args, **kwargs)
        with torch.autocast(kind, enabled=False):
            return work(*args, **kwargs)


def unreadable(out: Any) -> str:
    """Why the numbers of what a function gave cannot be looked at, or nothing."""
    x = out[0] if isinstance(out, tuple) and out else out
    if isinstance(x, Tensor) and x.is_nested:
        return "its tokens are a nested tensor: as many for each image are needed"
    if isinstance(x, Tensor) and torch._C._functorch.is_batchedtensor(x):
        return "it runs in torch.vmap, which shows nothing"
    return ""


def _wide(value: Any) -> Any:
    narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if narrow else value


# --- do weights give what came out? --------------------------------------------------------------


def operands(
    func: Any, args: tuple, kwargs: dict
) -> Iterator[tuple[Tensor, Tensor, tuple[int, int]]]:
    """What a product could take for weights (..., N_q, N_k), and for values, either way round.

    With the axes of the keys in the values, and of the queries in what comes out.
    """
    if func in PRODUCT or func is torch.baddbmm:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        a, b = given[func is torch.baddbmm :][:2]
        if a.ndim > 1 and b.ndim > 1:
            yield a, b, ROWS
            yield b.mT, a.mT, (-2, -1)
            for axis in range(-a.ndim, -2):  # heads may share their values
                alone = b.ndim < -axis or b.shape[axis] < a.shape[axis]
                if alone and a.shape[axis] == a.shape[-2] == a.shape[-1]:
                    yield a.transpose(axis, -2), b, (-2, axis)
    elif func is torch.einsum and isinstance(args[0], str):
        both = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        terms, arrow, left = args[0].replace(" ", "").partition("->")
        left = left if arrow else "".join(x for x in terms if x == "." or terms.count(x) == 1)
        if len(both) != 2:
            return
        for (term, weights), (other, values) in permutations(
            zip(terms.split(","), both, strict=True)
        ):
            term = term.replace("...", "." * (weights.ndim - len(term.replace("...", ""))))
            keys = [axis for axis, x in enumerate(term) if x in other and x not in left]
            queries = [axis for axis, x in enumerate(term) if x in left and x not in other]
            summed = {*term, *other} - {*left}
            if len(keys) == len(summed) == 1 and queries:
                long = [axis for axis in queries if weights.shape[axis] == weights.shape[keys[0]]]
                for query in (long or queries[-1:])[::-1]:
                    front = [axis for axis in range(len(term)) if axis not in (query, *keys)]
                    rows = axis_of(other, term[keys[0]]), axis_of(left, term[query])
                    yield weights.permute(*front, query, *keys), values, rows


def axis_of(term: str, letter: str) -> int:
    """Where a letter stands, from the end where dots, of any number of axes, stand before it."""
    at = term.index(letter)
    return at - len(term) if "." in term[:at] else at


def as_used(used: Tensor, weights: Tensor) -> tuple[int, ...] | None:
    """The order of axes in which weights are these numbers, whatever way they went in between.

    The last axis, of the keys, stays the last. None: they are other numbers.
    """
    if used.numel() == weights.numel() and used.is_complex() and not used.imag.any():
        used = used.real
    if used.numel() != weights.numel() or not used.is_floating_point():
        return None
    used = used if used.layout == torch.strided else used.to_dense()
    used, weights = used.detach(), weights.to(used)
    for order in permutations(range(weights.ndim - 1)):
        turned = weights.permute(*order, -1)
        if used.shape[-2:] != turned.shape[-2:]:
            continue
        same = used.reshape(turned.shape)
        if torch.equal(same, turned) or torch.allclose(same, turned, 0, 0, equal_nan=True):
            return (*order, -1)
    return None


def drops(
    input: Tensor, p: float = 0.5, training: bool = True, *_: Any, train: bool = True, **__: Any
) -> bool:
    """Does a call of a dropout function with these arguments drop anything?"""
    return p > 0 and training and train


def is_dropped(out: Any, weights: Tensor) -> bool:
    """Are these the weights, after dropout: some zero, the others larger by one factor?"""
    if not isinstance(out, Tensor) or out.numel() != weights.numel():
        return False
    dropped = out.detach().reshape(weights.shape)
    if torch.equal(dropped, weights):
        return False
    ratio = (dropped / weights)[weights > 0]
    kept = ratio[ratio > 0]
    even = kept.numel() > 0 and bool((kept.amax() - kept.amin()) < 1e-2 * kept.amax())
    return even and not (ratio < 0).any()


def moved_rows(before: Tensor, after: Tensor, keys: set[int]) -> int:
    """How many rows of two maps (..., N, N) differ, but for some keys and what they leave."""
    others = [key for key in range(before.shape[-1]) if key not in keys]
    before, after = (x[..., others].double() for x in (before, after))
    rests = before.sum(-1, keepdim=True), after.sum(-1, keepdim=True)
    apart = (before / rests[0] - after / rests[1]).abs() > 1e-3
    seen = (rests[0] > 0.01) & (rests[1] > 0.01)
    return int((apart & seen).movedim(-2, 0).flatten(1).any(dim=1).sum())


def turned_rows(before: Tensor, after: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows of scores (..., N, N) rank the keys that did not move (N,) anew.

    By more than rounding, and up to one number for a row, which its softmax does not see. And in
    which rows this is known, as these keys differ.
    """
    seen = (before.abs() < 1e4) & (after.abs() < 1e4) & ~moved  # what is more is a mask
    size = torch.where(seen, before.abs(), 0.0).amax(-1, keepdim=True)

    def spread(x: Tensor) -> Tensor:
        x = torch.where(seen, x.double(), math.nan)
        far = (x - x.nanmean(-1, keepdim=True)).abs()
        return (far > 2 * eps * size).any(-1)

    eps = torch.finfo(before.dtype).eps
    turned = spread(after - before)
    if eps > 1e-4:  # of half precision: a row that moved changes by less than this, but changes
        turned = turned | (((before != after) & seen).any(-1) & moved)
    return turned, spread(before)


def sdpa_holds(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    out: Tensor,
    enable_gqa: bool = False,
    **_: Any,
) -> Callable[[Tensor], bool] | None:
    """Whether weights give what ``F.scaled_dot_product_attention`` gave; None where it drops some.

    The arguments are that function's own, and ``out``, what it gave. The first image is looked at.
    """
    if dropout_p:
        return None
    if enable_gqa:  # some heads share their values
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], dim=-3)
    one = value.ndim == out.ndim > 2 and len(value) == len(out)
    values, product = ((x[:1] if one else x).detach().clone() for x in (value, out))

    def holds(weights: Tensor) -> bool:  # (..., N_q, N_k)
        used = weights[:1] if one and len(weights) == len(out) else weights
        wide = _wide(values).to(used.dtype)
        return is_close(used @ wide, product, wide.abs().amax(dim=(-2, -1), keepdim=True))

    return holds


def are_weights(used: list[Tensor], said: Tensor, sums: list[Tensor]) -> bool:
    """Are the weights (B, h, N_q, N_k) that are said among these, or one part after the other?

    Images or heads may come first. Divided by their sums, if those are in ``sums``.
    """
    alike: dict[torch.Size, list[Tensor]] = {}
    for x in used:
        total = x.sum(-1, keepdim=True)
        divided = any(is_close(y, total) or is_close(y, 1 / total) for y in sums)
        alike.setdefault(x.shape, []).append(x / total if divided else x)
    wholes = [x for those in alike.values() for x in (*those, torch.stack(those))]
    return any(is_close(x, y) for x in wholes for y in (said, said.transpose(0, 1)))


def sums_tokens(layer: Any, x: Tensor, *args: Any, **kwargs: Any) -> bool | None:
    """Is what a layer gives the sum that it says, of something of each token? None: nothing tells.

    Tokens of three kinds come in many orders. Each head has one vector for each kind, and all rows
    have to be sums of these, weighted: there are at least twice as many orders as vectors.
    """
    (B, N, D), eps = x.shape, torch.finfo(x.dtype).eps
    generator, vectors = torch.Generator().manual_seed(0), 1
    shares: list[Tensor] = []
    rows: list[Tensor] = []
    tokens = torch.randn(KINDS, D, generator=generator).to(x) * x.std() + x.mean()
    while len(rows) * B < 2 * vectors:
        order = torch.randint(KINDS, (B, N), generator=generator).to(x.device)
        some = torch.randperm(N, generator=generator)[:SOME].to(x.device)
        rows.append(layer(tokens[order], *args, **kwargs)[:, some].flatten(0, 1).double().cpu())
        # afterwards, as it may say what forward kept
        said = layer.attention_weights(tokens[order], *args, **kwargs).view(B, -1, N, N)
        share = said[:, :, some].double() @ F.one_hot(order, KINDS)[:, None].double()
        shares.append(share.movedim(1, 2).flatten(2).flatten(0, 1).cpu())  # (B * some, h * kinds)
        vectors = 1 + shares[0].shape[1]
        if math.comb(N + KINDS - 1, N) < 2 * vectors:
            return None  # so few tokens have too few orders
    known, gave = F.pad(torch.cat(shares), (1, 0), value=1.0), torch.cat(rows)
    apart = known @ torch.linalg.lstsq(known, gave, driver="gelsd").solution - gave
    if apart.abs().amax() > min(max(100 * eps, 1e-6), 0.1) * (gave - gave.mean(0)).abs().amax():
        return False
    return True if eps < 1e-5 else None  # sums of half precision fit much


def is_close(a: Tensor, b: Tensor, scale: Tensor | None = None) -> bool:
    """Equal but for rounding, relative to a scale; nan is equal to everything."""
    if a.numel() != b.numel():
        return False
    eps = max(torch.finfo(x.dtype).eps for x in (a, b))
    scale = b.abs().amax() if scale is None else scale
    return not bool(((a.reshape(b.shape) - b).abs() > min(10 * eps**0.5, 0.1) * scale).any())
