"""The mean of a few seeds, a share or a factor between medians, and how far to trust it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit


class Interval(NamedTuple):
    """A mean over seeds, a share or a factor, and the interval around it."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def student_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of a few independent values and its Student t interval.

    Args:
        values: at least two finite numbers, one for each seed.
        confidence: between 0 and 1.

    Raises:
        ValueError: for fewer than two values, other shapes, NaN, or such a confidence.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(
            f"values must be at least two numbers, one for each seed, got the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("values must be finite, got NaN or infinity among them")
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be a number between 0 and 1, got {confidence!r}")
    mean, half = float(values.mean()), float(student_half(values, confidence))
    return Interval(mean, mean - half, mean + half)


def student_half(values: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """Half the width of Student's t interval of the mean over the first axis, of 2 or more."""
    quantile = stdtrit(len(values) - 1, (1 + confidence) / 2)
    return quantile * values.std(axis=0, ddof=1) / math.sqrt(len(values))


def wilson_interval(right: int, n: int, confidence: float = 0.95) -> Interval:
    """A share that was counted, ``right`` of ``n``, and Wilson's interval of it.

    It says how far another set of as many images may lie; unlike a mean plus and minus something
    it stays between 0 and 1.
    """
    from scipy.stats import binomtest  # takes half a second, which few callers need

    low, high = binomtest(right, n).proportion_ci(confidence, method="wilson")
    return Interval(right / n, float(low), float(high))


def ratio_of_medians(ours: ArrayLike, theirs: ArrayLike, draws: int = 2000) -> Interval:
    """How many times the median of ``theirs`` is the median of ``ours``, with its 95 % interval.

    The seeds of both sides are drawn anew with replacement, ``draws`` times, always by the same
    random numbers; the middle 95 % of the ratios are the interval (percentile bootstrap, Efron and
    Tibshirani 1993, section 13.3).

    Args:
        ours: what each seed needed, above 0; infinity where it never got there.
        theirs: the same of the reference, where more than half got there.

    Raises:
        ValueError: for fewer than two values, NaN, a value that is not above 0, or a reference
            whose median is infinite.
    """
    sides = {name: np.asarray(one, float) for name, one in (("ours", ours), ("theirs", theirs))}
    for name, one in sides.items():
        if one.ndim != 1 or len(one) < 2 or not (one > 0).all():
            raise ValueError(f"{name} must be two or more numbers above 0, got {one}")
    if np.isinf(np.median(sides["theirs"])):
        raise ValueError("theirs must have a finite median, got infinity for half of the seeds")
    random = np.random.default_rng(0)
    drawn, reference = (
        np.median(random.choice(one, (draws, len(one))), axis=1) for one in sides.values()
    )
    with np.errstate(invalid="ignore"):
        low, high = np.nanquantile(drawn / reference, (0.025, 0.975), method="inverted_cdf")
    ratio = np.median(sides["ours"]) / np.median(sides["theirs"])
    return Interval(float(ratio), float(low), float(high))
