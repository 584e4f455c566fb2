"""Merging W_Q and W_K."""

import torch
from case import Case, stub

from vitcheck.exercises.qk_merge import (
    check_merge_biases,
    check_multiplies,
    check_report,
)

WAYS = ("separate", "reordered", "merged")


def multiplies_by_shapes(n, N, D, d):
    def product(a, b, c):
        return torch.tensor(a * b * c)

    return {
        "merged": product(n, D, D) + product(n, D, N),
        "reordered": product(n, D, d) + product(n, d, D) + product(n, D, N),
        "separate": product(n, D, d) + product(N, D, d) + product(n, d, N),
    }


def merge_by_loops(W_Q, b_Q, W_K, b_K):
    D, d = W_Q.shape
    M, u = torch.zeros(D, D), torch.zeros(D)
    for a in range(D):
        for c in range(d):
            u[a] += W_K[a, c] * b_Q[c]
            for b in range(D):
                M[a, b] += W_Q[a, c] * W_K[b, c]
    return [M, u]


def merge_by_einsum(W_Q, b_Q, W_K, b_K):
    return torch.einsum("ac,bc->ab", W_Q, W_K), torch.einsum("ac,c->a", W_K, b_Q)


ANSWERS = {
    "even weights are worse than two matrices on this task": "yes",
    "merging costs a point or more on this task": "no",
    "merging helps on this task": "cannot say",
    "one component makes worse scores than two matrices here": "cannot say",
    "merging is harmless where answers depend on the scores": "cannot say",
}


CASES = [
    Case(
        check_multiplies,
        also={"shape by shape": multiplies_by_shapes},
        wrong={
            "one product": (
                lambda *s: multiplies_by_shapes(*s) | {"merged": s[0] * s[2] ** 2},
                "and then",
            ),
            "one too many": (
                lambda *s: multiplies_by_shapes(*s) | {"separate": 1},
                "n queries, N keys",
            ),
            "a number": (lambda *s: 12, "return a dictionary"),
            "no answers": (lambda *s: {}, "lost its answer"),
            "one deleted": (
                lambda *s: {way: multiplies_by_shapes(*s)[way] for way in WAYS[:2]},
                "lost its answer",
            ),
            "renamed": (
                lambda *s: multiplies_by_shapes(*s) | {"re-ordered": 1},
                "not one of the questions",
            ),
        },
        stubs=(stub, lambda *_: dict.fromkeys(WAYS, ...)),
    ),
    Case(
        check_merge_biases,
        also={"loops": merge_by_loops, "einsum": merge_by_einsum},
        wrong={
            "key bias instead": (lambda q, b, k, c: (q @ k.T, q @ c), "disappeared"),
            "key bias times keys": (
                lambda q, b, k, c: (q @ k.T, k @ b + k @ c),
                "changes no weight",
            ),
            "halved": (lambda q, b, k, c: (q @ k.T, k @ b / 2), "token that is asked"),
            "bias in M": (
                lambda q, b, k, c: ((q + b) @ k.T, k @ b),
                "M changes with a bias",
            ),
            "only one bias at a time": (
                lambda q, b, k, c: (q @ k.T, k @ (b if c.abs().max() == 0 else 0 * b)),
                "wrong for both",
            ),
            "u as a column": (lambda q, b, k, c: (q @ k.T, (k @ b)[:, None]), "u has the shape"),
        },
    ),
    Case(check_report, also={"in words": lambda: ANSWERS}),
]
