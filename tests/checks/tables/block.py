"""The block."""

import math

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.block import (
    check_block,
    check_layer_norm,
    check_left_out,
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


ANSWERS = {
    "without attention the model is worse at both lengths": "yes",
    "at 1,000 steps the MLP is worth two points or more": "no",
    "the MLP is worth more at 10,000 steps than at 1,000": "yes",
    "at 10,000 steps no GELU costs less than no MLP": "cannot say",
    "at 10,000 steps the norms are worth nothing": "cannot say",
    "a ViT of 24 blocks trains as well without norms": "cannot say",
}


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
    Case(check_left_out, also={"in words": lambda: ANSWERS}),
]
