"""A softmax that survives, and the scale of scores."""

import math

import torch
from case import Case

from vitcheck.exercises.scaled_dot_product import check_factor, check_scale, check_stable_softmax


def softmax(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


def softmax_by_loops(scores):
    result = torch.empty_like(scores)
    for row, given in zip(result.view(-1, scores.shape[-1]), scores.flatten(0, -2), strict=True):
        row[:] = softmax(given)
    return result


def softmax_in_place(scores):
    scores -= scores.amax(-1, keepdim=True)
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def shares(raised):
    return raised / raised.sum(-1, keepdim=True)


ANSWERS = {
    "pointer: at d = 256 the factor would again help": "cannot say",
    "pointer: without it, wider always means more failures": "no",
    "game: at rate 0.03 the bare layer only needs more steps": "cannot say",
    "random: with 197 keys the factor never raises the median": "no",
}


CASES = [
    Case(
        check_stable_softmax,
        also={
            "by hand": softmax,
            "log-sum-exp": lambda s: s.log_softmax(-1).exp(),
            "PyTorch's": lambda s: torch.softmax(s, -1),
            "loops": softmax_by_loops,
            "float64 inside": lambda s: softmax(s.double()),
        },
        wrong={
            "no shift": (lambda s: shares(s.exp()), "e^1000"),
            "one maximum for all rows": (lambda s: shares((s - s.max()).exp()), "Whose maximum"),
            "one maximum, and a guard": (
                lambda s: (s - s.max()).exp() / ((s - s.max()).exp().sum(-1, True) + 1e-9),
                "Whose maximum",
            ),
            "clamped scores": (lambda s: shares(s.clamp(max=10).exp()), "cut off"),
            "scores as shares": (lambda s: s / s.sum(-1, keepdim=True), "positive"),
            "not divided": (lambda s: (s - s.amax(-1, keepdim=True)).exp(), "divide by"),
            "powers of two": (lambda s: softmax(s * math.log(2)), "ratio of two weights"),
            "no keepdim": (
                lambda s: softmax(s) if s.ndim == 3 else s.exp() / s.exp().sum(-1),
                "keep the axis",
            ),
            "in place": (softmax_in_place, "in place"),
        },
    ),
    Case(
        check_scale,
        also={
            "deviations": lambda d, a, b: 1 / (d**0.5 * a**0.5 * b**0.5),
            "a tensor": lambda d, a, b: torch.tensor(d * a * b).rsqrt(),
        },
        wrong={
            "sum of variances": (lambda d, a, b: (d * (a + b) / 2) ** -0.5, "as their sum"),
            "fixed width": (lambda d, a, b: 1 / 8, "variance"),
            "negative": (lambda d, a, b: -((d * a * b) ** -0.5), "a positive one"),
        },
    ),
    Case(check_factor, also={"in words": lambda: ANSWERS}),
]
