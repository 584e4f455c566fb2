"""Chapter 4: many heads."""

import copy

import torch
from case import Case, stub

from vitcheck.ch04_many_heads import (
    check_counts,
    check_repack,
    check_shift_head,
    check_split_heads,
    check_without_head,
)

COUNTS = {
    "W_Q of all 12 heads together": 768 * 768,
    "W_Q of one of the 12 heads": 768 * 64,
    "W_Q of all heads, if there are 24": 768 * 768,
    "W_Q of all 12 heads, embedding cut in 12": 12 * 64 * 64,
}
ALL, ONE, TWICE, CUT = COUNTS


def split(x, h):
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def split_by_loops(x, h):
    B, N, D = x.shape
    heads = torch.empty(B, h, N, D // h)
    for head in range(h):
        for column in range(D // h):
            heads[:, head, :, column] = x[:, :, head * (D // h) + column]
    return heads


def split_by_einsum(x, h):
    D = x.shape[-1]
    pick = torch.eye(D).view(D, h, D // h)
    return torch.einsum("bnD,Dhd->bhnd", x, pick)


def contribution(layer, x, head):
    q, k, v = layer.project(x)
    d = layer.head_dim
    weights = (q @ k.transpose(-2, -1) / d**0.5).softmax(-1)
    own = slice(head * d, (head + 1) * d)
    return (weights @ v)[:, head] @ layer.proj.weight[:, own].T


def without(layer, x, head):
    return layer(x) - contribution(layer, x, head)


def without_by_loops(layer, x, head):
    q, k, v = layer.project(x)
    d, total = layer.head_dim, layer.proj.bias
    for other in range(layer.num_heads):
        if other != head:
            scores = torch.einsum("bnd,bmd->bnm", q[:, other], k[:, other]) / d**0.5
            brought = torch.einsum("bnm,bmd->bnd", scores.softmax(-1), v[:, other])
            W_O = layer.proj.weight[:, other * d : (other + 1) * d]
            total = total + torch.einsum("bnd,Dd->bnD", brought, W_O)
    return total


def silenced(layer, x, head, rows=False, inside=False):
    layer = layer if inside else copy.deepcopy(layer)
    own = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    with torch.no_grad():
        if rows:
            layer.proj.weight[own] = 0.0
        else:
            layer.proj.weight[:, own] = 0.0
    return layer(x)


def silenced_in_float64(layer, x, head):
    return silenced(copy.deepcopy(layer).double(), x.double(), head, inside=True)


def zeroed(layer, x, head, part, bias=True):
    """With the rows of queries (0), keys (1) or values (2) of one head set to zero."""
    layer = copy.deepcopy(layer)
    start = part * layer.proj.in_features + head * layer.head_dim
    own = slice(start, start + layer.head_dim)
    with torch.no_grad():
        layer.qkv.weight[own] = 0.0
        if bias:
            layer.qkv.bias[own] = 0.0
    return layer(x)


def joined_by_reshape(layer, x, head):
    q, k, v = layer.project(x)
    heads = (q @ k.transpose(-2, -1) / layer.head_dim**0.5).softmax(-1) @ v
    heads[:, head] = 0.0
    return layer.proj(heads.reshape(x.shape))


def louder(layer, x, head):
    h, bias = layer.num_heads, layer.proj.bias
    return (without(layer, x, head) - bias) * h / (h - 1) + bias


def repack(weight, h):
    return weight.unflatten(0, (h, 3, -1)).transpose(0, 1).flatten(0, 2)


def repack_by_loops(weight, h):
    blocks = weight.chunk(3 * h)
    return torch.cat([blocks[3 * head + part] for part in range(3) for head in range(h)])


def repack_by_einsum(weight, h):
    parts = torch.einsum("hpdD->phdD", weight.view(h, 3, -1, weight.shape[1]))
    return parts.reshape(weight.shape)


def unpack(weight, h):
    return weight.unflatten(0, (3, h, -1)).transpose(0, 1).flatten(0, 2)


def queries_only(weight, h):
    right = repack(weight, h)
    D = weight.shape[1]
    return torch.cat([right[:D], right[2 * D :], right[D : 2 * D]])


def shift(step, sharpness=20.0, square=1.0, sign=1.0, constant=True):
    far = 2.0 * sign * step if constant else 0.0
    W_Q = torch.tensor([[far, -square], [2.0, 0.0], [0.0, 0.0]])
    W_K = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return sharpness * W_Q, W_K


def shift_in_the_keys(step):
    """The same parabola with the step on the other side: -(m - step - n)^2."""
    W_Q = torch.tensor([[0.0, -1.0], [2.0, 0.0], [0.0, 0.0]])
    W_K = torch.tensor([[-1.0 * step, step**2], [1.0, -2.0 * step], [0.0, 1.0]])
    return [20.0 * W_Q, W_K]


def one_token_only(step):  # right for token 3 alone
    W_Q = torch.tensor([[2.0 * (3 + step), -1.0], [0.0, 0.0], [0.0, 0.0]])
    return 20 * W_Q, shift(step)[1]


CASES = [
    Case(
        check_split_heads,
        right=split,
        also={
            "view": lambda x, h: x.view(*x.shape[:2], h, -1).transpose(1, 2),
            "chunks": lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
            "loops": split_by_loops,
            "einsum": split_by_einsum,
        },
        wrong={
            "not moved": (lambda x, h: x.reshape(*x.shape[:2], h, -1), "before the tokens"),
            "tokens cut": (
                lambda x, h: x.reshape(len(x), h, x.shape[1], -1),
                "how many tokens does",
            ),
            "every third column": (
                lambda x, h: x.reshape(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
                "a head's columns neighbours",
            ),
            "heads turned round": (
                lambda x, h: split(x, h).flip(1),
                "head 0 should hold the columns 0 to 3",
            ),
            "batch and tokens in one axis": (
                lambda x, h: (
                    x.view(-1, h, x.shape[2] // h).view(*x.shape[:2], h, -1).transpose(1, 2)
                ),
                "view size is not compatible",
            ),
            "sizes typed": (lambda x, h: x.reshape(2, 5, 3, 4).transpose(1, 2), "other sizes"),
            "heads typed": (lambda x, h: split(x, 3)[:, :h], "other sizes"),
            "not split": (lambda x, h: x, "expected (2, 3, 5, 4)"),
        },
    ),
    Case(
        check_counts,
        right=lambda: COUNTS,
        wrong={
            "one head D x D": (lambda: COUNTS | {ONE: 768 * 768}, "how wide are its queries"),
            "one head d x d": (lambda: COUNTS | {ONE: 64 * 64}, "read all D numbers"),
            "the width": (lambda: COUNTS | {ONE: 64}, "the width of a head"),
            "h matrices D x D": (
                lambda: COUNTS | {ALL: 12 * 768 * 768},
                "is W_Q of one head D x D",
            ),
            "q, k and v": (lambda: COUNTS | {ALL: 3 * 768 * 768}, "only W_Q is asked"),
            "twice as many": (lambda: COUNTS | {TWICE: 2 * 768 * 768}, "is each of them as wide"),
            "half as many": (lambda: COUNTS | {TWICE: 768 * 384}, "how many rows"),
            "one block": (lambda: COUNTS | {CUT: 64 * 64}, "how many heads are there"),
            "not cut": (lambda: COUNTS | {CUT: 768 * 768}, "without the cut"),
            "nearly": (lambda: COUNTS | {ALL: 768 * 768 + 1}, "how many rows"),
            "three deleted": (lambda: {ALL: 768 * 768}, "has lost its answer"),
            "no answers": (lambda: {}, "has lost its answer"),
            "another question": (lambda: COUNTS | {"W_K": 1}, "not one of the questions"),
            "a number": (lambda: 768, "return a dictionary"),
        },
        stubs=(stub, lambda: None, lambda: COUNTS | {ONE: ...}),
    ),
    Case(
        check_without_head,
        right=without,
        also={
            "weights silenced": silenced,
            "float64 inside": silenced_in_float64,
            "value silenced": lambda layer, x, head: zeroed(layer, x, head, part=2),
            "loops and einsum": without_by_loops,
        },
        wrong={
            "all heads": (lambda layer, x, head: layer(x), "what is missing"),
            "only that head": (contribution, "what is left without it"),
            "bias lost": (
                lambda layer, x, head: without(layer, x, head) - layer.proj.bias,
                "belongs to no head",
            ),
            "from one": (lambda layer, x, head: without(layer, x, head - 1), "from 1"),
            "rows": (
                lambda layer, x, head: silenced(layer, x, head, rows=True),
                "did you silence rows",
            ),
            "louder": (louder, "speak louder"),
            "queries zeroed": (
                lambda layer, x, head: zeroed(layer, x, head, part=0),
                "still brings an average",
            ),
            "query weights zeroed": (
                lambda layer, x, head: zeroed(layer, x, head, part=0, bias=False),
                "still brings an average",
            ),
            "keys zeroed": (
                lambda layer, x, head: zeroed(layer, x, head, part=1),
                "still brings an average",
            ),
            "value bias stays": (
                lambda layer, x, head: zeroed(layer, x, head, part=2, bias=False),
                "bias of its values",
            ),
            "joined by reshape": (joined_by_reshape, "behind the tokens"),
            "another scale": (
                lambda layer, x, head: 2 * without(layer, x, head),
                "in a copy: is it the same",
            ),
            "in place": (
                lambda layer, x, head: silenced(layer, x, head, inside=True),
                "weights have changed",
            ),
        },
    ),
    Case(
        check_repack,
        right=repack,
        also={"loops": repack_by_loops, "einsum": repack_by_einsum},
        wrong={
            "as it came": (lambda weight, h: weight, "which rows must move"),
            "the way back": (unpack, "that is the way back"),
            "the way back by view": (
                lambda weight, h: weight.view(3, h, -1).transpose(0, 1).reshape(weight.shape),
                "the way back",
            ),
            "queries only": (queries_only, "are the keys and the values"),
            "turned round": (lambda weight, h: repack(weight, h).flip(0), "stood first"),
            "heads turned round": (
                lambda weight, h: repack(weight.view(h, -1).roll(-1, 0).view(weight.shape), h),
                "stood first",
            ),
            "columns moved": (
                lambda weight, h: repack(weight.T.reshape(weight.shape), h),
                "some row was lost, doubled or mixed",
            ),
            "an axis more": (
                lambda weight, h: weight.view(h, 3, -1).transpose(0, 1),
                "expected (24, 8)",
            ),
        },
    ),
    Case(
        check_shift_head,
        right=shift,
        also={
            "sharper": lambda step: shift(step, sharpness=50.0),
            "much sharper": lambda step: shift(step, sharpness=1e4),
            "step in the keys": shift_in_the_keys,
        },
        wrong={
            "other side": (lambda step: shift(step, sign=-1.0), "to the other side"),
            "no square": (lambda step: shift(step, square=0.0), "keeps a far token from winning"),
            "no step": (
                lambda step: shift(step, constant=False),
                "where does the step come in",
            ),
            "blunt": (lambda step: shift(step, sharpness=1.0), "a softmax sharper"),
            "one token only": (one_token_only, "every token looks at token 4"),
            "twice as far": (lambda step: shift(2 * step), "where is its maximum"),
            "one matrix": (lambda step: shift(step)[0], "should be a pair"),
            "transposed": (lambda step: tuple(W.T for W in shift(step)), "expected (3, 2)"),
        },
        stubs=(stub, lambda step: (..., ...)),
    ),
]
