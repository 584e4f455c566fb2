"""How long do some calls take? In each round all take turns, to and fro.

Times are those of the process's only thread, so that other programs hardly enter.
"""

import statistics
import time
from collections.abc import Callable, Mapping

Calls = Mapping[str, Callable[[], object]]


def turns(
    calls: Calls,
    rounds: int,
    *,
    at_least: float = 0.0,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, list[float]]:
    """Seconds of each call in each round, by its name.

    Args:
        calls: what is timed; each is called once before, to warm up.
        rounds: how often each has its turn.
        at_least: seconds; what takes less is repeated for about so long, and the mean counts.
        clock: gives seconds.
    """

    def seconds(call: Callable[[], object], repeats: int = 1) -> float:
        start = clock()
        for _ in range(repeats):
            call()
        return (clock() - start) / repeats

    repeats = {n: max(1, round(at_least / seconds(call))) for n, call in calls.items()}
    took: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            took[name].append(seconds(calls[name], repeats[name]))
    return took


def milliseconds(calls: Calls, rounds: int, at_least: float = 0.0) -> dict[str, float]:
    """The median over the rounds, by the name of the call."""
    took = turns(calls, rounds, at_least=at_least)
    return {name: 1e3 * statistics.median(times) for name, times in took.items()}
