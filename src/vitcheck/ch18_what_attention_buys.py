"""Checks of chapter 18: equal budgets, what adding up can do, and reading a comparison."""

from vitcheck.reading import NO, OPEN, YES, judge, reading
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


def _for_one(K, a, wrong=1 / 2):
    return a / (2 * K) + (1 - wrong * a * (a - 1) / (K * (K - 1))) / 2


def _ceiling(K, wrong=1 / 2):
    return max(_for_one(K, a, wrong) for a in range(K + 1))


@staged(
    "my_ceiling",
    ok="how far adding up can go, and no further",
    right=_ceiling,
    mistakes={
        "that is the value for one a; which a is the best?": [
            lambda K: _for_one(K, 0),
            lambda K: _for_one(K, 1),
            lambda K: _for_one(K, K // 4),
        ],
        "one of the two orders has to be wrong, not both": lambda K: _ceiling(K, wrong=1),
        "nothing is lost on the different pairs? Two kinds called the same cost one": (
            lambda K: 1.0
        ),
        "each class is half of the images": lambda K: 2 * _ceiling(K),
    },
)
def check_ceiling(trial: Trial, my_ceiling):
    """my_ceiling(K): the most right answers that adding up can give, K kinds of glyphs."""
    trial.stage("the largest over a")
    for K in (16, 8, trial.integer(20, 30), 3):
        trial.compare(
            my_ceiling,
            K,
            otherwise="count the same pairs that are right, and the different pairs that are "
            "wrong, for each a from 0 to K",
            tolerance=1e-6,
        )


_STATEMENTS = {
    "on task 1, A is better than B at this budget": (YES, "does the interval hold zero?"),
    "on task 1, B cannot learn what A learns": (
        OPEN,
        "what did B do with four times the compute?",
    ),
    "on task 2, 70 % need attention": (NO, "which model without attention is as good?"),
    "on task 2, A and B are equally good": (
        OPEN,
        "the interval reaches from -1.1 to 1.9. Is zero all that it holds?",
    ),
    "A is better than B on task 1 because it attends": (
        OPEN,
        "in how many things do the two differ? Which control would leave only one?",
    ),
    "C learned something on task 1": (OPEN, "does C's interval hold a blind guess? Only that?"),
}


@staged(
    "my_reading",
    ok="what the comparison shows, and what it leaves open",
    **reading(_STATEMENTS),
)
def check_comparison(trial: Trial, my_reading):
    """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_reading(), _STATEMENTS)
