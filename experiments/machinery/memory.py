"""How much memory does one call need? (Linux: VmHWM, after a reset, in a process of its own)"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path


def peak_mib(prepare: Callable[[], Callable[[], object]]) -> float:
    """MiB that one call adds at its peak to a process where nothing of this size ran before.

    Args:
        prepare: called in that process; loads what is loaded once, makes the input, and returns
            the call.
    """
    receive, send = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_measure, args=(prepare, send))
    child.start()
    peak = receive.recv()
    child.join()
    return peak


def _measure(prepare: Callable[[], Callable[[], object]], send: Connection) -> None:
    call = prepare()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status_kib("VmRSS")
    call()
    send.send((_status_kib("VmHWM") - before) / 1024)


def _status_kib(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(entry))
