import math

import pytest
import torch

from vitcheck import CheckFailed
from vitcheck.ch02_scaled_dot_product import (
    check_removal,
    check_scale,
    check_stable_softmax,
    check_symmetric_map,
    check_temperature,
)


def entropy(weights, log=torch.log):
    return -(weights * log(weights.clamp(min=1e-300))).sum().item()


def softmax(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


def temperature(scores, target, measure=entropy, rising=True, low=1e-4, high=1e4, steps=60):
    for _ in range(steps):
        T = math.sqrt(low * high)
        if (measure((scores / T).softmax(-1)) < target) == rising:
            low = T
        else:
            high = T
    return T


def circle(n, radius=2.0):
    angle = 2 * math.pi * torch.arange(n) / n
    return radius * torch.stack([angle.cos(), angle.sin()], dim=1)


def removal(weights, values):
    return weights / (1 - weights) * (values - weights @ values).norm(dim=-1)


def by_hiding(weights, values):
    moved = []
    for j in range(len(weights)):
        rest = torch.cat([weights[:j], weights[j + 1 :]])
        others = torch.cat([values[:j], values[j + 1 :]])
        moved.append((weights @ values - rest / rest.sum() @ others).norm())
    return torch.stack(moved)


RIGHT = [
    ("softmax by shift", check_stable_softmax, softmax),
    ("softmax by log-sum-exp", check_stable_softmax, lambda s: s.log_softmax(-1).exp()),
    ("temperature by bisection", check_temperature, temperature),
    ("temperature as a tensor", check_temperature, lambda s, t: torch.tensor(temperature(s, t))),
    ("factor from the variance", check_scale, lambda d, a, b: (d * a * b) ** -0.5),
    ("factor from the deviations", check_scale, lambda d, a, b: 1 / (d**0.5 * a**0.5 * b**0.5)),
    ("tokens on a circle", check_symmetric_map, circle),
    ("a large circle", check_symmetric_map, lambda n: circle(n, 5.0)),
    ("removal by formula", check_removal, removal),
    ("removal by hiding", check_removal, by_hiding),
]


@pytest.mark.parametrize(("check", "answer"), [r[1:] for r in RIGHT], ids=[r[0] for r in RIGHT])
def test_a_right_answer_passes_with_one_line(check, answer, capsys):
    for _ in range(5):  # other inputs each time
        check(answer)
        printed = capsys.readouterr().out
        assert printed.startswith("ok:")
        assert printed.count("\n") == 1


CHECKS = [check_stable_softmax, check_temperature, check_scale, check_symmetric_map, check_removal]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_unanswered_stub_passes_on(check, capsys):
    check(lambda *inputs: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def softmax_in_place(scores):
    scores -= scores.amax(-1, keepdim=True)
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def symmetrised_scores(n):
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(n))


def plain_mean_removal(weights, values):
    others = (values.sum(0) - values) / (len(weights) - 1)
    return (weights @ values - others).norm(dim=-1)


MISTAKES = [
    ("no shift", check_stable_softmax, lambda s: s.exp() / s.exp().sum(-1, keepdim=True), "e.1000"),
    (
        "one maximum for all rows",
        check_stable_softmax,
        lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True),
        "Whose maximum",
    ),
    (
        "clamped scores",
        check_stable_softmax,
        lambda s: s.clamp(max=10).exp() / s.clamp(max=10).exp().sum(-1, keepdim=True),
        "cut off",
    ),
    ("one sum for all", check_stable_softmax, lambda s: s.exp() / s.exp().sum(), "whole table"),
    ("over the queries", check_stable_softmax, lambda s: s.softmax(-2), "columns"),
    ("scores as shares", check_stable_softmax, lambda s: s / s.sum(-1, keepdim=True), "positive"),
    (
        "powers of two",
        check_stable_softmax,
        lambda s: softmax(s * math.log(2)),
        "ratio of two weights",
    ),
    (
        "no keepdim",
        check_stable_softmax,
        lambda s: softmax(s) if s.ndim == 3 else (s.exp() / s.exp().sum(-1)),
        "keep the axis",
    ),
    ("in place", check_stable_softmax, softmax_in_place, "in place"),
    ("inverse", check_temperature, lambda s, t: 1 / temperature(s, t), "Is it 1 / T"),
    (
        "bits",
        check_temperature,
        lambda s, t: temperature(s, t, lambda w: entropy(w, torch.log2)),
        "nats",
    ),
    (
        "wrong direction",
        check_temperature,
        lambda s, t: temperature(s, t, rising=False),
        "rise or fall",
    ),
    ("fixed", check_temperature, lambda s, t: 1.0, "scale, enter"),
    ("one step", check_temperature, lambda s, t: temperature(s, t, steps=3), "enough steps"),
    ("narrow", check_temperature, lambda s, t: temperature(s, t, low=0.2, high=3.0), "wide enough"),
    ("negative", check_temperature, lambda s, t: -temperature(s, t), "negative"),
    (
        "distance from ln N",
        check_temperature,
        lambda s, t: temperature(s, math.log(len(s)) - t),
        "ln N|rise",
    ),
    ("variance", check_scale, lambda d, a, b: 1 / (d * a * b), "variance 1/d"),
    ("multiplied", check_scale, lambda d, a, b: (d * a * b) ** 0.5, "Multiply or divide"),
    ("no variances", check_scale, lambda d, a, b: d**-0.5, "Do they enter"),
    ("variances outside the root", check_scale, lambda d, a, b: d**-0.5 / (a * b), "deviations"),
    ("sum of variances", check_scale, lambda d, a, b: (d * (a + b) / 2) ** -0.5, "as their sum"),
    ("fixed width", check_scale, lambda d, a, b: 1 / 8, "variance"),
    ("random tokens", check_symmetric_map, symmetrised_scores, "what differs between rows"),
    ("equal tokens", check_symmetric_map, lambda n: torch.ones(n, 3), "uniform"),
    ("one-hot", check_symmetric_map, lambda n: torch.eye(n), "treats all others alike"),
    (
        "half a circle",
        check_symmetric_map,
        lambda n: (
            2
            * torch.stack(
                [(math.pi * torch.arange(n) / n).cos(), (math.pi * torch.arange(n) / n).sin()],
                dim=1,
            )
        ),
        "what differs between rows",
    ),
    ("transposed", check_symmetric_map, lambda n: circle(n).T, "shape"),
    (
        "contribution",
        check_removal,
        lambda w, v: (w[:, None] * v).norm(dim=-1),
        "goes to the others",
    ),
    (
        "not divided",
        check_removal,
        lambda w, v: w * (v - w @ v).norm(dim=-1),
        "By what are the others divided",
    ),
    (
        "without the output",
        check_removal,
        lambda w, v: w / (1 - w) * v.norm(dim=-1),
        "where does the old output enter",
    ),
    ("plain mean", check_removal, plain_mean_removal, "equal weights"),
    ("one number", check_removal, lambda w, v: removal(w, v).sum(), "shape"),
    ("vectors", check_removal, lambda w, v: w[:, None] * v, "shape"),
]


@pytest.mark.parametrize(
    ("check", "answer", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_planted_mistake_is_named(check, answer, words):
    for _ in range(5):  # other inputs each time, the same mistake
        with pytest.raises(CheckFailed, match=words):
            check(answer)


def test_every_check_has_at_least_three_planted_mistakes():
    for check in CHECKS:
        assert sum(mistake[1] is check for mistake in MISTAKES) >= 3
