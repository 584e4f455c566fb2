"""What a contest found, in numbers and in a sentence that says no more than its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy.special import stdtrit

from vitbook.book.intervals import Interval, student_interval
from vitbook.book.records import Record

WHOLE = "ViT"  # what the others are made equal to
POWER = 2.8  # standard errors: 1.96 for 95 %, and 0.84 more for four contests of five
SAID = (WHOLE, "no mixing")  # of these the sentence tells
BESIDE = ("ViT", "Mixer", "ConvMixer", "uniform", "no mixing")  # shown from a record of shares


@dataclass(frozen=True)
class Contest:
    """What is equal for all, from the record, and how the new layer is made equal.

    Args:
        place: The layer, "file.py:Class".
        task: One of ``TASKS``.
        width: D, with which the model has about the parameters of the record's ViT.
        parameters, multiplies: Of the model with the new layer; multiplies for one image.
        steps: Updates with the multiplications that the ViT spends, or may spend.
        whole: Updates of that ViT.
    """

    place: str
    task: str
    width: int
    parameters: int
    multiplies: int
    steps: int
    whole: int

    @property
    def name(self) -> str:
        """Of the layer's class."""
        return self.place.rpartition(":")[2]


class Row(NamedTuple):
    """A layer beside the others.

    Args:
        name: Of the layer.
        cells: What the table says of it.
        bar: Low end, middle and high end on the axis of the figure, between 0 and 1.
    """

    name: str
    cells: tuple[str, ...]
    bar: tuple[float, ...]


@dataclass(frozen=True)
class Verdict:
    """What came out.

    Args:
        contest: What was made equal.
        rate: The learning rate that the search chose.
        at_edge: Whether the search ended at the edge of what it tried.
        found: Of the new layer, one for each seed.
        sentence: Where it stands.
        rows: The others, and the new layer last.
    """

    contest: Contest
    rate: float
    at_edge: bool
    found: tuple[dict[str, float], ...]
    sentence: str
    rows: tuple[Row, ...]


def by_accuracy(
    contest: Contest, found: Sequence[dict[str, float]], record: Record
) -> tuple[str, tuple[Row, ...]]:
    """Sentence and rows of a contest whose measure is the accuracy."""
    ours, rows, words = [one["accuracy"] for one in found], [], []
    for other in BESIDE:
        theirs = record.values("test_accuracy", model=other)
        difference = student_interval([a - b for a, b in zip(ours, theirs, strict=True)])
        share = student_interval(theirs)
        so = f"{_points(difference)}: {in_short(difference)}"
        rows.append(Row(other, (_share(share), so), _cut(share)))
        if other in SAID:
            said = difference_in_words(difference, len(ours))
            words.append(f"{contest.name} against {other}: {said}")
    share = student_interval(ours)
    return " ".join(words), (*rows, Row(contest.name, (_share(share), ""), _cut(share)))


def _cut(share: Interval) -> tuple[float, float, float]:
    """Low end, mean and high end, where a share can be."""
    return max(0.0, share.low), share.mean, min(1.0, share.high)


def _share(share: Interval) -> str:
    low, mean, high = (f"{100 * x:.1f}" for x in _cut(share))
    return f"{mean} % ({low} to {high})"


def _points(difference: Interval) -> str:
    mean, low, high = (_signed(100 * value) for value in difference)
    return f"{mean} ({low} to {high})"


def difference_in_words(difference: Interval, seeds: int) -> str:
    """A difference of shares in words.

    Args:
        difference: Mean and 95 % interval of the differences, paired by seed.
        seeds: How many pairs.

    Returns:
        Better, worse, or no difference shown; then with how many pairs one as large as the mean
        would be shown in four of five such contests.
    """
    mean, low, high = (round(100 * value, 1) for value in difference)
    if low == high == 0:
        return "equal to a tenth of a point."
    if difference.low > 0:
        return f"better by {mean:.1f} points ({low:.1f} to {high:.1f})."
    if difference.high < 0:
        return f"worse by {-mean:.1f} points ({-high:.1f} to {-low:.1f})."
    numbers = f"{_signed(mean)} points ({_signed(low)} to {_signed(high)})"
    if mean == 0:
        return f"no difference shown, {numbers}."
    spread = difference.half * math.sqrt(seeds) / stdtrit(seeds - 1, 0.975)
    needed = math.ceil((POWER * spread / difference.mean) ** 2)
    words = f"about {needed:,} seeds" if needed <= 1000 else "more than 1,000 seeds"
    return f"no difference shown, {numbers}; {words} would be needed to show one of this size."


def _signed(points: float) -> str:
    rounded = round(points, 1)
    return f"{rounded:+.1f}".replace("-", "\N{MINUS SIGN}") if rounded else "0.0"


def in_short(difference: Interval) -> str:
    """A difference in a word; an interval that holds zero is a tie."""
    return "better" if difference.low > 0 else "worse" if difference.high < 0 else "tie"


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain values, for a file beside the page."""
    return {
        "layer": verdict.contest.name,
        "task": verdict.contest.task,
        "width": verdict.contest.width,
        "parameters": verdict.contest.parameters,
        "multiplies": verdict.contest.multiplies,
        "updates": verdict.contest.steps,
        "learning_rate": verdict.rate,
        "found": list(verdict.found),
        "beside": {row.name: row.cells for row in verdict.rows},
        "sentence": verdict.sentence,
    }
