"""Chapter 15: MLP-Mixer."""

import torch
import torch.nn.functional as F
from case import Case, reads

from vitcheck.ch15_mlp_mixer import (
    check_enlarged,
    check_mixer_bill,
    check_orders,
    check_token_mixing,
)


def mix(x, W1, b1, W2, b2, act=F.gelu):
    return (act(x.mT @ W1.T + b1) @ W2.T + b2).mT


def by_loops(x, W1, b1, W2, b2):
    columns = [W2 @ F.gelu(W1 @ c + b1) + b2 for image in x for c in image.T]
    return torch.stack(columns).view(len(x), x.shape[2], x.shape[1]).mT


def by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("sn,bnd->bsd", W1, x) + b1[:, None])
    return torch.einsum("ns,bsd->bnd", W2, hidden) + b2[:, None]


def bill(N, D, S):
    return 2 * N * S * D + 8 * N * D**2, 2 * N * S + 8 * D**2


def bill_by_parts(N, D, S):
    matrices = [(S, N), (N, S), (4 * D, D), (D, 4 * D)]
    times = [D, D, N, N]
    weights = [a * b for a, b in matrices]
    return sum(w * t for w, t in zip(weights, times, strict=True)), sum(weights)


def widen(table, grid):
    laid = table.unflatten(0, grid)
    return laid.repeat_interleave(2, dim=0).repeat_interleave(2, dim=1).flatten(0, 1)


def enlarged(W1, W2, grid, share=4.0, spread=1.0):
    return widen(W1.T, grid).T / share, widen(W2, grid) / spread


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
    W, W2 = enlarged(W1, W2, grid)
    mask = torch.zeros(2 * grid[0], 2 * grid[1])
    mask[::2, ::2] = 4
    return W * mask.flatten(), W2


ANSWERS = {
    "A uses where a patch stands": "yes",
    "B uses where a patch stands": "no",
    "A was built with the knowledge which patches are neighbours": "no",
    "with positions added, A would be better": "cannot say",
    "B would gain from positions": "cannot say",
}


CASES = [
    Case(
        check_token_mixing,
        right=mix,
        also={"loops": by_loops, "einsum": by_einsum},
        wrong={
            "rows": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T + b1) @ W2.T + b2,
                "Which axis has N",
            ),
            "left turned": (lambda *a: mix(*a).mT, "still exchanged"),
            "linear": (lambda *a: mix(*a, act=lambda h: h), "no nonlinearity"),
            "relu": (lambda *a: mix(*a, act=F.relu), "ReLU and GELU"),
            "residual": (lambda x, *a: x + mix(x, *a), "added by the block"),
            "no biases": (
                lambda x, W1, b1, W2, b2: mix(x, W1, 0 * b1, W2, 0 * b2),
                "biases are missing",
            ),
            "W1 turned": (lambda x, W1, *a: mix(x, W1.T, *a), "(out, in) or (in, out)"),
        },
    ),
    Case(
        check_mixer_bill,
        right=bill,
        also={"parts": bill_by_parts},
        wrong={
            "once": (lambda N, D, S: (2 * N * S + 8 * N * D**2, 0), "once for each channel"),
            "one token": (lambda N, D, S: (2 * N * S * D + 8 * D**2, 0), "once for each token"),
            "one layer": (lambda N, D, S: (N * S * D + 8 * N * D**2, 0), "two layers"),
            "attention": (lambda N, D, S: (12 * N * D**2 + 2 * N**2 * D, 0), "attention's bill"),
            "narrow": (lambda N, D, S: (2 * N * S * D + 2 * N * D**2, 0), "has 4 D numbers"),
            "by channel": (
                lambda N, D, S: (bill(N, D, S)[0], 2 * N * S * D + 8 * D**2),
                "others for each channel",
            ),
            "by token": (
                lambda N, D, S: (bill(N, D, S)[0], 2 * N * S + 8 * N * D**2),
                "others for each token",
            ),
            "again": (lambda N, D, S: (bill(N, D, S)[0],) * 2, "multiplications again"),
        },
        stubs=(lambda N, D, S: (..., ...),),
    ),
    Case(
        check_enlarged,
        right=enlarged,
        also={"loops": enlarged_by_loops, "interpolate": enlarged_by_interpolation},
        wrong={
            "loud": (lambda *a: enlarged(*a, share=1), "four times as loud"),
            "half": (lambda *a: enlarged(*a, share=2), "a quarter, or a half"),
            "tiled": (
                lambda W1, W2, g: (W1.repeat(1, 4) / 4, W2.repeat(4, 1)),
                "lay W1 out on its grid",
            ),
            "in a row": (
                lambda W1, W2, g: (W1.repeat_interleave(4, 1) / 4, widen(W2, g)),
                "lay W1 out on its grid",
            ),
            "one copy": (one_of_four, "weigh the same"),
            "quiet": (lambda *a: enlarged(*a, spread=4), "Does anything add up"),
            "W2 tiled": (
                lambda W1, W2, g: (enlarged(W1, W2, g)[0], W2.repeat(4, 1)),
                "do not stand where",
            ),
            "unchanged": (lambda W1, W2, g: (W1, W2), "has the shape"),
        },
        stubs=(lambda W1, W2, grid: (..., ...),),
    ),
    Case(
        check_orders,
        right=reads(ANSWERS),
        wrong={
            "A blind": (reads(ANSWERS, _0="no"), "compare its two columns"),
            "B sees": (reads(ANSWERS, _1="yes"), "does anything change for B"),
            "built in": (reads(ANSWERS, _2="yes"), "Who told it"),
            "no gain": (reads(ANSWERS, _3="no"), "Which other values"),
            "gain": (reads(ANSWERS, _4="yes"), "trained with positions anywhere"),
            "another word": (reads(ANSWERS, _0="maybe"), 'answer "yes"'),
        },
    ),
]
