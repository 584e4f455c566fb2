"""Many heads."""

import copy

import torch
from case import Case

from vitcheck.exercises.many_heads import (
    check_heads,
    check_split_heads,
    check_without_head,
)


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


STATEMENTS = {
    "in this training three heads do better than one": "yes",
    "the better models have more weights in their layers": "no",
    "six heads are better than twelve": "cannot say",
    "one head cannot reach 63 % on these images": "cannot say",
}


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
    Case(check_heads, also={"in words": lambda: STATEMENTS}),
]
