"""The processes in a sandbox, seen from outside: a fork server for each set-up, a worker for each
submission. Whatever a worker sends was written by anybody."""

from __future__ import annotations

import atexit
import os
import re
import secrets
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gradebox.inside import wire
from gradebox.inside.clock import over
from gradebox.inside.fork_server import GoneError, hear, processor_time, say
from gradebox.sandbox import BOOT, Limits, Sandbox

LOOK = 0.25  # seconds between two looks at what a worker has used


class LostError(Exception):
    """A request has no answer; the message says why, in words that a student may read."""


class LateError(LostError):
    """It took longer than it may."""

    def __init__(self) -> None:
        super().__init__("it did not end in time")


class SpentError(LostError):
    """The submission has used up its time or its restarts; no request is answered any more."""


class BrokenError(RuntimeError):
    """The worker does not start, or the package's own code fails: no submission's fault."""


class ForkServer:
    """The process that forks workers for one set-up, and the socket that leads to it."""

    def __init__(self, sandbox: Sandbox, set_up: list[str], seconds: float):
        self.sandbox, self.lock = sandbox, threading.Lock()
        self.control, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the fork server)
        with theirs:
            streams = {"stdin": theirs, "stdout": subprocess.DEVNULL, "stderr": self.errors}
            self.process = sandbox.start(BOOT, **streams)
        self.control.settimeout(seconds)
        try:
            say(self.control, {"sources": set_up})
            said, _ = hear(self.control)
        except (OSError, GoneError):
            said = {"error": self.last_words()}
        if "error" in said:
            self.close()
            raise BrokenError(f"the given set-up does not run: {said['error']}")

    def fork(self, limits: Limits, core: int | None) -> tuple[int, int, int]:
        """A worker confined to one core: its number, and our ends of its two pipes."""
        theirs, requests = os.pipe()
        replies, ours = os.pipe()
        message = {"do": "fork", "confine": self.sandbox.confinement(limits, core)}
        try:
            return self.speak(message, [theirs, ours])["pid"], requests, replies
        except BrokenError:
            os.close(requests)
            os.close(replies)
            raise
        finally:
            os.close(theirs)
            os.close(ours)

    def speak(self, message: dict, handles: Sequence[int] = ()) -> dict:
        """Say something and hear the answer, one thread at a time."""
        with self.lock:
            try:
                say(self.control, message, handles)
                return hear(self.control)[0]
            except (OSError, GoneError):
                words = self.last_words()
                self.close()
                raise BrokenError(f"the sandbox ended: {words}") from None

    def works(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.control.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def last_words(self) -> str:
        if self.errors.closed:  # another thread has said so
            return "without a word"
        self.errors.seek(0)
        said = self.errors.read(100_000).decode(errors="replace").strip()
        return said.splitlines()[-1][:300] if said else "without a word"


_servers: dict[tuple, ForkServer] = {}
_lock = threading.Lock()


def fork_server_for(sandbox: Sandbox, set_up: list[str], seconds: float) -> ForkServer:
    """The fork server of this process for that set-up; begun when it is first asked for."""
    key = (os.getpid(), sandbox, tuple(set_up))
    with _lock:
        if key not in _servers or not _servers[key].works():
            _servers[key] = ForkServer(sandbox, set_up, seconds)
        return _servers[key]


@atexit.register
def close_servers() -> None:
    """End what this process has begun."""
    for (pid, *_), found in _servers.items():
        if pid == os.getpid():
            found.close()


class Cores:
    """The cores of this machine that we may use, and how many workers are on each."""

    def __init__(self) -> None:
        here = os.sched_getaffinity(0) if sys.platform == "linux" else ()
        self.workers, self.lock = dict.fromkeys(here, 0), threading.Lock()

    def take(self) -> int | None:
        """One of those with the fewest workers, by lot: other graders may run here, too."""
        with self.lock:
            fewest = min(self.workers.values(), default=0)
            least = [core for core, workers in self.workers.items() if workers == fewest]
            core = secrets.choice(least) if least else None
            if core is not None:
                self.workers[core] += 1
            return core

    def leave(self, core: int | None) -> None:
        with self.lock:
            if core is not None:
                self.workers[core] -= 1


_cores = Cores()


def seen_from_here(ancestor: int | str, pid: int) -> str | None:
    """Our number of the process that is ``pid`` for itself, among those that ``ancestor`` began."""
    try:
        for child in Path(f"/proc/{ancestor}/task/{ancestor}/children").read_text().split():
            names = re.search(r"^NSpid:(.*)", Path(f"/proc/{child}/status").read_text(), re.M)
            if names and names[1].split()[-1] == str(pid):
                return child
            if found := seen_from_here(child, pid):
                return found
    except OSError:  # it has ended, or nobody may look
        pass
    return None


class Worker:
    """One confined process. Any failure ends it; :meth:`ask` then raises LostError."""

    def __init__(self, server: ForkServer, limits: Limits):
        self.limits, self.server, self.memory_mb, self.cpu_s = limits, server, 0.0, 0.0
        self.pid: int | None
        self.waited_s: float | None = None  # for its turn, where the system says so
        self.core = _cores.take()
        try:
            self.pid, self.requests, self.replies = server.fork(limits, self.core)
        except BrokenError:
            _cores.leave(self.core)
            raise
        self.seen = seen_from_here(server.process.pid, self.pid)
        for pipe in (self.requests, self.replies):
            os.set_blocking(pipe, False)
        try:
            self.ask({"do": "fresh"}, b"", limits.start_s)
        except LostError as lost:
            raise BrokenError(f"a worker could not be confined: {lost}") from None

    def look(self) -> float:
        """Seconds of the processor that it has used so far."""
        if self.pid is None:
            return self.cpu_s
        if self.seen is None:
            self.cpu_s = self.server.speak({"do": "clock", "pid": self.pid})["cpu_s"]
        else:
            with suppress(OSError):  # it has ended
                self.cpu_s = processor_time(int(self.seen))
                threads = f"/proc/{self.seen}/task"
                stats = [Path(threads, one, "schedstat") for one in os.listdir(threads)]
                self.waited_s = sum(int(one.read_text().split()[1]) for one in stats) / 1e9
        return self.cpu_s

    def ask(self, request: dict, blob: bytes, seconds: float) -> tuple[dict, bytes]:
        """Send a request and read its reply, for which it has ``seconds`` of the processor.

        Raises:
            LostError: too late, too large, not the reply to this request, or the process ended.
        """
        number, wait = secrets.token_hex(8), Wait(self, seconds)
        try:
            self._write(wire.pack({**request, "number": number}, blob), wait)
            prefix = self._read(wire.PREFIX.size, wait)
            text, size = wire.sizes(prefix, self.limits.reply_mb * 2**20)
            reply = wire.header(self._read(text, wait))
            if reply.get("number") != number:
                raise wire.WireError("a reply that answers another request")
            return reply, self._read(size, wait)
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
        if self.pid is not None:
            os.close(self.requests)
            os.close(self.replies)
            pid, self.pid = self.pid, None
            _cores.leave(self.core)
            used = self.server.speak({"do": "reap", "pid": pid})
            self.memory_mb, self.cpu_s = used["memory_kb"] / 1024, used["cpu_s"]

    def _write(self, frame: bytes, wait: Wait) -> None:
        rest, pipe = memoryview(frame), self.requests
        while rest:
            wait.until_ready(pipe, selectors.EVENT_WRITE)
            rest = rest[os.write(pipe, rest[:65536]) :]

    def _read(self, size: int, wait: Wait) -> bytes:
        found, pipe = bytearray(), self.replies
        while len(found) < size:
            wait.until_ready(pipe, selectors.EVENT_READ)
            part = os.read(pipe, min(size - len(found), 2**20))
            if not part:
                raise LostError("it ended the process")
            found += part
        return bytes(found)


class Wait:
    """The wait for one reply: ends with LateError when the worker has used up its ``seconds``,
    also where a little of the reply comes again and again."""

    def __init__(self, worker: Worker, seconds: float):
        self.worker, self.seconds, self.began = worker, seconds, time.monotonic()
        self.before, self.looked = worker.look(), self.began
        self.waited = worker.waited_s

    def until_ready(self, pipe: int, event: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            ready = False
            while not ready:
                ready = bool(selector.select(LOOK))
                if time.monotonic() - self.looked >= LOOK:
                    self._look()

    def _look(self) -> None:
        self.looked = time.monotonic()
        used = self.worker.look() - self.before
        waited = since(self.worker.waited_s, self.waited)
        if over(self.seconds, used, self.looked - self.began, waited):
            raise LateError


def since(now: float | None, before: float | None) -> float | None:
    """How much longer it is now, where both are known."""
    return None if now is None or before is None else max(0.0, now - before)
