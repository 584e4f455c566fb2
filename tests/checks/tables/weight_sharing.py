"""Accumulation, the FFN's share, a report."""

import copy

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.weight_sharing import (
    check_accumulate,
    check_ffn_share,
    check_report,
)


def accumulate(model, batches, *, clear="first", step=0.0):
    total = sum(len(x) for x, _ in batches)
    if clear == "first":
        model.zero_grad()
    for x, y in batches:
        if clear == "each":
            model.zero_grad()
        (len(x) / total * F.mse_loss(model(x), y)).backward()
    if step:
        torch.optim.SGD(model.parameters(), lr=step).step()
    return [p.grad.clone() for p in model.parameters()]


def accumulate_sums(model, batches):
    total, sums = sum(len(x) for x, _ in batches), None
    for x, y in batches:
        loss = F.mse_loss(model(x), y, reduction="sum") / total
        grads = torch.autograd.grad(loss, list(model.parameters()))
        sums = grads if sums is None else [a + b for a, b in zip(sums, grads, strict=True)]
    return sums


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


ANSWERS = {
    "at rate 0.1, a step after every batch reaches more": "yes",
    "each accumulating row ends over three points below row 1": "no",
    "row 2 has seen fewer images than row 1": "no",
    "at rate 0.8, a step after every batch of 64 does as well": "cannot say",
    "rows 3 and 4 have the same gradients, up to rounding": "cannot say",
}


CASES = [
    Case(
        check_accumulate,
        also={
            "backward": accumulate,
            "sums, divided by all": accumulate_sums,
            "on a copy": accumulate_on_a_copy,
        },
        wrong={
            "cleared each time": (lambda m, b: accumulate(m, b, clear="each"), "Who cleared"),
            "never cleared": (
                lambda m, b: accumulate(m, b, clear="never"),
                "first call is still inside",
            ),
            "fades": (half_at_the_second_call, "same weights, same batches"),
            "stepped": (lambda m, b: accumulate(m, b, step=0.1), "who made a step"),
            "all at once": (at_once, "fits into memory"),
            "one batch": (lambda m, b: accumulate(m, b[:1]), "needed once"),
            "a number": (lambda m, b: 0.5, "one for each parameter"),
        },
    ),
    Case(
        check_ffn_share,
        also={
            "halved": share,
            "a tensor": lambda N, D, r: torch.tensor(share(N, D, r), dtype=torch.float32),
        },
        wrong={
            "N times": (lambda N, D, r: share(N * N, D, r), "count it N times"),
            "one case": (lambda N, D, r: 8 / 18, "where is N"),
            "per cent": (lambda N, D, r: 100 * share(N, D, r), "between 0 and 1"),
        },
    ),
    Case(check_report, also={"in words": lambda: ANSWERS}),
]
