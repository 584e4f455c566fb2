"""Pretraining and small data."""

import torch
from case import Case

from vitcheck.exercises.pretraining import check_probe, check_start

KERNEL = "patch_embed.proj.weight"


def start(theirs, ours, kernel=None, **changed):
    head = {name: ours[name] for name in ("head.weight", "head.bias")}
    kernel = theirs[KERNEL].sum(dim=1, keepdim=True) if kernel is None else kernel
    return {**theirs, KERNEL: kernel, **head, **changed}


def probe(model, count=None):
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    return sum(p.numel() for p in model.head.parameters()) if count is None else count


def but(name, trained):
    """A probe that also trains (or does not train) one more parameter."""

    def freeze(model):
        count = probe(model)
        dict(model.named_parameters())[name].requires_grad_(trained)
        return count

    return freeze


def moves(model):
    with torch.no_grad():
        model.head.bias.zero_()
    return probe(model)


CASES = [
    Case(
        check_start,
        wrong={
            "no head": (
                lambda t, o: {k: v for k, v in start(t, o).items() if "head" not in k},
                "each name of `ours`",
            )
        },
    ),
    Case(
        check_probe,
        wrong={
            "frozen": (lambda m: [m.requires_grad_(False), 36][1], "nothing is trained"),
            "norm": (but("norm.bias", True), "a norm learns"),
            "table": (but("table", True), "table of positions"),
            "backbone": (but("proj.weight", True), "backbone would still move"),
            "no bias": (but("head.bias", False), "one parameter or two"),
            "no weight": (but("head.weight", False), "the head is frozen"),
            "moved": (moves, "has another value now"),
            "weights only": (lambda m: probe(m, 32), "what else has it"),
            "the others": (lambda m: probe(m, 88), "the frozen ones"),
            "tensors": (lambda m: probe(m, 2), "tensors, not numbers"),
        },
    ),
]
