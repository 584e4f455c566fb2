"""When a time limit is over: it counts seconds of the processor, so load costs no points."""

PATIENCE = 10  # of the clock's seconds for one of the processor's, however busy the machine is
ASLEEP = 0.02  # a process that waits for its turn gets more of the clock's time than this


def over(
    limit_s: float,
    processor_s: float,
    clock_s: float,
    waited_s: float | None = None,
    patience: float = PATIENCE,
) -> bool:
    """Has code used up ``limit_s``? It has had so much of the processor; or it slept for twice the
    time; or it has taken ``patience`` times as long by the clock, awake or not.

    Asleep is who neither runs nor has ``waited_s`` for its turn; where the system does not say how
    long that was, who hardly runs at all.
    """
    if waited_s is None:
        asleep = clock_s >= 2 * limit_s and processor_s < ASLEEP * clock_s
    else:
        asleep = clock_s - processor_s - waited_s >= 2 * limit_s
    return asleep or processor_s >= limit_s or clock_s >= patience * limit_s
