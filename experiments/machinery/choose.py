"""Which value of a setting do the runs use? Trials decide, on validation images, and are kept.

An experiment declares a `Choice`. Its plan, in plain values, and its trials go into the record, so
that whoever reads it can follow the search step by step; `verify` does.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A search for one setting, for each arm of an experiment, before its runs.

    Each value of the grid is tried in short trials, then the best of them at full length. While
    the best is the least or the largest that was tried, the next one beyond it is tried too.

    Args:
        grid: the setting and the first values to try, ascending, each as many times the one before:
            {"learning_rate": (1e-3, 2e-3, 4e-3)}.
        trial: `trial(condition, seed, log, scale, length=..., learning_rate=...)` trains for that
            share of a run's steps and returns what it measures on validation images, by name. It
            may not look at test images.
        by: which of these numbers decides; the lowest is the best.
        seed: of all trials; none that the runs use.
        length: of a short trial, as a share of a run's steps.
        finalists: how many values are tried at full length; 0 decides by the short trials.
        limit: how many values are tried for one arm at most.
        arm: for a condition, the one whose trials choose for it; without it each has its own.
    """

    grid: dict[str, Sequence[float]]
    trial: Callable[..., dict[str, float]]
    by: str = "validation_loss"
    seed: int = 100
    length: float = 0.5
    finalists: int = 2
    limit: int = 8
    arm: Callable[[dict], dict] = dict

    def __post_init__(self) -> None:
        if len(self.grid) != 1:
            raise ValueError(f"grid must have one setting, got {list(self.grid)}")
        ((name, values),) = self.grid.items()
        if len(values) < 2 or list(values) != sorted(set(values)) or values[0] <= 0:
            raise ValueError(f"grid: {name} must have two values or more, ascending, got {values}")
        if not 0 < self.length <= 1:
            raise ValueError(f"length must be above 0 and at most 1, got {self.length}")
        if self.limit < len(values):
            raise ValueError(f"limit must be at least the {len(values)} values of the grid")

    @property
    def setting(self) -> str:
        """The name of what is chosen."""
        return next(iter(self.grid))

    def plan(self, conditions: Sequence[dict]) -> dict:
        """The search in plain values, as it stands in the record."""
        arms = []
        for condition in conditions:
            if (arm := self.arm(condition)) not in arms:
                arms.append(arm)
        plan = {"setting": self.setting, "grid": list(self.grid[self.setting]), "by": self.by}
        for name in ("seed", "length", "finalists", "limit"):
            plan[name] = getattr(self, name)
        return {**plan, "arms": arms}


def several(trial: Callable[..., dict[str, float]], seeds: int) -> Callable[..., dict[str, float]]:
    """A trial for `Choice`: the means of so many trials, with its seed and the next ones.

    On a task that can be solved completely, one seed prefers the largest learning rate that happens
    to work: its loss is a hair smaller there, and another seed fails. Where one training diverges,
    so does the mean. None of the seeds may be one of a run.
    """

    def together(condition: dict, seed: int, *given: Any, **tried: Any) -> dict[str, float]:
        found = [trial(condition, seed + i, *given, **tried) for i in range(seeds)]
        return {name: sum(one[name] for one in found) / seeds for name in found[0]}

    return together


def search(plan: dict, do: Callable[[list[dict]], list[dict]]) -> list[dict]:
    """All trials of a search, in its order.

    Args:
        plan: what `Choice.plan` returns.
        do: takes the trials that are wanted next, each with its condition, seed, length and value,
            and returns them done: with "metrics", where the deciding number is None after a
            training that diverged.
    """
    done: list[dict] = []
    while next_ones := wanted(plan, done):
        done += do(next_ones)
    return done


def wanted(plan: dict, trials: Sequence[dict]) -> list[dict]:
    """The trials to do next, after these; none when the search is at its end."""
    return [
        {"condition": arm, "seed": plan["seed"], "length": length, "value": value}
        for arm in plan["arms"]
        for length, value in _wanted_of(plan, *_scores(plan, trials, arm))
    ]


def decide(plan: dict, trials: Sequence[dict]) -> list[dict]:
    """For each arm the value that won, and whether the search ended at the edge of what it tried.

    Raises:
        ValueError: these are not the trials that the plan asks for, each of them and no other.
    """
    key = ("condition", "seed", "length", "value")

    def find(next_ones: list[dict]) -> list[dict]:
        found = [t for one in next_ones for t in trials if all(t[k] == one[k] for k in key)]
        if len(found) != len(next_ones):
            raise ValueError(
                f"the trials do not follow the search: of {next_ones} some are missing"
            )
        return found

    if len(search(plan, find)) != len(trials):
        raise ValueError("the trials do not follow the search: there are some that it did not want")
    winners = []
    for arm in plan["arms"]:
        short, full = _scores(plan, trials, arm)
        best, tried = _best(full if plan["finalists"] else short), {*short, *full}
        winners.append({"condition": arm, "value": best, "at_edge": _edge(best, tried)})
    return winners


def _scores(plan: dict, trials: Sequence[dict], arm: dict) -> tuple[dict, dict]:
    """Value -> score of the short trials of an arm, and of those at full length."""
    scores: dict[float, dict[float, float]] = {plan["length"]: {}, 1.0: {}}
    for trial in trials:
        if trial["condition"] == arm:
            score = trial["metrics"][plan["by"]]
            scores[trial["length"]][trial["value"]] = math.inf if score is None else score
    return scores[plan["length"]], scores[1.0]


def _wanted_of(plan: dict, short: dict, full: dict) -> list[tuple[float, float]]:
    """(length, value) of the next trials of one arm."""
    if missing := [value for value in plan["grid"] if value not in short]:
        return [(plan["length"], value) for value in missing]
    best = _best(short)
    if _edge(best, short) and len(short) < plan["limit"]:
        return [(plan["length"], _beyond(best, short))]
    finalists = sorted(short, key=lambda value: (short[value], value))[: plan["finalists"]]
    if missing := [value for value in finalists if value not in full]:
        return [(1.0, value) for value in missing]
    tried = {*short, *full}
    if finalists and _edge(_best(full), tried) and len(tried) < plan["limit"]:
        return [(1.0, _beyond(_best(full), tried))]
    return []


def _best(scores: dict[float, float]) -> float:
    return min(scores, key=lambda value: (scores[value], value))


def _edge(value: float, tried: Collection[float]) -> bool:
    return value in (min(tried), max(tried))


def _beyond(edge: float, tried: Collection[float]) -> float:
    """The next value outside, by the ratio of the last two, to two digits."""
    neighbour = sorted(tried)[1 if edge == min(tried) else -2]
    return float(f"{edge * edge / neighbour:.2g}")
