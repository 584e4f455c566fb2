"""ConvMixer."""

import math

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.conv_mixer import (
    check_depth,
    check_depthwise,
    check_distances,
)


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


def depth(distance, k):
    return math.ceil(distance / (k - 1))


def depth_by_steps(distance, k):
    m = 0
    while 1 + m * (k - 1) < distance + 1:
        m += 1
    return m


ANSWERS = {
    "model A has the reach of 4 blocks with kernels of 3": "yes",
    "A has heard both at distance 9, but cannot compare": "no",
    "longer training would make A right at distance 9": "no",
    "B mixes no tokens": "cannot say",
    "C has a reach of 11 at least": "yes",
    "C has attention": "cannot say",
}


CASES = [
    Case(
        check_depthwise,
        also={"loops": by_loops, "windows": by_shifts},
        wrong={
            "no padding": (
                lambda x, w: F.conv2d(x[None], w[:, None], groups=len(x))[0],
                "has the shape",
            ),
            "always 3": (
                lambda x, w: by_shifts(x, w) if w.shape[-1] == 3 else 0 * x,
                "is a size typed",
            ),
        },
    ),
    Case(
        check_depth,
        also={"steps": depth_by_steps, "rounded up": depth},
    ),
    Case(check_distances, also={"in words": lambda: ANSWERS}),
]
