"""Accumulation, the FFN's share, a report."""

import copy

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.weight_sharing import check_accumulate, check_ffn_share


def accumulate(model, batches, *, clear="first", step=0.0):
    total = sum(len(x) for x, _ in batches)
    if clear == "first":
        model.zero_grad()
    for x, y in batches:
        (len(x) / total * F.mse_loss(model(x), y)).backward()
    if step:
        torch.optim.SGD(model.parameters(), lr=step).step()
    return [p.grad.clone() for p in model.parameters()]


def accumulate_on_a_copy(model, batches):
    return accumulate(copy.deepcopy(model), batches)


def at_once(model, batches):
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    return list(torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters())))


def half_at_the_second_call(model, batches):
    """Its gradient fades: a second call on the same weights gives something else."""
    used = getattr(model, "used", 1)
    model.used = used + 1
    return [g / used for g in accumulate(model, batches)]


def share(N, D, ratio):
    return ratio * D / (ratio * D + 2 * D + N)


CASES = [
    Case(
        check_accumulate,
        also={"on a copy": accumulate_on_a_copy},
        wrong={
            "never cleared": (
                lambda m, b: accumulate(m, b, clear="never"),
                "first call is still inside",
            ),
            "fades": (half_at_the_second_call, "same weights, same batches"),
            "stepped": (lambda m, b: accumulate(m, b, step=0.1), "who made a step"),
            "all at once": (at_once, "fits into memory"),
            "one batch": (lambda m, b: accumulate(m, b[:1]), "needed once"),
        },
    ),
    Case(
        check_ffn_share,
        also={"a tensor": lambda *a: torch.tensor(share(*a), dtype=torch.float32)},
        wrong={
            "N times": (lambda N, D, r: share(N * N, D, r), "count it N times"),
            "per cent": (lambda N, D, r: 100 * share(N, D, r), "between 0 and 1"),
        },
    ),
]
