"""A map that is symmetric, and what hiding a token moves."""

import math

import torch
from case import Case

from vitcheck.exercises.reading_maps import check_removal, check_row, check_symmetric_map


def circle(n, radius=2.0, part=1.0):
    angle = 2 * math.pi * part * torch.arange(n) / n
    return radius * torch.stack([angle.cos(), angle.sin()], dim=1)


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


def removal_by_einsum(weights, values):
    difference = values - torch.einsum("n,nd->d", weights, values)
    return weights / (1 - weights) * torch.einsum("nd,nd->n", difference, difference).sqrt()


ANSWERS = {
    "no token got more weight from the class token": "yes",
    "the corner gives the weight 0.6 to the class token": "cannot say",
    "the corner added more to this output than any other": "cannot say",
    "without the corner the answer would be another one": "cannot say",
    "the corner had the highest score of the row": "yes",
    "its score is higher than one with weight 0.3 elsewhere": "cannot say",
}


CASES = [
    Case(
        check_symmetric_map,
        right=circle,
        also={"a large circle": lambda n: circle(n, 5.0), "a ring, by loops": ring},
        wrong={
            "random tokens": (random_tokens, "what differs between rows"),
            "equal tokens": (lambda n: torch.ones(n, 3), "uniform"),
            "one-hot": (torch.eye, "treats all others alike"),
            "half a circle": (lambda n: circle(n, part=0.5), "what differs between rows"),
            "transposed": (lambda n: circle(n).T, "shape"),
        },
    ),
    Case(
        check_removal,
        also={"hiding": removal_by_hiding, "einsum": removal_by_einsum},
        wrong={
            "one number": (lambda w, v: removal_by_hiding(w, v).sum(), "shape"),
            "vectors": (lambda w, v: w[:, None] * v, "shape"),
            "a signed length": (lambda w, v: -removal_by_hiding(w, v), "a length is negative"),
        },
    ),
    Case(check_row, also={"in words": lambda: ANSWERS}),
]
