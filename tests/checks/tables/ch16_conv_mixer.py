"""Chapter 16: ConvMixer."""

import math

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.ch16_conv_mixer import (
    check_conv_bill,
    check_depth,
    check_depthwise,
    check_distances,
)


def depthwise(x, weight, pad="constant"):
    k = weight.shape[-1]
    padded = F.pad(x[None], [k // 2] * 4, mode=pad)
    return F.conv2d(padded, weight[:, None], groups=len(x))[0]


def by_loops(x, weight):
    D, H, W = x.shape
    k = weight.shape[-1]
    padded = F.pad(x, [k // 2] * 4)
    out = torch.zeros(D, H, W)
    for row in range(H):
        for column in range(W):
            window = padded[:, row : row + k, column : column + k]
            out[:, row, column] = (window * weight).sum(dim=(1, 2))
    return out


def by_shifts(x, weight):
    k = weight.shape[-1]
    padded = F.pad(x, [k // 2] * 4)
    windows = padded.unfold(1, k, 1).unfold(2, k, 1)  # (D, H, W, k, k)
    return torch.einsum("dhwij,dij->dhw", windows, weight)


def dense(x, weight):
    return by_shifts(x.sum(0, keepdim=True).expand_as(x), weight)


def depth(distance, k):
    return math.ceil(distance / (k - 1))


def depth_by_steps(distance, k):
    m = 0
    while 1 + m * (k - 1) < distance + 1:
        m += 1
    return m


def bill(N, D, k):
    return N * (D * k * k + D * D), D * k * k + D * D


ANSWERS = {
    "model A has the reach of 4 blocks with kernels of 3": "yes",
    "A has seen both glyphs at distance 9, but cannot compare them": "no",
    "longer training would make A right at distance 9": "no",
    "B mixes no tokens": "cannot say",
    "C has a reach of 11 at least": "yes",
    "C has attention": "cannot say",
}


def reads(**changed):
    names = list(ANSWERS)
    other = {names[int(place[1:])]: answer for place, answer in changed.items()}
    return lambda: {**ANSWERS, **other}


CASES = [
    Case(
        check_depthwise,
        right=depthwise,
        also={"loops": by_loops, "windows": by_shifts},
        wrong={
            "flipped": (lambda x, w: depthwise(x, w.flip(-1, -2)), "turned round"),
            "transposed": (lambda x, w: depthwise(x, w.mT), "are exchanged"),
            "all channels": (dense, "Which one belongs to this kernel"),
            "one kernel": (lambda x, w: depthwise(x, w[:1].expand_as(w)), "kernel of the first"),
            "round": (lambda x, w: depthwise(x, w, pad="circular"), "the other side"),
            "mirror": (lambda x, w: depthwise(x, w, pad="reflect"), "the image once more"),
            "no padding": (
                lambda x, w: F.conv2d(x[None], w[:, None], groups=len(x))[0],
                "has the shape",
            ),
            "always 3": (
                lambda x, w: depthwise(x, w) if w.shape[-1] == 3 else 0 * x,
                "is a size typed",
            ),
        },
    ),
    Case(
        check_depth,
        right=depth,
        also={"steps": depth_by_steps, "whole numbers": lambda d, k: -(-d // (k - 1))},
        wrong={
            "from one of them": (lambda d, k: 2 * d // (k - 1), "may it be between"),
            "two on each side": (lambda d, k: -(-d // (2 * (k - 1))), "two on each side"),
            "rounded down": (lambda d, k: d // (k - 1), "half a block does not exist"),
            "one more": (lambda d, k: d // (k - 1) + 1, "count the patch in the middle once"),
            "always 3": (lambda d, k: -(-d // 2), "kernel's size 3"),
            "k to a block": (
                lambda d, k: -(-d // 2) if k == 3 else -(-d // k),
                "to each side, not k",
            ),
        },
    ),
    Case(
        check_conv_bill,
        right=bill,
        wrong={
            "dense": (lambda N, D, k: (0, D * D * k * k + D * D), "sees one channel"),
            "shared": (lambda N, D, k: (0, k * k + D * D), "a kernel of its own"),
            "no pointwise": (lambda N, D, k: (0, D * k * k), "where are the channels mixed"),
            "a line": (lambda N, D, k: (0, D * k + D * D), "two sides"),
            "wide": (lambda N, D, k: (0, D * k * k + 8 * D * D), "one layer here"),
            "once": (lambda N, D, k: (bill(N, D, k)[1],) * 2, "how many patches"),
            "pairs": (
                lambda N, D, k: (N * bill(N, D, k)[0], bill(N, D, k)[1]),
                "all pairs of patches",
            ),
        },
        stubs=(lambda N, D, k: (..., ...),),
    ),
    Case(
        check_distances,
        right=reads(),
        wrong={
            "no field": (reads(_0="no"), "between which distances"),
            "seen": (reads(_1="yes"), "which token could have seen"),
            "longer": (reads(_2="yes"), "can training change"),
            "no mixing": (reads(_3="yes"), "has not learned"),
            "short": (reads(_4="cannot say"), "only such a reach"),
            "attention": (reads(_5="yes"), "which other models"),
            "another word": (reads(_0="perhaps"), 'answer "yes"'),
        },
    ),
]
