"""How long the code of a master may take: without an end, it would be waited for forever."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 60.0  # of the processor, for one cell or one call: a busy machine makes no difference


class EndlessError(ValueError):
    """Code of a master was stopped; the message says where it stood."""


@contextmanager
def patience() -> Iterator[None]:
    """Stop what takes longer than ``SECONDS``. Needs the main thread and a system with
    alarms; without, nothing is stopped.

    Raises:
        EndlessError: it took longer.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, frame: FrameType | None) -> None:
        where = f" (stopped in {frame.f_code.co_name}, line {frame.f_lineno})" if frame else ""
        raise EndlessError(f"it did not end within {SECONDS:g} s of the processor{where}")

    before = signal.signal(signal.SIGPROF, stop)
    rest = signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, *rest)
        signal.signal(signal.SIGPROF, before)
