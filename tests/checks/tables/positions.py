"""Where a token is."""

import torch
from case import Case, stub

from vitcheck.exercises.positions import check_turn, check_who_sees_order

ORDER = {
    "attention": "equivariant",
    "feed-forward network": "equivariant",
    "attention, then the mean": "invariant",
    "attention with a causal mask": "neither",
    "attention after adding sines and cosines": "neither",
    "all tokens side by side, one linear layer": "neither",
}


def turn_by_einsum(x, positions):
    d = x.shape[-1]
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    c, s = angles.cos(), angles.sin()
    rotation = torch.stack([c, s, -s, c], -1).unflatten(-1, (2, 2))  # (N, d / 2, 2, 2)
    return torch.einsum("bnpi,npij->bnpj", x.unflatten(-1, (-1, 2)), rotation).flatten(-2)


CASES = [
    Case(
        check_who_sees_order,
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
        },
        stubs=(stub, lambda: ORDER | {"attention": ...}),
    ),
    Case(
        check_turn,
        wrong={
            "added": (lambda x, p: x + p[:, None], "keep its length"),
            "a constant turn": (lambda x, p: turn_by_einsum(x, p + 1), "angle zero"),
        },
    ),
]
