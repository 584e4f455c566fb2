"""Patches."""

from functools import partial

import torch.nn.functional as F
from case import Case, stub
from einops import rearrange

from vitcheck.exercises.patches import check_counts, check_patchify


def counts(H, W, C, P, D, *, tokens=None, width=None, biases=1):
    tokens = len(range(0, H - P + 1, P)) * len(range(0, W - P + 1, P)) if tokens is None else tokens
    width = sum(P for _ in range(P) for _ in range(C)) if width is None else width
    return [float(tokens), float(width), float(D * (width + biases))]


def cut(images, P):
    B, C, H, W = images.shape
    grid = images.reshape(B, C, H // P, P, W // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def cut_as(pattern):
    return lambda images, P: rearrange(
        images, f"b c (rows p) (cols q) -> {pattern}", p=P, q=P
    ).contiguous()


def cut_squares(images, P):
    """Right for as many columns as rows."""
    B, C, H, _ = images.shape
    grid = images.reshape(B, C, H // P, P, H // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


CASES = [
    Case(
        check_counts,
        also={"a list of floats": counts},
        wrong={
            "rows and columns added": (partial(counts, tokens=28), "how many squares"),
            "one row": (partial(counts, width=48), "numbers are in a patch of"),
            "two biases": (partial(counts, biases=2), "and a bias"),
        },
        stubs=(stub, lambda *sizes: (..., ..., ...)),
    ),
    Case(
        check_patchify,
        wrong={
            "columns": (lambda x, P: F.unfold(x, P, stride=P), "one patch in each column"),
            "not flat": (cut_as("b (rows cols) c p q"), "still an image"),
            "grid": (cut_as("b rows cols (c p q)"), "still a grid"),
            "no batch": (cut_as("(b rows cols) (c p q)"), "the batch axis"),
            "backwards": (lambda x, P: cut(x, P).flip(1), "upper left patch"),
            "second": (lambda x, P: cut(x, P)[:, [0, 2, 1, *range(3, 10)]], "comes second"),
            "inside": (cut_as("b (rows cols) (q c p)"), "which comes first here"),
            "right for a square": (cut_squares, "right for a square image"),
        },
    ),
]
