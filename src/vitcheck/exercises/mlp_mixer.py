"""Checks: token mixing, another grid, what a table of orders says."""

from functools import partial

import torch.nn.functional as F

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _mix(x, W1, b1, W2, b2, act=F.gelu):
    return (act(x.mT @ W1.T + b1) @ W2.T + b2).mT


@staged(
    "my_token_mixing",
    ok="one MLP down each column, the same for all channels",
    right=_mix,
    mistakes={
        "W1 met the channels of a token. Which axis has N entries?": lambda x, *weights: (
            _mix(x.mT, *weights).mT
        ),
        "the axes are still exchanged: back to (B, N, D)": lambda *inputs: _mix(*inputs).mT,
        "there is no nonlinearity between the two layers": partial(_mix, act=lambda hidden: hidden),
        "ReLU and GELU differ; the block has a GELU": partial(_mix, act=F.relu),
        "the residual is added by the block, not here": lambda x, *weights: x + _mix(x, *weights),
        "the biases are missing": lambda x, W1, b1, W2, b2: _mix(x, W1, 0, W2, 0),
        "is W1 (out, in) or (in, out)?": [
            lambda x, W1, b1, W2, b2: _mix(x, W1.T, b1, W2, b2),
            lambda x, W1, b1, W2, b2: _mix(x, W1.T, b1, W2.T, b2),
            lambda x, W1, b1, W2, b2: _mix(x, W1, b1, W2.T, b2),
        ],
    },
)
def check_token_mixing(trial: Trial, my_token_mixing):
    """my_token_mixing(x, W1, b1, W2, b2): x (B, N, D), W1 (S, N), W2 (N, S) -> (B, N, D)."""
    for stage, (B, N, D, S), otherwise in (
        (
            "which axis is mixed",
            (2, 5, 5, 5),  # all alike, so that a wrong axis has the right shape
            "take one channel: its N numbers go through W1, GELU and W2",
        ),
        ("other sizes", (1, 4, 3, 6), "is a size typed somewhere?"),
    ):
        x, W1, b1 = trial.randn(B, N, D), trial.randn(S, N), trial.randn(S)
        W2, b2 = trial.randn(N, S), trial.randn(N)
        trial.stage(stage)
        trial.compare(my_token_mixing, x, W1, b1, W2, b2, otherwise=otherwise, tolerance=1e-4)


def _wider(table, grid):
    """(N, D) -> (4 N, D), each token four times, where it stands."""
    laid_out = table.unflatten(0, grid)
    return laid_out.repeat_interleave(2, dim=0).repeat_interleave(2, dim=1).flatten(0, 1)


def _enlarged(W1, W2, grid):
    return _wider(W1.T, grid).T / 4, _wider(W2, grid)


@staged(
    "my_enlarged",
    ok="a smooth table is mixed on the new grid as on the old one",
    right=_enlarged,
    in_part={
        0: {
            "each place is heard four times now. Is the unit four times as loud?": (
                lambda W1, W2, grid: _wider(W1.T, grid).T
            ),
            "four places share what one had: a quarter, or a half?": (
                lambda W1, W2, grid: _wider(W1.T, grid).T / 2
            ),
            "the copies do not stand where the patch stands: lay W1 out on its grid first": [
                lambda W1, W2, grid: W1.repeat(1, 4),
                lambda W1, W2, grid: W1.repeat(1, 4) / 4,
                lambda W1, W2, grid: W1.repeat_interleave(4, dim=1),
                lambda W1, W2, grid: W1.repeat_interleave(4, dim=1) / 4,
            ],
        },
        1: {
            "W2 speaks to each place on its own. Does anything add up here?": [
                lambda W1, W2, grid: _wider(W2, grid) / 4,
                lambda W1, W2, grid: _wider(W2, grid) / 2,
            ],
            "the copies do not stand where the patch stands": [
                lambda W1, W2, grid: W2.repeat(4, 1),
                lambda W1, W2, grid: W2.repeat(4, 1) / 4,
                lambda W1, W2, grid: W2.repeat_interleave(4, dim=0),
                lambda W1, W2, grid: W2.repeat_interleave(4, dim=0) / 4,
            ],
        },
    },
)
def check_enlarged(trial: Trial, my_enlarged):
    """my_enlarged(W1, W2, grid): each place becomes 2 x 2 places -> W1 (S, 4 N), W2 (4 N, S)."""
    rows, columns, S, D = 2, 3, 4, 5
    N = rows * columns
    W1, W2, grid = trial.randn(S, N), trial.randn(N, S), (rows, columns)
    trial.stage("shapes")
    new1, new2 = trial.pair(my_enlarged(W1, W2, grid))
    new = (
        trial.tensor(new1, (S, 4 * N), name="W1"),
        trial.tensor(new2, (4 * N, S), name="W2"),
    )
    trial.stage("what a hidden unit hears")
    large = _wider(trial.randn(N, D), grid)
    trial.compare(
        new,
        *(W1, W2, grid),
        part=lambda pair: pair[0] @ large,
        otherwise="let the same table, each token four times, go through the old and the new W1",
        tolerance=1e-4,
    )
    trial.stage("each copy alike")
    trial.compare(
        new,
        *(W1, W2, grid),
        part=0,
        otherwise="do all four copies of a place weigh the same?",
        tolerance=1e-4,
    )
    trial.stage("what a hidden unit says")
    h = trial.randn(S, D)
    trial.compare(
        new,
        *(W1, W2, grid),
        part=lambda pair: pair[1] @ h,
        otherwise="each of the four new places should be told what the old one was told",
        tolerance=1e-4,
    )


_STATEMENTS = {
    "A uses where a patch stands": (YES, "compare its two columns"),
    "B uses where a patch stands": (NO, "does anything change for B when the patches move?"),
    "neighbours side by side gain A five points or more": (
        NO,
        "in place neighbours stand side by side, in the other order they do not. Compare A's rows",
    ),
    "with positions added, A would be better": (
        OPEN,
        "the interval holds zero. Which other values does it hold?",
    ),
    "B would gain from positions": (OPEN, "was B trained with positions anywhere in the table?"),
}


check_orders = reading("what the orders show, and what they leave open", _STATEMENTS)
