"""The block."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.block import check_block, check_mlp


def block_in_place(x, norm1, attn, norm2, mlp):
    x += attn(norm1(x))
    x += mlp(norm2(x))
    return x


CASES = [
    Case(
        check_mlp,
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
        check_block,
        wrong={"in place": (block_in_place, "change an input in place")},
    ),
]
