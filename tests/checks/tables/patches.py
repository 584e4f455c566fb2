"""Patches."""

from functools import partial

import torch
import torch.nn.functional as F
from case import Case, stub
from einops import rearrange

from vitcheck.exercises.patches import check_counts, check_patchify, check_sizes


def counts(H, W, C, P, D, *, tokens=None, width=None, biases=1):
    tokens = len(range(0, H - P + 1, P)) * len(range(0, W - P + 1, P)) if tokens is None else tokens
    width = sum(P for _ in range(P) for _ in range(C)) if width is None else width
    return [float(tokens), float(width), float(D * (width + biases))]


def cut(images, P):
    B, C, H, W = images.shape
    grid = images.reshape(B, C, H // P, P, W // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def by_unfold(images, P):
    return F.unfold(images, P, stride=P).transpose(1, 2)


def by_loops(images, P):
    rows = [
        images[:, :, top : top + P, left : left + P].flatten(1)
        for top in range(0, images.shape[2], P)
        for left in range(0, images.shape[3], P)
    ]
    return torch.stack(rows, dim=1)


def cut_as(pattern):
    return lambda images, P: rearrange(
        images, f"b c (rows p) (cols q) -> {pattern}", p=P, q=P
    ).contiguous()


def only_contiguous(images, P):
    B, C, H, W = images.shape
    return cut(images.view(B, C, H, W).view(-1).view(B, C, H, W), P)


def cut_squares(images, P):
    """Right for as many columns as rows."""
    B, C, H, _ = images.shape
    grid = images.reshape(B, C, H // P, P, H // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def by_tensor_unfold(images, P):
    squares = images.unfold(2, P, P).unfold(3, P, P)  # (B, C, rows, cols, p, q)
    return squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


STATEMENTS = {
    "in this training patches of 16 win after 300 epochs": "yes",
    "for the work of 300 epochs with 16, patches of 32 lose": "cannot say",
    "patches of 16 need about four times the parameters": "no",
    "patches of 8 would be better still after 300 epochs": "cannot say",
}


CASES = [
    Case(
        check_counts,
        also={"a list of floats": counts},
        wrong={
            "rows and columns added": (partial(counts, tokens=28), "how many squares"),
            "one row": (partial(counts, width=48), "numbers are in a patch of"),
            "two biases": (partial(counts, biases=2), "and a bias"),
            "pair": (lambda *sizes: (1, 2), "three numbers"),
            "words": (lambda *sizes: ("1", 2, 3), "should be one number"),
        },
        stubs=(stub, lambda *sizes: (..., ..., ...)),
    ),
    Case(
        check_patchify,
        also={
            "reshape": cut,
            "unfold": by_unfold,
            "Tensor.unfold": by_tensor_unfold,
            "loops": by_loops,
        },
        wrong={
            "columns": (lambda x, P: F.unfold(x, P, stride=P), "one patch in each column"),
            "not flat": (cut_as("b (rows cols) c p q"), "still an image"),
            "grid": (cut_as("b rows cols (c p q)"), "still a grid"),
            "no batch": (cut_as("(b rows cols) (c p q)"), "the batch axis"),
            "down, mirrored": (cut_as("b (cols rows) (q p c)"), "a page is read across"),
            "backwards": (lambda x, P: cut(x, P).flip(1), "upper left patch"),
            "second": (lambda x, P: cut(x, P)[:, [0, 2, 1, *range(3, 10)]], "comes second"),
            "comb": (
                lambda x, P: rearrange(
                    x, "b c (p rows) (q cols) -> b (rows cols) (c p q)", p=P, q=P
                ),
                "belongs to the patch",
            ),
            "inside": (cut_as("b (rows cols) (q c p)"), "which comes first here"),
            "contiguous": (only_contiguous, "RuntimeError"),
            "right for a square": (cut_squares, "right for a square image"),
        },
    ),
    Case(check_sizes, also={"in words": lambda: STATEMENTS}),
]
