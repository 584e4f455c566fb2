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
ALL, ONE, TWICE, _ = COUNTS


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


def less_its_contribution(layer, x, head):
    q, k, v = layer.project(x)
    d = layer.head_dim
    weights = (q @ k.transpose(-2, -1) / d**0.5).softmax(-1)
    own = slice(head * d, (head + 1) * d)
    return layer(x) - (weights @ v)[:, head] @ layer.proj.weight[:, own].T


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


def silenced(layer, x, head):
    own = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    with torch.no_grad():
        layer.proj.weight[:, own] = 0.0
    return layer(x)


def silenced_in_float64(layer, x, head):
    return silenced(copy.deepcopy(layer).double(), x.double(), head)


def without_its_values(layer, x, head):
    layer, start = copy.deepcopy(layer), 2 * layer.proj.in_features + head * layer.head_dim
    with torch.no_grad():
        layer.qkv.weight[start : start + layer.head_dim] = 0.0
        layer.qkv.bias[start : start + layer.head_dim] = 0.0
    return layer(x)


def repack(weight, h):
    return weight.unflatten(0, (h, 3, -1)).transpose(0, 1).flatten(0, 2)


def repack_by_loops(weight, h):
    blocks = weight.chunk(3 * h)
    return torch.cat([blocks[3 * head + part] for part in range(3) for head in range(h)])


def repack_by_einsum(weight, h):
    parts = torch.einsum("hpdD->phdD", weight.view(h, 3, -1, weight.shape[1]))
    return parts.reshape(weight.shape)


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
        also={
            "view": split,
            "loops": split_by_loops,
            "einsum": split_by_einsum,
        },
        wrong={
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
        also={"in numbers": lambda: COUNTS},
        wrong={
            "half as many": (lambda: COUNTS | {TWICE: 768 * 384}, "how many rows"),
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
        also={
            "less its contribution": less_its_contribution,
            "float64 inside": silenced_in_float64,
            "value silenced": without_its_values,
            "loops and einsum": without_by_loops,
        },
        wrong={
            "another scale": (
                lambda layer, x, head: 2 * less_its_contribution(layer, x, head),
                "in a copy: is it the same",
            ),
            "in place": (silenced, "weights have changed"),
        },
    ),
    Case(
        check_repack,
        also={"loops": repack_by_loops, "einsum": repack_by_einsum},
        wrong={
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
