"""ConvMixer."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.conv_mixer import check_depth, check_depthwise


def by_shifts(x, weight):
    k = weight.shape[-1]
    padded = F.pad(x, [k // 2] * 4)
    windows = padded.unfold(1, k, 1).unfold(2, k, 1)  # (D, H, W, k, k)
    return torch.einsum("dhwij,dij->dhw", windows, weight)


def depth_by_steps(distance, k):
    m = 0
    while 1 + m * (k - 1) < distance + 1:
        m += 1
    return m


CASES = [
    Case(
        check_depthwise,
        also={"windows": by_shifts},
        wrong={
            "always 3": (
                lambda x, w: by_shifts(x, w) if w.shape[-1] == 3 else 0 * x,
                "is a size typed",
            )
        },
    ),
    Case(check_depth, also={"steps": depth_by_steps}),
]
