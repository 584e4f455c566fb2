"""What a contest found, in numbers and in a sentence that says no more than its intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from vitbook.book.intervals import Interval

WHOLE = "ViT"  # what the others are made equal to
POWER = 2.8  # standard errors: 1.96 for 95 %, and 0.84 more for four contests of five
SAID = (WHOLE, "no mixing")  # of these the sentence tells
BESIDE = ("ViT", "Mixer", "ConvMixer", "uniform", "no mixing")  # shown from the record


@dataclass(frozen=True)
class Contest:
    """What is equal for all, from the record, and how the new layer is made equal.

    Args:
        place: The layer, "file.py:Class".
        task: One of ``TASKS``.
        width: D, with which the model has about the parameters of the record's ViT.
        parameters, multiplies: Of the model with the new layer; multiplies for one image.
        steps: Updates with the multiplications that the record's ViT spends.
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


@dataclass(frozen=True)
class Verdict:
    """What came out.

    Args:
        contest: What was made equal.
        rate: The learning rate that the search chose.
        at_edge: Whether the search ended at the edge of what it tried.
        accuracies: Of the new layer, one for each seed.
        rows: (name, share of right answers, difference of the new layer to it or None).
    """

    contest: Contest
    rate: float
    at_edge: bool
    accuracies: tuple[float, ...]
    rows: tuple[tuple[str, Interval, Interval | None], ...]

    @property
    def sentence(self) -> str:
        """Where the new layer stands beside attention, and beside no mixing at all."""
        name, seeds = self.contest.name, len(self.accuracies)
        return " ".join(
            f"{name} against {other}: {difference_in_words(difference, seeds)}"
            for other, _, difference in self.rows
            if other in SAID and difference is not None
        )


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
    return f"{points:+.1f}".replace("-", "\N{MINUS SIGN}") if points else "0.0"


def in_short(difference: Interval | None) -> str:
    """A difference in a word or two; an interval that holds zero is a tie."""
    if difference is None:
        return ""
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
        "accuracies": list(verdict.accuracies),
        "sentence": verdict.sentence,
    }
