"""The block."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.block import check_block, check_layer_norm, check_mlp


def mlp_by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("bnd,kd->bnk", x, W1) + b1)
    return torch.einsum("bnk,dk->bnd", hidden, W2) + b2


def block_in_place(x, norm1, attn, norm2, mlp):
    x += attn(norm1(x))
    x += mlp(norm2(x))
    return x


CASES = [
    Case(
        check_mlp,
        also={"einsum": mlp_by_einsum},
        wrong={
            "not transposed": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1 + b1) @ W2 + b2,
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
        also={"F.layer_norm": lambda x, g, b, e: F.layer_norm(x, g.shape, g, b, e)},
    ),
    Case(
        check_block,
        also={"one line": lambda x, n1, a, n2, m: (y := x + a(n1(x))) + m(n2(y))},
        wrong={"in place": (block_in_place, "change an input in place")},
    ),
]
