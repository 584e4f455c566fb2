"""Where a token is."""

import torch
from case import Case, stub

from vitcheck.exercises.positions import (
    check_shuffles,
    check_turn,
    check_who_sees_order,
)

ORDER = {
    "attention": "equivariant",
    "feed-forward network": "equivariant",
    "attention, then the mean": "invariant",
    "attention with a causal mask": "neither",
    "attention after adding sines and cosines": "neither",
    "all tokens side by side, one linear layer": "neither",
}

STATEMENTS = {
    "the model with the learned table uses its positions": "yes",
    "a model without positions has learned nothing": "no",
    "a learned table is better than sin-cos 2-D": "cannot say",
    "trained on images shuffled alike, learned falls to 30 %": "no",
}


def turn_by_loops(x, positions):
    turned, d = torch.empty_like(x), x.shape[-1]
    for b, sequence in enumerate(x):
        for t, place in enumerate(positions):
            for i in range(d // 2):
                angle = place * 10000 ** (-2 * i / d)
                p, q = sequence[t, 2 * i], sequence[t, 2 * i + 1]
                turned[b, t, 2 * i] = p * angle.cos() - q * angle.sin()
                turned[b, t, 2 * i + 1] = p * angle.sin() + q * angle.cos()
    return turned


def turn_by_complex_numbers(x, positions):
    d = x.shape[-1]
    angles = positions[:, None].double() * 10000.0 ** (-torch.arange(0, d, 2) / d)
    z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.exp(1j * angles)).flatten(-2)


def turn_by_einsum(x, positions):
    d = x.shape[-1]
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    rotation = torch.stack([c, s, -s, c], -1).unflatten(-1, (2, 2))  # (N, d / 2, 2, 2)
    return torch.einsum("bnpi,npij->bnpj", x.unflatten(-1, (-1, 2)), rotation).flatten(-2)


CASES = [
    Case(
        check_who_sees_order,
        right=lambda: ORDER,
        wrong={
            "attention": (lambda: ORDER | {"attention": "invariant"}, "shuffled likewise"),
            "mean": (
                lambda: ORDER | {"attention, then the mean": "equivariant"},
                "what does the mean do with that",
            ),
            "causal mask": (
                lambda: ORDER | {"attention with a causal mask": "equivariant"},
                "sees only itself",
            ),
            "side by side": (
                lambda: ORDER | {"all tokens side by side, one linear layer": "invariant"},
                "weights of its own",
            ),
            "another word": (lambda: ORDER | {"attention": "yes"}, "got 'yes'"),
            "one answer": (lambda: {"attention": "equivariant"}, "lost its answer"),
            "no answers": (dict, "lost its answer"),
            "a layer renamed": (
                lambda: ORDER | {"my own layer": "neither"},
                "not one of the questions",
            ),
            "a list": (lambda: list(ORDER.values()), "dictionary"),
        },
        stubs=(stub, lambda: ORDER | {"attention": ...}),
    ),
    Case(
        check_turn,
        also={
            "loops": turn_by_loops,
            "einsum": turn_by_einsum,
            "complex numbers": turn_by_complex_numbers,
        },
        wrong={
            "own positions, but zero": (
                lambda x, p: turn_by_einsum(x, torch.arange(len(p)) * (p != 0).any()),
                "of the given positions",
            ),
            "added": (lambda x, p: x + p[:, None], "keep its length"),
            "a constant turn": (lambda x, p: turn_by_einsum(x, p + 1), "angle zero"),
        },
    ),
    Case(check_shuffles, also={"in words": lambda: STATEMENTS}),
]
