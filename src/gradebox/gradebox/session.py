"""One submission's requests to its worker, and what to do when the worker is lost.

Whatever goes wrong in the worker loses the request at hand and nothing else: the next request finds
a fresh worker, brought to where the last one was by the same steps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from gradebox.inside import wire
from gradebox.inside.clock import over
from gradebox.process import LateError, LostError, SpentError, Worker, fork_server_for, since
from gradebox.sandbox import Limits, Sandbox
from vitcheck.cases import Assignment as Cases
from vitcheck.cases import Case, Question, to_parts


@dataclass(frozen=True)
class Answer:
    """What a call gave: a value, and its inputs as they were afterwards, or an error in the
    worker's words."""

    value: Any = None
    inputs: tuple = ()
    error: str | None = None


@dataclass
class Used:
    """What a submission has used: seconds of the processor, those for reading what it gave, too,
    and of the clock while it was waited for, those in which it waited for its turn (None: nobody
    knows), lost workers, and the most memory of a worker."""

    cpu_s: float = 0.0
    clock_s: float = 0.0
    waited_s: float | None = 0.0
    restarts: int = 0
    memory_mb: float = 0.0


class Session:
    """All requests of one submission, after what it has ``used`` before."""

    def __init__(
        self, sandbox: Sandbox, limits: Limits, set_up: list[str], used: Used | None = None
    ):
        self.sandbox, self.limits, self.set_up = sandbox, limits, set_up
        self.used = used or Used()
        self.worker: Worker | None = None
        self.steps: list[dict] = []  # what a fresh worker has to be told again

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def fresh(self) -> None:
        """Begin anew, in a new process in which there is nothing but the given set-up."""
        self.steps = []
        self._drop()
        self._ready()

    def cell(
        self,
        source: str,
        seconds: float,
        *,
        whole: bool = True,
        hurry: bool = False,
    ) -> tuple[str | None, list[int]]:
        """Run a cell of the student's, or its definitions. In a ``hurry`` it has as many seconds by
        the clock. When it is run again in a fresh worker, what was stopped has a moment.

        Returns:
            Its first error, in words, and the numbers of the statements that were stopped.
        """
        step = {"do": "cell", "source": source, "seconds": seconds, "whole": whole, "hurry": hurry}
        reply, _ = self._ask({**step, "late": []}, b"", hard(seconds))
        stopped = numbers(reply.get("stopped"))
        self.steps.append({**step, "late": stopped})
        return in_words(reply.get("error")), stopped

    def give(self, sources: list[str], names: list[str]) -> None:
        """Define these names by the right answers, whatever the student's cells make of them."""
        step = {"do": "give", "sources": sources, "names": names}
        reply, _ = self._ask(step, b"", hard(self.limits.cell_s))
        if "error" in reply:
            raise LostError("the right answers could not be put in")
        self.steps.append(step)

    def missing(self, names: list[str]) -> list[str]:
        """Those of the names that nothing has defined yet."""
        reply, _ = self._ask({"do": "missing", "names": names}, b"", self.limits.call_s)
        said = reply.get("missing")
        return [name for name in names if isinstance(said, list) and name in said]

    def call(self, case: Case) -> Answer:
        """Call the answer as ``case`` says. Only the call itself crosses."""
        words, tensors = as_call(case)
        request = {"do": "call", "case": words.decode(), "seconds": self.limits.call_s}
        reply, blob = self._ask(request, tensors, hard(self.limits.call_s))
        if reply.get("late") is True:
            raise LateError
        if "error" in reply:
            return Answer(error=in_words(reply["error"]) or "an error")
        began = time.thread_time()
        try:
            found = wire.unpack_value(reply.get("value"), blob)
        except wire.WireError as error:
            raise LostError(str(error)) from None
        finally:
            self.used.cpu_s += time.thread_time() - began
        if not (isinstance(found, tuple) and len(found) == 2):
            raise LostError("a reply that holds no value")
        return Answer(*found)

    def spent(self) -> float:
        """Seconds of the processor that it has used so far."""
        return self.used.cpu_s + (self.worker.look() if self.worker else 0.0)

    def _ask(self, request: dict, blob: bytes, seconds: float) -> tuple[dict, bytes]:
        return self._told(self._ready(), request, blob, seconds)

    def _told(
        self, worker: Worker, request: dict, blob: bytes, seconds: float
    ) -> tuple[dict, bytes]:
        left = self.limits.total_s - self.used.cpu_s - worker.cpu_s
        used = self.used
        if over(self.limits.total_s, self.limits.total_s - left, used.clock_s, used.waited_s):
            raise SpentError("the submission took too long altogether")
        began, ours, waited = time.monotonic(), time.thread_time(), worker.waited_s
        try:
            return worker.ask(request, blob, min(seconds, left))
        except LostError:
            self.used.restarts += 1
            self._drop()
            raise
        finally:
            self.used.clock_s += time.monotonic() - began
            self.used.cpu_s += time.thread_time() - ours
            more = since(worker.waited_s, waited)
            used.waited_s = None if more is None or used.waited_s is None else used.waited_s + more

    def _ready(self) -> Worker:
        """The worker; a fresh one, brought to the same point, where the last one was lost."""
        if self.worker is None:
            if self.used.restarts > self.limits.restarts:
                raise SpentError("the submission ended too many processes")
            server = fork_server_for(self.sandbox, self.set_up, self.limits.start_s)
            worker = self.worker = Worker(server, self.limits)
            for step in self.steps:
                self._told(worker, step, b"", hard(step.get("seconds", self.limits.cell_s)))
            return worker
        return self.worker

    def _drop(self) -> None:
        if self.worker is not None:
            worker, self.worker = self.worker, None
            worker.end()
            self.used.cpu_s += worker.cpu_s
            self.used.memory_mb = max(self.used.memory_mb, worker.memory_mb)


_calls: dict[int, tuple[Case, tuple[bytes, bytes]]] = {}  # by the case's id; it is kept with it


def as_call(case: Case) -> tuple[bytes, bytes]:
    """Only the call itself, as it crosses; written once for all notebooks."""
    if id(case) not in _calls:
        question = Question("question", "", 0, 0, 0, "", cases=(case.only_call(),))
        _calls[id(case)] = case, to_parts(Cases("", "", "", (question,)))
    return _calls[id(case)][1]


def hard(seconds: float) -> float:
    """When a worker is given up that should have stopped by itself after ``seconds``."""
    return 1.5 * seconds + 1


def numbers(said: object) -> list[int]:
    """The numbers of statements as the worker reports them; whatever else it says is none."""
    return [one for one in said if isinstance(one, int)][:1000] if isinstance(said, list) else []


def in_words(said: object) -> str | None:
    """An error as the worker reports it, cut to one short text; None when there was none. What is
    no text, no worker of ours wrote, and it may be nested too deeply to be put into words."""
    if said is None:
        return None
    if not isinstance(said, str):
        return "an error"
    return "".join(c if c.isprintable() else " " for c in said[:300])
