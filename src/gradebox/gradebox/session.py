"""One submission's requests to its worker, and what to do when the worker is lost.

Whatever goes wrong in the worker loses the request at hand and nothing else: the next request finds
a fresh worker, brought to where the last one was by the same steps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from gradebox.inside import wire
from gradebox.process import LostError, SpentError, Worker, nursery_for
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


class Session:
    """All requests of one submission. ``peak_mb``: the most memory that a worker of it took."""

    def __init__(self, sandbox: Sandbox, limits: Limits, set_up: list[str]):
        self.sandbox, self.limits, self.set_up = sandbox, limits, set_up
        self.worker: Worker | None = None
        self.steps: list[dict] = []  # what a fresh worker has to be told again
        self.restarts, self.peak_mb = 0, 0.0
        self.deadline = 0.0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def fresh(self) -> None:
        """Begin anew, in a new process in which there is nothing but the given set-up."""
        self.steps = []
        self._drop()
        self._ready()
        self._until(0)

    def cell(self, source: str, seconds: float, *, whole: bool = True) -> str | None:
        """Run a cell of the student's, or its definitions; gives its first error, in words."""
        step = {"do": "cell", "source": source, "seconds": seconds, "whole": whole}
        reply, _ = self._ask(step, b"", hard(seconds))
        self.steps.append(step)
        return in_words(reply.get("error"))

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
        """Call the answer as ``case`` says. Only the call itself crosses: neither what it should
        give, nor whether it is public, nor what it is worth."""
        bare = Case(
            id="case",
            stage="",
            name=case.name,
            want=None,
            points=0,
            is_value=case.is_value,
            make=case.make,
            args=case.args,
            kwargs=case.kwargs,
        )
        question = Question("question", "", 0, 0, 0, "", cases=(bare,))
        words, tensors = to_parts(Cases("", "", "", (question,)))
        request = {"do": "call", "case": words.decode(), "seconds": self.limits.call_s}
        reply, blob = self._ask(request, tensors, hard(self.limits.call_s))
        if reply.get("late") is True:
            raise LostError("it did not end in time")
        if "error" in reply:
            return Answer(error=in_words(reply["error"]) or "an error")
        try:
            found = wire.unpack_value(reply.get("value"), blob)
        except wire.WireError as error:
            raise LostError(str(error)) from None
        if not (isinstance(found, tuple) and len(found) == 2):
            raise LostError("a reply that holds no value")
        return Answer(*found)

    def _ask(self, request: dict, blob: bytes, seconds: float) -> tuple[dict, bytes]:
        worker = self._ready()
        try:
            return worker.ask(request, blob, self._until(seconds))
        except LostError:
            self.restarts += 1
            self._drop()
            raise

    def _ready(self) -> Worker:
        """The worker; a fresh one, brought to the same point, where the last one was lost."""
        if self.worker is None:
            if self.restarts > self.limits.restarts:
                raise SpentError("the submission ended too many processes")
            nursery = nursery_for(self.sandbox, self.set_up, self.limits.start_s)
            self.worker = Worker(nursery, self.limits)
            self.deadline = self.deadline or time.monotonic() + self.limits.total_s
            try:
                for step in self.steps:
                    seconds = step.get("seconds", self.limits.cell_s)
                    self.worker.ask(step, b"", self._until(hard(seconds)))
            except LostError:
                self.restarts += 1
                self._drop()
                raise
        return self.worker

    def _until(self, seconds: float) -> float:
        now = time.monotonic()
        if now >= self.deadline:
            raise SpentError("the submission took too long altogether")
        return min(now + seconds, self.deadline)

    def _drop(self) -> None:
        if self.worker is not None:
            self.worker.end()
            self.peak_mb = max(self.peak_mb, self.worker.memory_mb)
            self.worker = None


def hard(seconds: float) -> float:
    """When a worker is given up that should have stopped by itself after ``seconds``."""
    return 1.5 * seconds + 1


def in_words(said: object) -> str | None:
    """An error as the worker reports it, cut to one short text; None when there was none. What is
    no text, no worker of ours wrote, and it may be nested too deeply to be put into words."""
    if said is None:
        return None
    if not isinstance(said, str):
        return "an error"
    return "".join(c if c.isprintable() else " " for c in said[:300])
