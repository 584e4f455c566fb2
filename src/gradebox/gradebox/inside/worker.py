"""The process in which a student's code runs: it executes cells, calls names, sends results.

It is told what to call one case at a time and never what should come out. Whoever runs code in here
can do anything that this process can, so nothing it sends is believed: a result is only data that
the grader compares. Each request has a number drawn by lot, which the reply has to repeat; a reply
that was written in advance does not know it.
"""

import ast
import linecache
import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager

import torch

import vitcheck
from gradebox.inside import source, wire
from gradebox.inside.clock import PATIENCE, over
from vitcheck.cases import CaseError, call_case, from_parts

TEXT = 300  # characters of an error
NOT_HERE = " (when marked: no other files, network, processes or sockets, so no asyncio)"
LEAST = 0.3  # seconds that a statement has, however long those before it took
LOOK = 0.1  # seconds of the clock between two looks at the time


class LateError(BaseException):
    """The student's code took too long. Not an Exception: ``except Exception`` lets it pass."""


@contextmanager
def at_most(seconds: float, patience: float = PATIENCE) -> Iterator[None]:
    """Stop the block after so many seconds of the processor, where Python comes by to look; code
    that never lets Python look is ended with the process, by the grader."""
    processor, clock = time.process_time(), time.monotonic()

    def look(*_: object) -> None:
        used = time.process_time() - processor, time.monotonic() - clock
        if over(seconds, *used, patience=patience):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise LateError

    signal.signal(signal.SIGALRM, look)  # each time: the student's code may have changed it
    signal.setitimer(signal.ITIMER_REAL, LOOK, LOOK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Pipe:
    """The two ends of the grader's pipes."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies

    def read(self) -> tuple[dict, bytes]:
        text, blob = wire.PREFIX.unpack(self._exactly(wire.PREFIX.size))
        return wire.header(self._exactly(text)), self._exactly(blob)

    def write(self, frame: bytes) -> None:
        rest = memoryview(frame)
        while rest:
            rest = rest[os.write(self.replies, rest) :]

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self.requests, min(size, 2**20))
            if not part:
                os._exit(0)  # the grader has gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class NoCheck:
    """In the place of the notebook's own checks: they were run at home."""

    def __init__(self, *_: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> None:
        pass

    all = __call__


class Notebook:
    """The names that cells leave behind, as in a running notebook.

    Some names are held: whatever a cell makes of them, afterwards they are again what they were.
    """

    def __init__(self) -> None:
        self.given: dict = {}
        self.fresh()

    def fresh(self) -> None:
        """Begin anew, with the given set-up only."""
        module = types.ModuleType("__main__")
        module.__dict__.update(display=lambda *_, **__: None, check=NoCheck())
        vitcheck.Checker = NoCheck  # type: ignore[misc,assignment]
        module.__dict__.update(self.given)
        sys.modules["__main__"] = module
        self.names, self.cells = module.__dict__, 0
        self.held: dict = {}
        self.parts: list[tuple[type, dict]] = []

    def set_up(self, sources: list[str]) -> None:
        """The instructor's own cells: an error in them is not the student's."""
        for code in sources:
            exec(compile(source.parse(code), "<set-up>", "exec", dont_inherit=True), self.names)
        self.given = {k: v for k, v in self.names.items() if not k.startswith("__")}

    def hold(self, names: dict) -> None:
        """Hold these names; of a class its attributes too."""
        self.held.update(names)
        self.parts += [(one, parts(one)) for one in names.values() if isinstance(one, type)]
        self.names.update(names)

    def give(self, sources: list[str], names: list[str]) -> None:
        """Right answers to other questions, held. They run in names of their own, where nothing of
        the student's changes what they do."""
        own = dict(self.given)
        for code in sources:
            exec(compile(source.parse(code), "<given>", "exec", dont_inherit=True), own)
        self.hold({name: own[name] for name in names})

    def restore(self) -> None:
        """Put back what is held."""
        for name, value in self.held.items():
            if self.names.get(name) is not value:
                self.names[name] = value
        for cls, kept in self.parts:
            now = parts(cls)
            for name in now.keys() - kept.keys():
                delattr(cls, name)
            for name, value in kept.items():
                if now.get(name) is not value:
                    setattr(cls, name, value)

    def run(
        self, code: str, seconds: float, *, whole: bool, late: list[int], hurry: bool
    ) -> tuple[str | None, list[int]]:
        """Run a cell statement by statement, past those that fail; gives the first error in words,
        and which statements were stopped.

        Statements have ``seconds`` together, but those after an endless one a moment each. In a
        ``hurry`` the seconds are also the clock's. What was stopped in a worker that was lost since
        is ``late`` and has a moment. Not ``whole``: only the definitions.
        """
        self.cells += 1
        name = f"<cell {self.cells}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            tree = source.parse(code)
            flags = source.future_flags(tree)
        except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError) as error:
            return in_words(error), []
        first, until, stopped = None, time.process_time() + seconds, []
        for i, node in enumerate(tree.body if whole else source.only_definitions(tree)):
            words, left = None, max(LEAST, until - time.process_time())
            try:
                part = compile(ast.Module([node], []), name, "exec", flags, dont_inherit=True)
                with at_most(LEAST if i in late else left, 1 if hurry else PATIENCE):
                    exec(part, self.names)
            except LateError:
                stopped.append(i)
                words = f"stopped, because a cell has {seconds:g} s"
                words += " by the clock, when it is run first" if hurry else ""
            except BaseException as error:
                words = in_words(error)
            if words:
                first = first or f"line {node.lineno}: {words}"
            self.restore()
        return first, stopped


def parts(cls: type) -> dict:
    """A class's own methods and values; of Python's own names only what can be called."""
    return {k: v for k, v in vars(cls).items() if not k.startswith("__") or callable(v)}


def in_words(error: BaseException) -> str:
    """The name of an error and what it says, and of what the system refuses, what is not possible
    here; an error may refuse to say anything."""
    name, text, why = type(error).__name__, "", ""
    try:
        text, both = str(error), (error, error.__context__)
        of_the_system = any(isinstance(one, OSError) and one.errno for one in both)
        why = NOT_HERE if of_the_system or "not permitted" in text else ""
    except BaseException:
        pass
    return f"{name}: {text}"[: TEXT - len(why)] + why if text else name


def answer(notebook: Notebook, request: dict, blob: bytes) -> dict:
    """Carry one request out; what a call returned stands under ``result``, in a list."""
    match request["do"]:
        case "fresh":
            notebook.fresh()
        case "give":
            try:
                notebook.give(request["sources"], request["names"])
            except BaseException as error:
                return {"error": in_words(error)}
        case "cell":
            how = {name: request[name] for name in ("whole", "late", "hurry")}
            found = notebook.run(request["source"], request["seconds"], **how)
            return dict(zip(("error", "stopped"), found, strict=True))
        case "missing":
            return {"missing": [name for name in request["names"] if name not in notebook.names]}
        case "call":
            torch.default_generator.manual_seed(0)  # torch's own asks all devices: 1 ms
            case = from_parts(request["case"].encode(), blob).questions[0].cases[0]
            try:
                with at_most(request["seconds"]):
                    return {"result": [call_case(notebook.names, case)]}
            except LateError:
                return {"error": "it did not end in time", "late": True}
            except CaseError as error:
                return {"error": str(error)[:TEXT]}
            except BaseException as error:
                return {"error": in_words(error)}
    return {}


def reply(number: str, found: dict) -> bytes:
    if "result" not in found:
        return wire.pack({"number": number, **found})
    try:
        return wire.pack_value({"number": number}, found["result"][0])
    except BaseException as error:
        return wire.pack({"number": number, "error": in_words(error)})


def work(requests: int, replies: int, notebook: Notebook) -> None:
    """Answer until the grader closes its end of the pipe."""
    pipe = Pipe(requests, replies)
    while True:
        request, blob = pipe.read()
        pipe.write(reply(request["number"], answer(notebook, request, blob)))
