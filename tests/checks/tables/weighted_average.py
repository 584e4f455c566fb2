"""Weights by hand, masks, a leak detector, and what its silence says."""

import math

import torch
from case import Case, stub

from vitcheck.exercises.weighted_average import (
    check_leak_detector,
    check_masked_weights,
    check_silent_test,
    check_weights_by_hand,
)

# --- weights by hand --------------------------------------------------------------------------

LN2, LN5 = math.log(2), math.log(5)
RIGHT = [1 / 8, 2 / 8, 5 / 8]

# --- masked weights ---------------------------------------------------------------------------


def masked(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def masked_by_hand(scores, mask):
    top = torch.where(mask, scores, -math.inf).amax(-1, keepdim=True)
    raised = torch.where(mask, scores - top, -math.inf).exp()
    return raised / raised.sum(-1, keepdim=True)


def masked_by_loops(scores, mask):
    result = torch.zeros_like(scores)
    flat = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = result.view(-1, scores.shape[-1])
    for row, allowed, some in zip(rows, flat, scores.reshape(rows.shape), strict=True):
        row[allowed] = some[allowed].softmax(0)
    return result


def renormalised(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


def full_masks_only(scores, mask):
    return masked(scores, mask if mask.ndim == scores.ndim else torch.ones_like(scores).bool())


# --- leak detector ----------------------------------------------------------------------------


def change(tokens, j):
    changed = tokens.clone()
    changed[j] = torch.randn(tokens.shape[1], generator=torch.Generator().manual_seed(j))
    return changed


def detector(layer, tokens):
    before = layer(tokens)
    return any(
        not torch.equal(layer(change(tokens, j))[:j], before[:j]) for j in range(1, len(tokens))
    )


def by_gradient(layer, tokens):
    jacobian = torch.autograd.functional.jacobian(layer, tokens)
    return (jacobian.abs().sum((1, 3)).triu(1) > 0).any()


def by_einsum_of_the_gradient(layer, tokens):
    jacobian = torch.autograd.functional.jacobian(layer, tokens)
    return bool(torch.einsum("iajb->ij", jacobian.square()).triu(1).any())


def by_cutting(layer, tokens):
    whole = layer(tokens)
    return not all(
        torch.allclose(layer(tokens[:n]), whole[:n], atol=1e-9) for n in range(1, len(tokens))
    )


def all_outputs(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j)), layer(tokens)) for j in range(1, len(tokens))
    )


def itself_too(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[: j + 1], layer(tokens)[: j + 1])
        for j in range(1, len(tokens))
    )


def last_token_only(layer, tokens):
    return not torch.equal(layer(change(tokens, -1 % len(tokens)))[:-1], layer(tokens)[:-1])


def neighbours_only(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[j - 1], layer(tokens)[j - 1])
        for j in range(1, len(tokens))
    )


def past_instead_of_future(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[j + 1 :], layer(tokens)[j + 1 :])
        for j in range(len(tokens) - 1)
    )


def coarse(layer, tokens):
    return any(
        not torch.allclose(layer(change(tokens, j))[:j], layer(tokens)[:j], atol=1e-2)
        for j in range(1, len(tokens))
    )


def shifted(layer, tokens):
    def moved(j):
        changed = tokens.clone()
        changed[j] += 1.0
        return layer(changed)[:j]

    return any(
        not torch.allclose(moved(j), layer(tokens)[:j], atol=1e-9) for j in range(1, len(tokens))
    )


def in_place_detector(layer, tokens):
    tokens[-1] += 1
    return True


def not_written(*inputs):
    raise NotImplementedError


ANSWERS = {
    "the layer looks into the future": "yes",
    "output 1 never depends on a later token": "cannot say",
    "in this test output 2 did not feel token 3": "yes",
    "token 3 gives token 4 a weight above zero": "cannot say",
    "a causal mask before the softmax would give this table": "no",
}
STUBS = (stub, lambda *inputs: None, not_written)

CASES = [
    Case(
        check_weights_by_hand,
        right=(RIGHT, [3.5, 4.5]),
        also={
            "rounded": ((0.13, 0.25, 0.63), (3.5, 4.5)),
            "rounded down": ((0.12, 0.25, 0.62), (3.44, 4.48)),
            "tensors": (torch.tensor(RIGHT), torch.tensor([3.5, 4.5])),
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
            "two weights": (([0.25, 0.75], [2, 6]), "how many weights"),
            "negative": (([-0.5, 0.5, 1.0], [0, 8]), "negative"),
            "values added": ((RIGHT, [12, 12]), "without their weights"),
            "plain mean": ((RIGHT, [4, 4]), "same weight"),
            "swapped": ((RIGHT, [4.5, 3.5]), "each other's place"),
            "outside": ((RIGHT, [28, 36]), "triangle"),
            "off": ((RIGHT, [3.0, 4.5]), "your"),
            "three entries": ((RIGHT, [3.5, 4.5, 0.0]), "two entries"),
        },
        stubs=((..., ...), ([0.125, ..., ...], ...), (None, None)),
    ),
    Case(
        check_masked_weights,
        also={
            "filled": masked,
            "by hand": masked_by_hand,
            "loops": masked_by_loops,
            "where": lambda s, m: torch.where(m, s, -math.inf).softmax(-1),
            "float64 inside": lambda s, m: masked(s.double(), m),
            "einsum": lambda s, m: torch.einsum("...k->...k", masked(s, m)),
        },
        wrong={
            "scores of 0": (lambda s, m: (s * m).softmax(-1), "e to the power 0 is 1"),
            "-3": (lambda s, m: s.masked_fill(~m, -3.0).softmax(-1), "forbidden key still has"),
            "-12": (lambda s, m: s.masked_fill(~m, -12.0).softmax(-1), "weight of exactly zero"),
            "-1e4": (lambda s, m: s.masked_fill(~m, -1e4).softmax(-1), "smaller than every score"),
            "-1e9": (lambda s, m: s.masked_fill(~m, -1e9).softmax(-1), "smaller than every score"),
            "no mask": (lambda s, m: s.softmax(-1), "forbidden key still has weight"),
            "after the softmax": (lambda s, m: s.softmax(-1) * m, "mask after the softmax"),
            "doubled": (lambda s, m: masked(2 * s, m), "exponentials of their scores"),
            "uniform": (lambda s, m: m / m.sum(-1, keepdim=True), "exponentials of their scores"),
            "renormalised": (renormalised, "very large score"),
            "less 1e4": (lambda s, m: (s - 1e4 * ~m).softmax(-1), "very large score"),
            "in place": (
                lambda s, m: s.masked_fill_(~m, -math.inf).softmax(-1),
                "in place",
            ),
            "full masks only": (full_masks_only, "serve every query"),
        },
        stubs=STUBS,
    ),
    Case(
        check_leak_detector,
        right=detector,
        also={
            "gradient": by_gradient,
            "einsum": by_einsum_of_the_gradient,
            "cutting": by_cutting,
            "numpy's bool": lambda layer, tokens: by_gradient(layer, tokens).numpy()[()],
        },
        wrong={
            "always": (lambda layer, tokens: True, "does not leak"),
            "never": (lambda layer, tokens: False, "mean over all tokens"),
            "all outputs": (all_outputs, "mixes no tokens"),
            "itself too": (itself_too, "mixes no tokens"),
            "past": (past_instead_of_future, "causal attention"),
            "last token only": (last_token_only, "change every token"),
            "neighbours only": (neighbours_only, "compare neighbours only"),
            "coarse": (coarse, "tolerance"),
            "shifted": (shifted, "same to all its features"),
            "in place": (in_place_detector, "in place"),
            "a number": (lambda layer, tokens: 0.3, "True or False"),
        },
        stubs=STUBS,
    ),
    Case(check_silent_test, also={"in words": lambda: ANSWERS}),
]
