"""Weights by hand, masks, a leak detector, and what its silence says."""

import math

import torch
from case import Case, stub

from vitcheck.exercises.weighted_average import (
    check_leak_detector,
    check_masked_weights,
    check_weights_by_hand,
)

LN2, LN5 = math.log(2), math.log(5)
RIGHT = [1 / 8, 2 / 8, 5 / 8]


def masked(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def renormalised(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


def full_masks_only(scores, mask):
    return masked(scores, mask if mask.ndim == scores.ndim else torch.ones_like(scores).bool())


def change(tokens, j):
    changed = tokens.clone()
    changed[j] = torch.randn(tokens.shape[1], generator=torch.Generator().manual_seed(j))
    return changed


def detects(seen=slice, tries=lambda n: range(1, n), changed=change, atol=0.0):
    """A detector that changes some tokens, and looks for each at what is seen of the output."""

    def leaks(layer, tokens):
        before = layer(tokens)
        return any(
            not torch.allclose(layer(changed(tokens, j))[seen(j)], before[seen(j)], 0, atol)
            for j in tries(len(tokens))
        )

    return leaks


def shift(tokens, j):
    changed = tokens.clone()
    changed[j] += 1.0
    return changed


def by_gradient(layer, tokens):
    jacobian = torch.autograd.functional.jacobian(layer, tokens)
    return (jacobian.abs().sum((1, 3)).triu(1) > 0).any()


def by_cutting(layer, tokens):
    whole = layer(tokens)
    return not all(
        torch.allclose(layer(tokens[:n]), whole[:n], atol=1e-9) for n in range(1, len(tokens))
    )


def not_written(*inputs):
    raise NotImplementedError


STUBS = (stub, lambda *inputs: None, not_written)

CASES = [
    Case(
        check_weights_by_hand,
        also={
            "rounded down": ((0.12, 0.25, 0.62), (3.44, 4.48)),
            "arrays": (torch.tensor(RIGHT).numpy(), torch.tensor([3.5, 4.5]).numpy()),
        },
        wrong={
            "scores": (
                ([0, LN2 / (LN2 + LN5), LN5 / (LN2 + LN5)], [3.0, 5.0]),
                "score of 0 does not mean",
            ),
            "not divided": (([1, 2, 5], [28, 36]), "sum to"),
            "turned round": (([5 / 8, 2 / 8, 1 / 8], [5.5, 2.5]), "third score is the largest"),
            "guessed": (([0.2, 0.3, 0.5], [3.6, 4.4]), "exponentials of their scores"),
            "negative": (([-0.5, 0.5, 1.0], [0, 8]), "negative"),
            "values added": ((RIGHT, [12, 12]), "without their weights"),
            "swapped": ((RIGHT, [4.5, 3.5]), "each other's place"),
            "outside": ((RIGHT, [28, 36]), "triangle"),
            "off": ((RIGHT, [3.0, 4.5]), "your"),
            "three entries": ((RIGHT, [3.5, 4.5, 0.0]), "two entries"),
        },
        stubs=((..., ...), ([0.125, ..., ...], ...), (None, None)),
    ),
    Case(
        check_masked_weights,
        wrong={
            "scores of 0": (lambda s, m: (s * m).softmax(-1), "e to the power 0 is 1"),
            "-12": (lambda s, m: s.masked_fill(~m, -12.0).softmax(-1), "weight of exactly zero"),
            "-1e9": (lambda s, m: s.masked_fill(~m, -1e9).softmax(-1), "smaller than every score"),
            "after the softmax": (lambda s, m: s.softmax(-1) * m, "mask after the softmax"),
            "doubled": (lambda s, m: masked(2 * s, m), "exponentials of their scores"),
            "renormalised": (renormalised, "very large score"),
            "full masks only": (full_masks_only, "serve every query"),
        },
        stubs=STUBS,
    ),
    Case(
        check_leak_detector,
        also={
            "gradient": by_gradient,
            "cutting": by_cutting,
            "numpy's bool": lambda layer, tokens: by_gradient(layer, tokens).numpy()[()],
        },
        wrong={
            "always": (lambda layer, tokens: True, "does not leak"),
            "never": (lambda layer, tokens: False, "mean over all tokens"),
            "past": (
                detects(lambda j: slice(j + 1, None), tries=lambda n: range(n - 1)),
                "causal attention",
            ),
            "last token only": (detects(tries=lambda n: [n - 1]), "change every token"),
            "neighbours only": (detects(lambda j: j - 1), "compare neighbours only"),
            "coarse": (detects(atol=1e-2), "tolerance"),
            "shifted": (detects(changed=shift, atol=1e-9), "same to all its features"),
        },
        stubs=STUBS,
    ),
]
