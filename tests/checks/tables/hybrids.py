"""Hybrids."""

from functools import reduce

from case import Case

from vitcheck.exercises.hybrids import check_equal, check_stack


def by_branches(x, mixings, mlps, norm):
    branches = [branch for pair in zip(mixings, mlps, strict=True) for branch in pair]
    return norm(reduce(lambda x, branch: x + branch(norm(x)), branches, x))


def three_blocks(x, mixings, mlps, norm):
    return by_branches(x, (mixings * 3)[:3], (mlps * 3)[:3], norm)


def equal(N, D):
    width = 4 * D * D / (2 * N)
    attention = N * (4 * D * D) + 2 * (N * N * D)
    return width, attention / (D * (N * width + width * N))


CASES = [
    Case(
        check_stack,
        wrong={"typed depth": (three_blocks, "typed somewhere")},
    ),
    Case(
        check_equal,
        wrong={
            "right only for few patches": (
                lambda N, D: (equal(N, D)[0], min(equal(N, D)[1], 1.1)),
                "more patches than channels",
            )
        },
        stubs=(lambda N, D: (..., ...),),
    ),
]
