"""Checks: does a layer look, an interval of paired seeds, and reading a contest."""

import torch

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _exchanged(x, i, j):
    x = x.clone()
    x[:, [i, j]] = x[:, [j, i]]
    return x


def _looks(layer, x, i, j, back=True, largest=lambda d: d.abs().max()):
    out = layer(_exchanged(x, i, j))
    return largest((_exchanged(out, i, j) if back else out) - layer(x))


@staged(
    "my_exchange",
    ok="nothing changes for a layer that finds tokens by what they hold",
    right=_looks,
    mistakes={
        "the outputs of the two tokens change places, too: did you put them back?": (
            lambda layer, x, i, j: _looks(layer, x, i, j, back=False)
        ),
        "a large negative difference is a difference, too": lambda layer, x, i, j: _looks(
            layer, x, i, j, largest=torch.max
        ),
        "the largest is asked for, not the mean": lambda layer, x, i, j: _looks(
            layer, x, i, j, largest=lambda d: d.abs().mean()
        ),
        "did you exchange tokens, or features?": lambda layer, x, i, j: (
            (_exchanged(layer(_exchanged(x.mT, i, j).mT).mT, i, j).mT - layer(x)).abs().max()
        ),
        "what did the layer make of the exchanged tokens?": lambda layer, x, i, j: (
            (_exchanged(x, i, j) - x).abs().max()
        ),
    },
)
def check_exchange(trial: Trial, my_exchange):
    """my_exchange(layer, x, i, j): what exchanging two tokens changes, besides their places.

    layer: tokens (B, N, D) -> tokens (B, N, D). The largest absolute difference between its output
    and its output for the exchanged tokens, after these two outputs were put back.
    """
    x, scores, read = trial.randn(2, 7, 5), trial.randn(7, 7), trial.randn(5, 7)
    otherwise = "exchange, run, exchange back: where is it farthest from the first output?"
    trial.stage("a layer with an address")
    for i, j in ((1, 4), (0, 2)):
        trial.compare(
            my_exchange,
            lambda x: -((x @ read).softmax(dim=-1) @ x).exp(),
            x,
            i,
            j,
            otherwise=otherwise,
        )
    trial.stage("a fixed table")
    trial.compare(my_exchange, lambda x: scores.softmax(dim=-1) @ x, x, 3, 4, otherwise=otherwise)
    trial.stage("attention")
    trial.compare(
        my_exchange,
        lambda x: (x @ x.mT).softmax(dim=-1) @ x,
        x,
        0,
        3,
        otherwise=otherwise,
        tolerance=1e-4,
    )


def _interval(yours, theirs, t, pair=True, ddof=1, root=0.5, mean=True):
    a, b = torch.tensor(yours).double(), torch.tensor(theirs).double()
    difference = a - b
    n = len(difference)
    spread = (
        difference.std(correction=ddof)
        if pair
        else (a.var(correction=ddof) + b.var(correction=ddof)).sqrt()
    )
    half = t * spread.item() / n**root
    middle = difference.mean().item() if mean else difference.median().item()
    return middle - half, middle + half


@staged(
    "my_interval",
    ok="each seed is its own control, and the interval is of the difference",
    right=_interval,
    mistakes={
        "seed by seed: which spread counts, that of the two columns or that of their difference?": (
            lambda yours, theirs, t: _interval(yours, theirs, t, pair=False)
        ),
        "with n values and their mean known, over how many do the squares average?": (
            lambda yours, theirs, t: _interval(yours, theirs, t, ddof=0)
        ),
        "a mean of n values is surer than one value: by which factor?": [
            lambda yours, theirs, t: _interval(yours, theirs, t, root=0),
            lambda yours, theirs, t: _interval(yours, theirs, t, root=1),
        ],
        "is t in it?": lambda yours, theirs, t: _interval(yours, theirs, 1),
        "the difference is yours minus theirs": [
            lambda yours, theirs, t: _interval(theirs, yours, t),
        ],
        "the low end first": lambda yours, theirs, t: _interval(yours, theirs, t)[::-1],
        "the mean of the differences, not their middle one": lambda yours, theirs, t: _interval(
            yours, theirs, t, mean=False
        ),
    },
)
def check_interval(trial: Trial, my_interval):
    """my_interval(yours, theirs, t): the low and the high end of the mean difference, by seed.

    yours, theirs: lists of as many numbers, one for each seed; t: the factor of Student's t.
    """
    otherwise = "mean of the differences, minus and plus t times their spread over the root of n"
    for n, t in ((3, 4.303), (5, 2.776)):
        trial.stage(f"{n} seeds")
        hard = trial.randn(n)  # what a seed does to both
        theirs = (80 + 5 * hard).tolist()
        yours = (81 + 5 * hard + 0.5 * trial.randn(n)).tolist()
        trial.compare(my_interval, yours, theirs, t, otherwise=otherwise, tolerance=1e-4)


_STATEMENTS = {
    "on task 1, Z is better than attention at this budget": (
        OPEN,
        "does the interval of the difference hold zero?",
    ),
    "on task 1, Z and attention are equally good": (
        OPEN,
        "the interval reaches from -0.4 to 3.6. Is zero all that it holds?",
    ),
    "on task 2, Z is worse than attention at this budget": (
        YES,
        "which numbers does the interval of the difference hold?",
    ),
    "on task 2, Z cannot learn what attention learns": (
        OPEN,
        "how long was Z trained? What would ten times as long show?",
    ),
    "attention's own rate for Z would make it fairer": (
        NO,
        "which of the two layers would that rate have been searched for?",
    ),
    "on task 2, Z is as near to attention as on task 1": (
        NO,
        "how far apart are the two on each task?",
    ),
}


check_contest = reading("what a contest shows, and what it leaves open", _STATEMENTS)
