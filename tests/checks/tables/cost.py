"""What it costs."""

import math

import torch
from case import Case

from vitcheck.exercises.cost import QUESTIONS, check_reading, check_window_mask

EXPONENTS = math.log2(9 / 5), math.log2(20 / 5.2)


def reading(*, a=EXPONENTS[0], b=EXPONENTS[1], crossing=256, fixed=1.0, linear="open"):
    return dict(zip(QUESTIONS, (a, b, crossing, fixed, linear), strict=True))


def mask_by_loops(rows, columns, w):
    n = rows * columns
    mask = torch.ones(1 + n, 1 + n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            (r, c), (s, t) = divmod(i, columns), divmod(j, columns)
            mask[1 + i, 1 + j] = (r // w, c // w) == (s // w, t // w)
    return mask


CASES = [
    Case(
        check_reading,
        also={"rounded": lambda: reading(a=0.85, b=1.94, linear="Open")},
        stubs=(lambda: reading(a=...),),
        wrong={
            "two": (lambda: reading(a=2.0), "to which power"),
            "too late": (lambda: reading(crossing=512), "before the crossing"),
            "neither": (lambda: reading(linear="perhaps"), "answer"),
        },
    ),
    Case(
        check_window_mask,
        wrong={
            "floats": (lambda *a: mask_by_loops(*a).float(), "expected torch.bool"),
            "all": (
                lambda r, c, w: torch.ones(1 + r * c, 1 + r * c, dtype=torch.bool),
                "with whom may patch 0",
            ),
        },
    ),
]
