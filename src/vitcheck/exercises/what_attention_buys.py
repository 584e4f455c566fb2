"""Checks: equal budgets, a factor with its bounds, and reading a comparison."""

import math

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _nearest(sizes, whole, what=0):
    """The width whose parameters (or multiplications, 1) are nearest."""
    return min(sizes, key=lambda width: abs(sizes[width][what] - whole[what]))


def _budget(sizes, whole):
    width = _nearest(sizes, whole)
    _, multiplications, steps = whole
    return width, steps * multiplications / sizes[width][1]


@staged(
    "my_budget",
    ok="the nearest size, and the steps that its compute allows",
    right=_budget,
    in_part={
        0: {
            "a little too many parameters may be nearer than far too few": lambda sizes, whole: max(
                width for width in sizes if sizes[width][0] <= whole[0]
            ),
            "a little too few parameters may be nearer than far too many": lambda sizes, whole: min(
                width for width in sizes if sizes[width][0] >= whole[0]
            ),
            "the largest is not wanted, the nearest is": lambda sizes, whole: max(sizes),
            "did you compare the parameters, or the multiplications?": lambda sizes, whole: (
                _nearest(sizes, whole, 1)
            ),
        },
    },
)
def check_budget(trial: Trial, my_budget):
    """my_budget(sizes, whole): the width and the steps that make another model equal to it.

    sizes is a dictionary from width to (parameters, multiplications); whole is a tuple of
    (parameters, multiplications, steps).
    """
    sizes = {
        w: (w * w + trial.integer(0, 40), 70 * w * w + trial.integer(0, 900))
        for w in (20, 24, 28, 32, 36, 40)
    }
    for nearest, below in ((28, False), (32, True), (36, False)):
        parameters = sizes[nearest][0] + (15 if below else -15)
        whole = (parameters, 70 * 900 + trial.integer(10_000, 20_000), trial.integer(300, 700))
        width, steps = trial.pair(my_budget(sizes, whole))
        own = sizes[nearest][1]
        trial.stage("the width")
        trial.compare(
            (width, steps),
            sizes,
            whole,
            part=0,
            otherwise="which width has the smallest difference to the parameters wanted?",
            name="the width",
        )
        trial.stage("the steps")
        right = whole[2] * whole[1] / own
        trial.ask(
            abs(trial.number(steps, name="the steps") - whole[2] * own / whole[1]) > 1.5
            or abs(right - whole[2] * own / whole[1]) < 3,
            "a model that multiplies more for an image may make fewer steps, not more",
        )
        trial.ask(
            abs(float(steps) - whole[2]) > 1.5 or abs(right - whole[2]) < 3,
            "equal steps are equal images. What should be equal is the compute",
        )
        trial.ask(
            abs(float(steps) - right) <= 1,
            "multiplications of an image times steps: the same number for both models",
        )


def _bounds(model, reference, turn=False, ends=(0, 1, 1, 0), counted=True):
    """``ends``: which look of model, reference, model, reference bounds the factor."""
    (cost, crossing), (own, other) = (reference, model) if turn else (model, reference)
    ratio = cost / own if counted else 1
    at = [(crossing, other)[i % 2][end] for i, end in enumerate(ends)]
    return ratio * at[0] / at[1], ratio * at[2] / at[3]


@staged(
    "my_factor",
    ok="what the looks allow, and an open end where the share was never reached",
    right=_bounds,
    mistakes={
        "whose work stands above the line, the model's or the reference's?": (
            lambda m, r: _bounds(m, r, turn=True)
        ),
        "an update of the two does not cost the same": lambda m, r: _bounds(m, r, counted=False),
        "the reference, too, crossed between two looks. Which end makes the factor least?": [
            lambda m, r: _bounds(m, r, ends=(0, 0, 1, 1)),
            lambda m, r: _bounds(m, r, ends=(0, 1, 1, 1)),
            lambda m, r: _bounds(m, r, ends=(0, 0, 1, 0)),
        ],
        "the model may have crossed right after its last look before": (
            lambda m, r: _bounds(m, r, ends=(1, 1, 1, 0))
        ),
        "the least first, then the largest": lambda m, r: _bounds(m, r)[::-1],
    },
)
def check_factor(trial: Trial, my_factor):
    """my_factor(model, reference): the least and the largest factor that the looks allow.

    Both are pairs of the multiplications of an update and (last look before, first look after).
    """
    own = trial.integer(20, 30)
    reference = own, (75, 150)
    trial.stage("both crossed")
    otherwise = "work is multiplications of an update times updates. Which looks bound it?"
    for cost, before, after in ((own + 7, 1200, 1500), (own - 5, 300, 375)):
        trial.compare(
            my_factor, (cost, (before, after)), reference, otherwise=otherwise, tolerance=1e-6
        )
    trial.stage("the model never crossed")
    least, most = trial.pair(my_factor((own + 3, (4000, math.inf)), reference))
    wanted = (own + 3) * 4000 / (own * 150)
    trial.ask(
        abs(trial.number(least, name="the least") / wanted - 1) < 1e-6,
        "up to its last look the share was not reached. What does that say of the least factor?",
    )
    trial.ask(
        float(most) == math.inf,
        "a training that ended too early has no largest factor: leave infinity as it is",
    )


_STATEMENTS = {
    "on task 1, A is better than B at this budget": (YES, "does the interval hold zero?"),
    "on task 1, B cannot learn what A learns": (
        OPEN,
        "what did B do with four times the compute?",
    ),
    "on task 1, A compares what it sees": (OPEN, "how often is the nearest training image right?"),
    "on task 2, 70 % need attention": (NO, "which model without attention is as good?"),
    "on task 2, A and B are equally good": (
        OPEN,
        "the interval reaches from -1.1 to 1.9. Is zero all that it holds?",
    ),
    "A is better than B on task 1 because it attends": (
        OPEN,
        "in how many things do the two differ? Which control would leave only one?",
    ),
}


check_comparison = reading("what the comparison shows, and what it leaves open", _STATEMENTS)
