"""ConvMixer."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.conv_mixer import check_depthwise


def by_shifts(x, weight):
    k = weight.shape[-1]
    padded = F.pad(x, [k // 2] * 4)
    windows = padded.unfold(1, k, 1).unfold(2, k, 1)  # (D, H, W, k, k)
    return torch.einsum("dhwij,dij->dhw", windows, weight)


CASES = [
    Case(
        check_depthwise,
        wrong={
            "always 3": (
                lambda x, w: by_shifts(x, w) if w.shape[-1] == 3 else 0 * x,
                "is a size typed",
            )
        },
    ),
]
