"""Checks: what it costs."""

import math
from functools import partial

import torch

from vitcheck.trial import staged

# Made-up times in milliseconds, for reading: A is 1 ms and 1 ms for each 128 tokens.
TIMES = {
    "tokens": (128, 256, 512, 1024),
    "A": (2.0, 3.0, 5.0, 9.0),
    "B": (0.4, 1.4, 5.2, 20.0),
}
QUESTIONS = (
    "exponent of A between 512 and 1024 tokens",
    "exponent of B between 512 and 1024 tokens",
    "B takes longer than A from between 128, 256 or 512 tokens and the next length",
    "milliseconds that A takes however few tokens there are",
    "C: exponent 1.12, interval 0.95 to 1.29. Is its time linear: yes, no, or open?",
)


def _bill(image_size, P, D, L, classes, *, tokens=0, embedding=True, head=True):
    patches = (image_size // P) ** 2
    n = patches + 1 + tokens
    blocks = L * (12 * n * D * D + 2 * n * n * D)
    return blocks + embedding * patches * 3 * P * P * D + head * D * classes


def _off(by):
    """A bill that differs by this, of n tokens, P, D, L and classes."""

    def bill(image_size, P, D, L, classes):
        n = (image_size // P) ** 2 + 1
        return _bill(image_size, P, D, L, classes) + by(n, P, D, L, classes)

    return bill


@staged(
    "the bill",
    ok="every product of the model, for its tokens and no others.",
    right=_bill,
    mistakes={
        "which token is not a patch?": partial(_bill, tokens=-1),
        "those are FLOPs; how many multiplications are two of them?": lambda *sizes: (
            2 * _bill(*sizes)
        ),
        "how many blocks are there?": lambda image_size, P, D, L, classes: _bill(
            image_size, P, D, 1, classes
        ),
        "the blocks alone; what happens before them, and after?": partial(
            _bill, embedding=False, head=False
        ),
        "what turns the class token into logits?": partial(_bill, head=False),
        "how do pixels become tokens?": partial(_bill, embedding=False),
        "an image has three colours": _off(lambda n, P, D, L, K: -2 * (n - 1) * P * P * D),
        "the class token is no patch: does the embedding make it?": _off(
            lambda n, P, D, L, K: 3 * P * P * D
        ),
        "does the head read every token?": _off(lambda n, P, D, L, K: (n - 1) * D * K),
        "where do two tokens meet? How often?": [
            _off(lambda n, P, D, L, K: -L * n * n * D),
            _off(lambda n, P, D, L, K: -2 * L * n * n * D),
        ],
        "how wide is the MLP between its layers?": _off(lambda n, P, D, L, K: -6 * L * n * D * D),
        "which four products of D x D has attention?": [
            _off(lambda n, P, D, L, K: -L * n * D * D),
            _off(lambda n, P, D, L, K: -4 * L * n * D * D),
        ],
    },
)
def check_bill(trial, bill):
    """bill(image_size, patch_size, D, L, classes): products in a ViT, for one image."""
    for D in (7, 10):  # with 7, no two mistakes give the same
        P, side, L = trial.integer(2, 4), trial.integer(3, 5), trial.integer(2, 4)
        sizes = P * side, P, D, L, trial.integer(11, 17)
        trial.stage("the number")
        trial.compare(
            bill,
            *sizes,
            otherwise=f"{P * side} pixels, patches of {P}, D = {D}, L = {L}: it is "
            f"{_bill(*sizes)}; count the tokens first",
            name="the number of multiplications",
        )


def _reading():
    exponents = (math.log2(TIMES[name][-1] / TIMES[name][-2]) for name in "AB")
    return dict(zip(QUESTIONS, (*exponents, 256, 1.0, "open"), strict=True))


def _exponent(before, after):
    """Mistakes in the exponent between two times, for twice as many tokens."""
    return {
        "that is how many times as long it takes; to what power is 2 raised for that?": (
            after / before
        ),
        "which logarithm turns a doubling into 1?": [
            math.log(after / before),
            math.log10(after / before),
        ],
        "that is a slope in ms per token; what are the axes of a log-log plot?": (
            (after - before) / 512
        ),
        "is the longer time above or below the line?": math.log2(before / after),
    }


@staged(
    "reading curves",
    ok="slopes, a crossing, a fixed cost, and what an interval leaves open.",
    right=_reading,
    in_part={
        QUESTIONS[0]: _exponent(*TIMES["A"][-2:]),
        QUESTIONS[1]: _exponent(*TIMES["B"][-2:]),
        QUESTIONS[3]: {
            "at 128 tokens the tokens themselves cost something already": 2.0,
            "from 128 to 256 tokens A grows by 1 ms; what is left at no tokens?": 0.0,
        },
        QUESTIONS[4]: {
            "1 lies in the interval, and so does 1.2; is 1.2 linear?": "yes",
            "does the interval leave out 1?": "no",
        },
    },
)
def check_reading(trial, my_reading):
    """my_reading() -> {question: answer} for QUESTIONS about TIMES."""
    given = trial.answers(my_reading(), QUESTIONS)
    for name, question in zip("AB", QUESTIONS[:2], strict=True):
        *_, before, after = TIMES[name]
        trial.stage(f"exponent of {name}")
        otherwise = f"twice the tokens, {after} ms for {before}: 2 to which power is that?"
        trial.compare(given, part=question, otherwise=otherwise, tolerance=0.02)
    trial.stage("the crossing")
    trial.compare(
        given,
        part=QUESTIONS[2],
        otherwise="give the length before the crossing: where is B still below A, and at the next "
        "no more?",
    )
    trial.stage("the fixed cost")
    otherwise = "A lies on a line over N (not over log N); where does it start?"
    trial.compare(given, part=QUESTIONS[3], otherwise=otherwise, tolerance=0.01)
    trial.stage("the interval")
    trial.compare(given, part=QUESTIONS[4], otherwise='answer "yes", "no" or "open"')


def _mask(windows, first_row=True, first_column=True):
    """A mask from what says, of two patches at (row, column), whether they share a window."""

    def mask(rows, columns, w):
        row, column = (
            torch.arange(rows * columns) // columns,
            torch.arange(rows * columns) % columns,
        )
        may = torch.ones(1 + rows * columns, 1 + rows * columns, dtype=torch.bool)
        may[0, 1:], may[1:, 0] = first_row, first_column
        may[1:, 1:] = windows(row[:, None], column[:, None], row, column, w)
        return may

    return mask


def _square(r, c, s, t, w):
    return (r // w == s // w) & (c // w == t // w)


def _by_place(number):
    """One window for all patches that get the same number, of place, rows, columns, w."""

    def mask(rows, columns, w):
        place = torch.arange(rows * columns)
        label = number(place, rows, columns, w)
        return _mask(lambda *_: label[:, None] == label)(rows, columns, w)

    return mask


@staged(
    "window mask",
    ok="own window, the class token from and to everywhere, on any grid.",
    right=_mask(_square),
    mistakes={
        "True means may attend; is this the other way round?": lambda *sizes: (
            ~_mask(_square)(*sizes)
        ),
        "whom may the class token ask?": _mask(_square, first_row=False),
        "who may ask the class token?": _mask(_square, first_column=False),
        "the class token is alone; how would the image reach it?": _mask(
            _square, first_row=False, first_column=False
        ),
        "only neighbours in one row of patches; a window is a square": [
            _by_place(lambda place, rows, columns, w: place // w),
            _mask(lambda r, c, s, t, w: (r == s) & (c // w == t // w)),
        ],
        "w * w patches that follow each other in the sequence; are they a square?": _by_place(
            lambda place, rows, columns, w: place // (w * w)
        ),
        "a whole band of the image is one window": [
            _mask(lambda r, c, s, t, w: r // w == s // w),
            _mask(lambda r, c, s, t, w: c // w == t // w),
        ],
        "rows or columns: by which do you divide to find a patch's row?": _by_place(
            lambda place, rows, columns, w: place // rows // w * 100 + place % rows // w
        ),
        "that is a window around each patch; here windows do not slide": _mask(
            lambda r, c, s, t, w: ((r - s).abs() < w) & ((c - t).abs() < w)
        ),
    },
)
def check_window_mask(trial, window_mask):
    """window_mask(rows, columns, w): boolean (N, N) with N = 1 + rows * columns, True = may."""
    for rows, columns, w in ((4, 6, 2), (3, 6, 3)):
        trial.stage("the mask")
        trial.compare(
            window_mask,
            rows,
            columns,
            w,
            otherwise=f"{rows} x {columns} patches, windows of {w} x {w}: with whom may patch 0 "
            "speak? And the last one?",
        )
