"""Chapter 8: patches."""

from functools import partial

import torch
import torch.nn.functional as F
from case import Case, stub
from einops import rearrange

from vitcheck.ch08_patches import (
    check_counts,
    check_fit,
    check_grey,
    check_kernel,
    check_patchify,
)


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


def kernel(weight, C, P):
    return weight.view(-1, P, P, C).permute(0, 3, 1, 2)


def grey_by_probing(weight, bias, mean, std):
    black = F.conv2d(
        (torch.zeros(1, 3, *weight.shape[2:]) - mean.view(3, 1, 1)) / std.view(3, 1, 1),
        weight,
        bias,
    )
    return torch.einsum("dcpq,c->dpq", weight, 1 / std)[:, None], black.flatten()


def fit(image, P, *, more=lambda n, P: -n % P, order=(0, 1), sides="after", value=0.0):
    grow = [more(n, P) for n in image.shape[1:]]
    down, right = grow[order[0]], grow[order[1]]
    pad = (0, right, 0, down) if sides == "after" else (right, 0, down, 0)
    if sides == "both":
        pad = (right // 2, right - right // 2, down // 2, down - down // 2)
    return F.pad(image, pad, value=value)


def fit_by_copy(image, P):
    C, H, W = image.shape
    out = torch.zeros(C, -(-H // P) * P, -(-W // P) * P)
    out[:, :H, :W] = image
    return out


def cut_squares(images, P):
    """Right for as many columns as rows."""
    B, C, H, _ = images.shape
    grid = images.reshape(B, C, H // P, P, H // P, P)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)


def by_tensor_unfold(images, P):
    squares = images.unfold(2, P, P).unfold(3, P, P)  # (B, C, rows, cols, p, q)
    return squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def kernel_by_loops(weight, C, P):
    kernel = torch.empty(len(weight), C, P, P, dtype=weight.dtype)
    for p in range(P):
        for q in range(P):
            for c in range(C):
                kernel[:, c, p, q] = weight[:, (p * P + q) * C + c]
    return kernel


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
    Case(
        check_kernel,
        also={
            "view": kernel,
            "einops": lambda w, C, P: rearrange(w, "d (p q c) -> d c p q", c=C, p=P),
            "loops": kernel_by_loops,
        },
        wrong={
            "scaled": (lambda w, C, P: kernel(w, C, P) / C, "other numbers"),
            "bgr": (lambda w, C, P: kernel(w, C, P).flip(1), "meet its weight"),
        },
    ),
    Case(
        check_grey,
        also={"a black image": grey_by_probing},
        wrong={
            "no axis": (lambda w, b, m, s: (w.sum(1), b), "one channel that is left"),
            "bias doubled": (
                lambda *layer: (grey_by_probing(*layer)[0], 2 * grey_by_probing(*layer)[1]),
                "left of a black image",
            ),
            "other kernel": (lambda w, b, m, s: (0 * w[:, :1], b), "meets three weights"),
        },
        stubs=(stub, lambda *inputs: (..., ...)),
    ),
    Case(
        check_fit,
        right=fit,
        also={"copying": fit_by_copy},
        wrong={
            "crop": (
                lambda x, P: x[:, : x.shape[1] // P * P, : x.shape[2] // P * P],
                "pixels are lost",
            ),
            "always more": (partial(fit, more=lambda n, P: P - n % P), "a whole row or column"),
            "a whole patch": (partial(fit, more=lambda n, P: P), "does not divide"),
            "axes": (partial(fit, order=(1, 0)), "F.pad begin with"),
            "before": (partial(fit, sides="before"), "which of the four sides"),
            "both sides": (partial(fit, sides="both"), "which of the four sides"),
            "ones": (partial(fit, value=1.0), "not zero"),
            "nothing": (lambda x, P: x.clone(), "does not divide"),
            "resized": (
                lambda x, P: F.interpolate(x[None], fit_by_copy(x, P).shape[1:])[0],
                "has moved",
            ),
        },
    ),
]
