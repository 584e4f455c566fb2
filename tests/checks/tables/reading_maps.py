"""A map that is symmetric, and what hiding a token moves."""

import torch
from case import Case

from vitcheck.exercises.reading_maps import check_removal, check_symmetric_map


def ring(n):
    """Each token has a feature of its own and half of its right neighbour's."""
    x = torch.zeros(n, n)
    for i in range(n):
        x[i, i] = 2.0
        x[i, (i + 1) % n] = 1.0
    return x


def random_tokens(n):
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(n))


def removal_by_hiding(weights, values):
    moved = []
    for j in range(len(weights)):
        rest = torch.cat([weights[:j], weights[j + 1 :]])
        others = torch.cat([values[:j], values[j + 1 :]])
        moved.append((weights @ values - rest / rest.sum() @ others).norm())
    return torch.stack(moved)


CASES = [
    Case(
        check_symmetric_map,
        also={"a ring, by loops": ring},
        wrong={
            "random tokens": (random_tokens, "what differs between rows"),
            "equal tokens": (lambda n: torch.ones(n, 3), "uniform"),
            "one-hot": (torch.eye, "treats all others alike"),
        },
    ),
    Case(
        check_removal,
        wrong={"a signed length": (lambda w, v: -removal_by_hiding(w, v), "a length is negative")},
    ),
]
