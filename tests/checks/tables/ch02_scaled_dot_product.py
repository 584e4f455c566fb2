"""Chapter 2: softmax, temperature, the scale of scores, and what a map says."""

import math

import torch
from case import Case

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


def temperature(scores, target, measure=entropy, rising=True, low=1e-4, high=1e4, steps=60):
    for _ in range(steps):
        T = math.sqrt(low * high)
        if (measure((scores / T).softmax(-1)) < target) == rising:
            low = T
        else:
            high = T
    return T


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
        check_temperature,
        right=temperature,
        also={"a tensor": lambda s, t: torch.tensor(temperature(s, t))},
        wrong={
            "inverse": (lambda s, t: 1 / temperature(s, t), "Is it 1 / T"),
            "bits": (lambda s, t: temperature(s, t, lambda w: entropy(w, torch.log2)), "nats"),
            "wrong direction": (lambda s, t: temperature(s, t, rising=False), "rise or fall"),
            "fixed": (lambda s, t: 1.0, "scale, enter"),
            "few steps": (lambda s, t: temperature(s, t, steps=3), "enough steps"),
            "narrow": (lambda s, t: temperature(s, t, low=0.2, high=3.0), "wide enough"),
            "negative": (lambda s, t: -temperature(s, t), "negative"),
            "distance from ln N": (
                lambda s, t: temperature(s, math.log(len(s)) - t),
                "ln N",
            ),
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
]
