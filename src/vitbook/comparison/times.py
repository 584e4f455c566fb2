"""How many times the multiplications of another layer, until the answers are right?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitbook.book.intervals import Interval, ratio_of_medians
from vitbook.book.records import Record
from vitbook.comparison.verdict import WHOLE, Contest, Row

RATE = 1.25  # a ratio that another learning rate of the search can make: attention at 1 and 2e-3
AXIS = 0.1, 50  # ends of the figure, in medians of attention until half is right


class Times(NamedTuple):
    """Of several trainings.

    Args:
        until: Multiplications until the answers were right; inf: not within the budget.
        budget: The multiplications after which a training ended.
    """

    until: np.ndarray
    budget: float

    @property
    def learned(self) -> int:
        """How many learned within the budget."""
        return int(np.isfinite(self.until).sum())

    @property
    def median(self) -> float:
        """Inf where more than half did not learn."""
        return float(np.median(self.until))


def times_of(updates: ArrayLike, each: int, longest: int) -> Times:
    """From updates, 0 where it did not learn.

    Args:
        updates: One for each training.
        each: Multiplications of an update.
        longest: The updates after which a training ended.
    """
    spent = np.array(updates, dtype=float) * each
    return Times(np.where(spent > 0, spent, np.inf), float(longest * each))


def recorded(record: Record, model: str, metric: str) -> Times:
    """Those of a model in a record that ``tasks.record_of`` gave.

    Args:
        record: Of one task.
        model: Its name there.
        metric: "until_half" or "until_95".
    """
    of, batch = record.settings["models"][model], record.settings["training"]["batch_size"]
    updates = record.values(metric, model=model).ravel()  # (runs * trainings,)
    return times_of(updates, of["multiplies"] * batch, of["steps"])


def ratio(ours: Times, theirs: Times) -> Interval:
    """The median of ours in those of theirs, with its 95 % bootstrap interval.

    Where a training did not learn, its time lies between its budget and infinity, and the interval
    holds both. ``mean``, the ratio of the medians, is inf where ours is, 0 where theirs alone is.
    """
    least, their_least = (np.minimum(one.until, one.budget) for one in (ours, theirs))
    high = ratio_of_medians(ours.until, their_least).high
    if not math.isfinite(theirs.median):
        return Interval(0.0 if math.isfinite(ours.median) else math.inf, 0.0, high)
    mean = ratio_of_medians(ours.until, theirs.until).mean
    return Interval(mean, ratio_of_medians(least, theirs.until).low, high)


def in_one_word(found: Interval) -> str:
    """Whether ours needs more: by more than the choice of a rate can make, or it is a tie.

    An interval without an end that begins below is open: the budget ends before.
    """
    if found.low > RATE or found.high < 1 / RATE:
        return "later" if found.low > RATE else "sooner"
    return "tie" if math.isfinite(found.high) else "open"


def ratio_in_words(name: str, other: str, found: Interval) -> str:
    """A ratio as a sentence that says no more than its interval."""
    shown = f"No difference to {other} is shown: " * (found.low <= 1 <= found.high)
    as_much = "; another learning rate could make as much" * (in_one_word(found) == "tie")
    about, between = ratio_in_short(found)
    return (
        f"{shown}{name} needs {about} times the multiplications of {other} until half of the "
        f"answers are right{between and f' ({between})'}{as_much * (not shown)}."
    )


def ratio_in_short(found: Interval) -> tuple[str, str]:
    """The ratio, and its interval if it has both; no end is rounded inwards."""
    low, high = digits(found.low, math.floor), digits(found.high, math.ceil)
    if not math.isfinite(found.mean):
        return f"more than {low}", ""
    if found.mean == 0:
        return f"less than {high}", ""
    between = f"{low} to {high}" if math.isfinite(found.high) else f"{low} or more"
    return f"about {digits(found.mean)}", between


def digits(times: float, towards: Callable[[float], int] = round) -> str:
    """As many as such a ratio is known to."""
    if not math.isfinite(times):
        return "inf"
    places = 2 if times < 1 else 1 if times < 10 else 0
    return f"{towards(times * 10**places) / 10**places:.{places}f}"


def by_time(
    contest: Contest, found: Sequence[dict[str, float]], record: Record, guess: float
) -> tuple[str, tuple[Row, ...]]:
    """Sentence and rows of a contest whose measure is the time to learn."""
    each = contest.multiplies * record.settings["training"]["batch_size"]
    ours = [
        times_of([one[share] for one in found], each, contest.steps) for share in ("half", "most")
    ]
    rows, unit = [], recorded(record, WHOLE, "until_half").median
    for other in (one["model"] for one in record.conditions):
        theirs = [recorded(record, other, metric) for metric in ("until_half", "until_95")]
        ratios = [ratio(*pair) for pair in zip(ours, theirs, strict=True)]
        rows.append(Row(other, (_billions(theirs[0]), *map(_cell, ratios)), _bar(theirs[0], unit)))
        if other == WHOLE:
            sentence = ratio_in_words(contest.name, "attention", ratios[0])
    rows.append(Row(contest.name, (_billions(ours[0]), "", ""), _bar(ours[0], unit)))
    half, n = ours[0], len(found)
    if half.learned == 0:
        sentence = (
            f"{contest.name} has not learned within this budget: in none of {n} seeds were half of "
            f"the answers right within {half.budget / 1e9:.3g} billion multiplications, "
            f"{half.budget / unit:.0f} times what attention needs. At best "
            f"{100 * max(one['accuracy'] for one in found):.1f} % were right; a guess has "
            f"{100 * guess:.1f} %."
        )
    elif half.learned < n:
        sentence += f" It learned within the budget in {half.learned} of {n} seeds."
    return sentence, tuple(rows)


def _billions(times: Times) -> str:
    middle = f"{times.median / 1e9:.3g}"
    if not math.isfinite(times.median):
        middle = f"not within {times.budget / 1e9:.3g}"
    return f"{middle} ({times.learned} of {len(times.until)})"


def _cell(found: Interval) -> str:
    about, between = ratio_in_short(found)
    about, word = about.removeprefix("about "), in_one_word(found)
    return "open" if word == "open" else f"{about}{between and f' ({between})'}: {word}"


def _bar(times: Times, unit: float) -> tuple[float, ...]:
    """First quartile, median and third quartile on the axis, whose right end is "not learned"."""
    ends = np.quantile(times.until, (0.25, 0.5, 0.75), method="inverted_cdf") / unit
    return tuple(float(np.clip(on_axis(x), 0.02, 0.98)) for x in ends)


def on_axis(times: float) -> float:
    """Where a time lies on the axis of the figure, 0 to 1, in medians of attention."""
    return math.log(times / AXIS[0]) / math.log(AXIS[1] / AXIS[0])
