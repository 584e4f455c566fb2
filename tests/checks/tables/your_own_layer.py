"""Your own layer."""

import statistics

from case import Case

from vitcheck.exercises.your_own_layer import check_exchange, check_interval


def one_row(layer, x, i, j):
    order = list(range(x.shape[1]))
    order[i], order[j] = j, i
    return (layer(x[:, order])[:, i] - layer(x)[:, j]).abs().max()


def by_hand(yours, theirs, t):
    differences = [a - b for a, b in zip(yours, theirs, strict=True)]
    half = t * statistics.stdev(differences) / len(differences) ** 0.5
    return [statistics.mean(differences) - half, statistics.mean(differences) + half]


def relative(yours, theirs, t):
    low, high = by_hand(yours, theirs, t)
    return low / statistics.mean(theirs), high / statistics.mean(theirs)


CASES = [
    Case(
        check_exchange,
        wrong={"one row only": (one_row, "farthest from the first output")},
    ),
    Case(
        check_interval,
        wrong={"relative": (relative, "mean of the differences, minus and plus")},
        stubs=(lambda yours, theirs, t: (..., ...),),
    ),
]
