"""Your own layer."""

import statistics

import torch
from case import Case

from vitcheck.exercises.your_own_layer import check_contest, check_exchange, check_interval


def by_order(layer, x, i, j):
    order = list(range(x.shape[1]))
    order[i], order[j] = j, i
    return (layer(x[:, order])[:, order] - layer(x)).abs().max().item()


def one_row(layer, x, i, j):
    order = list(range(x.shape[1]))
    order[i], order[j] = j, i
    return (layer(x[:, order])[:, i] - layer(x)[:, j]).abs().max()


def in_place(layer, x, i, j):
    first = layer(x)
    x[:, [i, j]] = x[:, [j, i]]
    out = layer(x)
    out[:, [i, j]] = out[:, [j, i]]
    return (out - first).abs().max()


def by_hand(yours, theirs, t):
    differences = [a - b for a, b in zip(yours, theirs, strict=True)]
    half = t * statistics.stdev(differences) / len(differences) ** 0.5
    return [statistics.mean(differences) - half, statistics.mean(differences) + half]


def relative(yours, theirs, t):
    low, high = by_hand(yours, theirs, t)
    return low / statistics.mean(theirs), high / statistics.mean(theirs)


ANSWERS = {
    "on task 1, Z is better than attention at this budget": "cannot say",
    "on task 1, Z and attention are equally good": "cannot say",
    "on task 2, Z is worse than attention at this budget": "yes",
    "on task 2, Z cannot learn what attention learns": "cannot say",
    "attention's own rate for Z would make it fairer": "no",
    "on task 2, Z is as near to attention as on task 1": "no",
}

CASES = [
    Case(
        check_exchange,
        also={
            "by an order of the tokens": by_order,
            "the other way round": lambda layer, x, i, j: torch.dist(
                layer(x[:, _order(x, i, j)]), layer(x)[:, _order(x, i, j)], float("inf")
            ),
        },
        wrong={
            "one row only": (one_row, "farthest from the first output"),
            "in place": (in_place, "change an input in place"),
        },
    ),
    Case(
        check_interval,
        also={"by hand": by_hand},
        wrong={"relative": (relative, "mean of the differences, minus and plus")},
        stubs=(lambda yours, theirs, t: (..., ...),),
    ),
    Case(check_contest, also={"in words": lambda: ANSWERS}),
]


def _order(x, i, j):
    order = torch.arange(x.shape[1])
    order[i], order[j] = j, i
    return order
