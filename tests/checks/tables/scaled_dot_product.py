"""A softmax that survives, and the scale of scores."""

import math

import torch
from case import Case

from vitcheck.exercises.scaled_dot_product import check_scale, check_stable_softmax


def softmax(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


def shares(raised):
    return raised / raised.sum(-1, keepdim=True)


CASES = [
    Case(
        check_stable_softmax,
        also={"log-sum-exp": lambda s: s.log_softmax(-1).exp()},
        wrong={
            "no shift": (lambda s: shares(s.exp()), "e^1000"),
            "one maximum for all rows": (lambda s: shares((s - s.max()).exp()), "Whose maximum"),
            "clamped scores": (lambda s: shares(s.clamp(max=10).exp()), "cut off"),
            "scores as shares": (lambda s: s / s.sum(-1, keepdim=True), "positive"),
            "not divided": (lambda s: (s - s.amax(-1, keepdim=True)).exp(), "divide by"),
            "powers of two": (lambda s: softmax(s * math.log(2)), "ratio of two weights"),
            "no keepdim": (
                lambda s: softmax(s) if s.ndim == 3 else s.exp() / s.exp().sum(-1),
                "keep the axis",
            ),
        },
    ),
    Case(
        check_scale,
        also={"a tensor": lambda d, a, b: torch.tensor(d * a * b).rsqrt()},
        wrong={
            "sum of variances": (lambda d, a, b: (d * (a + b) / 2) ** -0.5, "as their sum"),
            "fixed width": (lambda d, a, b: 1 / 8, "variance"),
            "negative": (lambda d, a, b: -((d * a * b) ** -0.5), "a positive one"),
        },
    ),
]
