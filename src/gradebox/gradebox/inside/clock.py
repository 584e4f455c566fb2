"""When a time limit is over: it counts seconds of the processor, so load costs no points."""

from __future__ import annotations

PATIENCE = 10  # of the clock's seconds for one of the processor's, however busy the machine is
ASLEEP = 0.02  # a process that waits for its turn gets more of the clock's time than this


def over(limit_s: float, processor_s: float, clock_s: float, patience: float = PATIENCE) -> bool:
    """Has code used up ``limit_s``? It has had so much of the processor; or it sleeps, for twice
    the time; or it has taken ``patience`` times as long by the clock, awake or not."""
    asleep = clock_s >= 2 * limit_s and processor_s < ASLEEP * clock_s
    return asleep or processor_s >= limit_s or clock_s >= patience * limit_s
