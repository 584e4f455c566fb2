"""MLP-Mixer."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.mlp_mixer import check_enlarged, check_token_mixing


def by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("sn,bnd->bsd", W1, x) + b1[:, None])
    return torch.einsum("ns,bsd->bnd", W2, hidden) + b2[:, None]


def enlarged_by_loops(W1, W2, grid):
    rows, columns = grid
    places = [r // 2 * columns + c // 2 for r in range(2 * rows) for c in range(2 * columns)]
    return W1[:, places] / 4, W2[places]


def one_of_four(W1, W2, grid):
    """All of a place's weight on one of its four copies."""
    W, W2 = enlarged_by_loops(W1, W2, grid)
    mask = torch.zeros(2 * grid[0], 2 * grid[1])
    mask[::2, ::2] = 4
    return W * mask.flatten(), W2


CASES = [
    Case(
        check_token_mixing,
        wrong={
            "a size typed": (
                lambda x, *rest: by_einsum(x, *rest) if x.shape[1] == 5 else 0 * x,
                "typed somewhere",
            )
        },
    ),
    Case(
        check_enlarged,
        wrong={"one copy": (one_of_four, "weigh the same")},
        stubs=(lambda W1, W2, grid: (..., ...),),
    ),
]
