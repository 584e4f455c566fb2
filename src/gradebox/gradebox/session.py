"""The grader's side of one submission's worker: ask, wait so long and no longer, start anew.

Whatever goes wrong in the worker loses the request at hand and nothing else: the next request finds
a fresh worker, brought to where the last one was by the same steps.
"""

from __future__ import annotations

import os
import secrets
import selectors
import time
from dataclasses import dataclass
from typing import Any

from gradebox.inside import wire
from gradebox.sandbox import Limits, Sandbox
from vitcheck.cases import Assignment as Cases
from vitcheck.cases import Case, Question, to_parts

START = "the worker could not start"


class LostError(Exception):
    """A request has no answer; the message says why, in words that a student may read."""


class SpentError(LostError):
    """The submission has used up its time or its restarts; no request is answered any more."""


class BrokenError(RuntimeError):
    """The worker does not start, or the package's own code fails: no submission's fault."""


@dataclass(frozen=True)
class Answer:
    """What a call gave: a value, or an error in the worker's words."""

    value: Any = None
    error: str | None = None


class Worker:
    """One process in a sandbox. Any failure ends it; :meth:`ask` then raises LostError."""

    def __init__(self, sandbox: Sandbox, limits: Limits, set_up: list[str]):
        self.limits = limits
        self.process = sandbox.start(limits)
        for stream in (self.process.stdin, self.process.stdout):
            os.set_blocking(stream.fileno(), False)
        try:
            self.ask({"sources": set_up}, b"", time.monotonic() + limits.start_s)
        except LostError as lost:
            self.end()
            raise BrokenError(f"{START}: {lost}. {self._last_words()}") from None

    def ask(self, request: dict, blob: bytes, deadline: float) -> tuple[dict, bytes]:
        """Send a request and read its reply before ``deadline``.

        Raises:
            LostError: too late, too large, not the reply to this request, or the process ended.
        """
        number = secrets.token_hex(8)
        try:
            self._write(wire.pack({**request, "number": number}, blob), deadline)
            prefix = self._read(wire.PREFIX.size, deadline)
            text, size = wire.sizes(prefix, self.limits.reply_mb * 2**20)
            reply = wire.header(self._read(text, deadline))
            if reply.get("number") != number:
                raise wire.WireError("a reply that answers another request")
            return reply, self._read(size, deadline)
        except wire.WireError as error:
            self.end()
            raise LostError(str(error)) from None
        except OSError:  # its end of a pipe is closed
            self.end()
            raise LostError("it ended the process") from None
        except LostError:
            self.end()
            raise

    def end(self) -> None:
        """Kill whatever is left of it."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """The same, for good."""
        self.end()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def _write(self, frame: bytes, deadline: float) -> None:
        rest, pipe = memoryview(frame), self.process.stdin.fileno()
        while rest:
            self._wait(pipe, selectors.EVENT_WRITE, deadline)
            rest = rest[os.write(pipe, rest[:65536]) :]

    def _read(self, size: int, deadline: float) -> bytes:
        parts, pipe = [], self.process.stdout.fileno()
        while size:
            self._wait(pipe, selectors.EVENT_READ, deadline)
            part = os.read(pipe, min(size, 2**20))
            if not part:
                raise LostError("it ended the process")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait(self, pipe: int, event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise LostError("it did not end in time")

    def _last_words(self) -> str:
        os.set_blocking(self.process.stderr.fileno(), False)
        said = (self.process.stderr.read(20_000) or b"").decode(errors="replace").strip()
        return said.splitlines()[-1][:300] if said else ""


class Session:
    """All requests of one submission. ``peak_mb`` is what its workers said of their memory."""

    def __init__(self, sandbox: Sandbox, limits: Limits, set_up: list[str]):
        self.sandbox, self.limits, self.set_up = sandbox, limits, set_up
        self.worker: Worker | None = None
        self.steps: list[dict] = []  # what a fresh worker has to be told again
        self.starts, self.peak_mb = 0, 0.0
        self.deadline = 0.0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def fresh(self) -> None:
        """Leave nothing but the given set-up in the names."""
        self.steps = []
        self._ask({"do": "fresh"}, b"", self.limits.call_s)

    def cell(self, source: str, *, whole: bool, taken: list[str]) -> str | None:
        """Run a cell of the student's, or its definitions; gives its first error, in words."""
        step = {"do": "cell", "source": source, "whole": whole, "taken": taken}
        reply, _ = self._ask(step, b"", self.limits.cell_s)
        self.steps.append(step)
        return in_words(reply.get("error"))

    def reference(self, source: str) -> None:
        """Put the right answer of a question over the student's."""
        step = {"do": "reference", "source": source}
        reply, _ = self._ask(step, b"", self.limits.cell_s)
        if "error" in reply:
            raise LostError("the right answer could not be put in")
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
        request = {"do": "call", "case": words.decode()}
        reply, blob = self._ask(request, tensors, self.limits.call_s)
        if "error" in reply:
            return Answer(error=in_words(reply["error"]) or "an error")
        try:
            return Answer(wire.unpack_value(reply.get("value"), blob))
        except wire.WireError as error:
            raise LostError(str(error)) from None

    def _ask(self, request: dict, blob: bytes, seconds: float) -> tuple[dict, bytes]:
        worker = self._ready()
        try:
            reply, blob = worker.ask(request, blob, self._until(seconds))
        except LostError:
            self._drop()
            raise
        peak = reply.get("peak_kb")
        if isinstance(peak, int) and 0 <= peak < 2**40:
            self.peak_mb = max(self.peak_mb, peak / 1024)
        return reply, blob

    def _ready(self) -> Worker:
        """The worker; a fresh one, brought to the same point, where the last one was lost."""
        if self.worker is None:
            if self.starts > self.limits.restarts:
                raise SpentError("the submission ended too many processes")
            began = time.monotonic()
            self.worker = Worker(self.sandbox, self.limits, self.set_up)
            self.starts += 1
            now = time.monotonic()
            # a start takes as long as the machine takes: none of it is the submission's time
            self.deadline = (
                self.deadline + now - began if self.deadline else now + self.limits.total_s
            )
            try:
                for step in self.steps:
                    self.worker.ask(step, b"", self._until(self.limits.cell_s))
            except LostError:
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
            self.worker.close()
            self.worker = None


def in_words(said: object) -> str | None:
    """An error as the worker reports it, cut to one short text; None when there was none."""
    if said is None:
        return None
    return "".join(c if c.isprintable() else " " for c in str(said)[:300])
