"""Chapter 9: the block."""

import math

import torch
import torch.nn.functional as F
from case import Case, stub

from vitcheck.ch09_block import (
    check_account,
    check_block,
    check_drop_path,
    check_layer_norm,
    check_mlp,
)


def mlp_by_loops(x, W1, b1, W2, b2):
    out = torch.empty_like(x)
    for i, image in enumerate(x):
        for j, token in enumerate(image):
            z = W1 @ token + b1
            out[i, j] = W2 @ (z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))) + b2
    return out


def mlp_by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("bnd,kd->bnk", x, W1) + b1)
    return torch.einsum("bnk,dk->bnd", hidden, W2) + b2


def layer_norm_by_loops(x, gain, bias, eps):
    tokens = []
    for token in x.flatten(0, 1):
        mean = sum(token) / len(token)
        variance = sum((number - mean) ** 2 for number in token) / len(token)
        tokens.append((token - mean) / (variance + eps) ** 0.5 * gain + bias)
    return torch.stack(tokens).view_as(x)


def block_in_place(x, norm1, attn, norm2, mlp):
    x += attn(norm1(x))
    x += mlp(norm2(x))
    return x


def account_by_layers(N, D, hidden):
    layers = [(D, 3 * D), (D, D), (D, hidden), (hidden, D)]
    learned = sum(a * b + b for a, b in layers) + 2 * (D + D)
    return [float(learned), float(sum(N * a * b for a, b in layers) + 2 * N * N * D)]


def drop_path(branch, rate):
    keep = torch.rand(len(branch), 1, 1) >= rate
    return branch * keep / (1 - rate)


def drop_path_by_loops(branch, rate):
    return torch.stack(
        [0 * image if torch.rand(()) < rate else image / (1 - rate) for image in branch]
    )


def drop_path_by_bernoulli(branch, rate):
    return branch * torch.full((len(branch), 1, 1), 1 - rate).bernoulli() / (1 - rate)


CASES = [
    Case(
        check_mlp,
        also={"loops": mlp_by_loops, "einsum": mlp_by_einsum},
        wrong={
            "not transposed": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1 + b1) @ W2 + b2,
                "(out, in)",
            ),
            "bare transposes": (
                lambda x, W1, b1, W2, b2: F.gelu(F.linear(x, W1, b1)) @ W2 + b2,
                "(out, in)",
            ),
            "something broken": (
                lambda x, W1, b1, W2, b2: x @ torch.zeros(9, 9),
                "your code stopped",
            ),
        },
    ),
    Case(
        check_layer_norm,
        also={
            "F.layer_norm": lambda x, g, b, e: F.layer_norm(x, g.shape, g, b, e),
            "loops": layer_norm_by_loops,
        },
    ),
    Case(
        check_block,
        also={"one line": lambda x, n1, a, n2, m: (y := x + a(n1(x))) + m(n2(y))},
        wrong={"in place": (block_in_place, "change an input in place")},
    ),
    Case(
        check_account,
        also={"floats": account_by_layers},
        stubs=(stub, lambda N, D, hidden: (..., ...)),
    ),
    Case(
        check_drop_path,
        right=drop_path,
        also={"loops": drop_path_by_loops, "bernoulli": drop_path_by_bernoulli},
        wrong={
            "dropout": (lambda b, rate: F.dropout(b, rate) if rate else b, "as in dropout"),
            "tokens": (
                lambda b, rate: b * (torch.rand(*b.shape[:2], 1) >= rate) / (1 - rate),
                "single tokens",
            ),
            "not scaled": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate),
                "mean over many runs",
            ),
            "scaled down": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) * (1 - rate),
                "became smaller",
            ),
            "keeps the rate": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) < rate) / (1 - rate),
                "what stays, or what goes",
            ),
            "nothing": (lambda b, rate: b, "nothing was dropped"),
            "everything": (lambda b, rate: 0 * b, "everything is dropped"),
            "same for all": (
                lambda b, rate: b * (torch.arange(b.shape[1]) > 0)[:, None],
                "all samples lose the same",
            ),
            "scaled by rate": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) / (rate or 1),
                "scaled by what is dropped",
            ),
            "one lot for all": (
                lambda b, rate: b * (torch.rand(1) >= rate) / (1 - rate),
                "does each draw its own lot",
            ),
        },
    ),
]
