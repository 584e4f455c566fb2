"""A trial that several seeds decide.

On a task that can be solved completely, one seed prefers the largest learning rate that happens to
work: its loss is a hair smaller there, and another seed fails.
"""

from collections.abc import Callable
from typing import Any

from experiments.machinery.experiment import Log


def several(trial: Callable[..., dict[str, float]], seeds: int) -> Callable[..., dict[str, float]]:
    """The mean of so many trials, with a trial's seed and the next ones.

    Args:
        trial: as `Choice` takes it.
        seeds: how many; none of them may be one of a run.

    Returns:
        A trial for `Choice`: the means of what the single ones measure, by name. Where one
        training diverges, so does the mean.
    """

    def together(
        condition: dict, seed: int, log: Log, scale: float, **tried: Any
    ) -> dict[str, float]:
        found = [trial(condition, seed + i, log, scale, **tried) for i in range(seeds)]
        return {name: sum(one[name] for one in found) / seeds for name in found[0]}

    return together
