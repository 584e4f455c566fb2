"""Merging W_Q and W_K."""

import torch
from case import Case, stub

from vitcheck.exercises.qk_merge import check_merge_biases, check_multiplies


def multiplies_by_shapes(n, N, D, d):
    def product(a, b, c):
        return torch.tensor(a * b * c)

    return {
        "merged": product(n, D, D) + product(n, D, N),
        "reordered": product(n, D, d) + product(n, d, D) + product(n, D, N),
        "separate": product(n, D, d) + product(N, D, d) + product(n, d, N),
    }


CASES = [
    Case(
        check_multiplies,
        wrong={
            "one product": (
                lambda *s: multiplies_by_shapes(*s) | {"merged": s[0] * s[2] ** 2},
                "and then",
            ),
            "one too many": (
                lambda *s: multiplies_by_shapes(*s) | {"separate": 1},
                "n queries, N keys",
            ),
        },
        stubs=(stub, lambda *_: dict.fromkeys(multiplies_by_shapes(2, 3, 4, 5), ...)),
    ),
    Case(
        check_merge_biases,
        wrong={
            "key bias times keys": (
                lambda q, b, k, c: (q @ k.T, k @ b + k @ c),
                "changes no weight",
            ),
            "halved": (lambda q, b, k, c: (q @ k.T, k @ b / 2), "token that is asked"),
            "bias in M": (lambda q, b, k, c: ((q + b) @ k.T, k @ b), "M changes with a bias"),
            "only one bias at a time": (
                lambda q, b, k, c: (q @ k.T, k @ (b if c.abs().max() == 0 else 0 * b)),
                "wrong for both",
            ),
        },
    ),
]
