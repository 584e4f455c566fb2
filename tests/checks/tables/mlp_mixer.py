"""MLP-Mixer."""

import torch
import torch.nn.functional as F
from case import Case

from vitcheck.exercises.mlp_mixer import (
    check_enlarged,
    check_orders,
    check_token_mixing,
)


def by_loops(x, W1, b1, W2, b2):
    columns = [W2 @ F.gelu(W1 @ c + b1) + b2 for image in x for c in image.T]
    return torch.stack(columns).view(len(x), x.shape[2], x.shape[1]).mT


def by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("sn,bnd->bsd", W1, x) + b1[:, None])
    return torch.einsum("ns,bsd->bnd", W2, hidden) + b2[:, None]


def enlarged_by_loops(W1, W2, grid):
    rows, columns = grid
    places = [r // 2 * columns + c // 2 for r in range(2 * rows) for c in range(2 * columns)]
    return W1[:, places] / 4, W2[places]


def enlarged_by_interpolation(W1, W2, grid):
    def larger(images):
        laid = images.unflatten(1, grid)[None]
        return F.interpolate(laid, scale_factor=2, mode="nearest")[0].flatten(1)

    return larger(W1) / 4, larger(W2.T).T


def one_of_four(W1, W2, grid):
    """All of a place's weight on one of its four copies."""
    W, W2 = enlarged_by_loops(W1, W2, grid)
    mask = torch.zeros(2 * grid[0], 2 * grid[1])
    mask[::2, ::2] = 4
    return W * mask.flatten(), W2


ANSWERS = {
    "A uses where a patch stands": "yes",
    "B uses where a patch stands": "no",
    "neighbours side by side gain A five points or more": "no",
    "with positions added, A would be better": "cannot say",
    "B would gain from positions": "cannot say",
}


CASES = [
    Case(
        check_token_mixing,
        also={"loops": by_loops, "einsum": by_einsum},
        wrong={
            "a size typed": (
                lambda x, *rest: by_einsum(x, *rest) if x.shape[1] == 5 else 0 * x,
                "typed somewhere",
            )
        },
    ),
    Case(
        check_enlarged,
        also={"loops": enlarged_by_loops, "interpolate": enlarged_by_interpolation},
        wrong={
            "one copy": (one_of_four, "weigh the same"),
            "unchanged": (lambda W1, W2, g: (W1, W2), "has the shape"),
        },
        stubs=(lambda W1, W2, grid: (..., ...),),
    ),
    Case(check_orders, also={"in words": lambda: ANSWERS}),
]
