"""The process in which a student's code runs: it executes cells, calls names, sends results.

It is told what to call one case at a time and never what should come out. Whoever runs code in here
can do anything that this process can, so nothing it sends is believed: a result is only data that
the grader compares. Each request has a number drawn by lot, which the reply has to repeat; a reply
that was written in advance does not know it.
"""

from __future__ import annotations

import ast
import os
import sys
import types

import torch

from gradebox.inside import source, wire
from vitcheck.cases import CaseError, from_parts, run_case

TEXT = 300  # characters of an error


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


class Notebook:
    """The names that cells leave behind, as in a running notebook."""

    def __init__(self) -> None:
        self.given: dict = {}
        self.fresh()

    def fresh(self) -> None:
        """Begin anew, with the given set-up only."""
        module = types.ModuleType("__main__")
        module.__dict__.update(check=lambda *_, **__: None)
        module.__dict__.update(self.given)
        sys.modules["__main__"] = module
        self.names = module.__dict__

    def set_up(self, sources: list[str]) -> None:
        """The instructor's own cells: an error in them is not the student's."""
        for code in sources:
            exec(compile(source.parse(code), "<set-up>", "exec", dont_inherit=True), self.names)
        self.given = {k: v for k, v in self.names.items() if not k.startswith("__")}

    def reference(self, code: str) -> None:
        """The right answer of an earlier question, over the student's own."""
        exec(compile(source.parse(code), "<given>", "exec", dont_inherit=True), self.names)

    def run(self, code: str, *, whole: bool, taken: set[str]) -> str | None:
        """Run a cell statement by statement, past those that fail; gives the first error in words.

        Not ``whole``: only its definitions, and of the names in ``taken`` those that are free.
        """
        try:
            tree = source.parse(code)
            flags = source.future_flags(tree)
        except (SyntaxError, ValueError, AttributeError, RecursionError, MemoryError) as error:
            return in_words(error)
        first, there = None, taken & set(self.names)
        for node in tree.body if whole else source.only_definitions(tree, there):
            try:
                part = compile(ast.Module([node], []), "<cell>", "exec", flags, dont_inherit=True)
                exec(part, self.names)
            except BaseException as error:
                first = first or f"line {node.lineno}: {in_words(error)}"
        return first


def in_words(error: BaseException) -> str:
    """The name of an error and what it says; an error may refuse to say anything."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}"[:TEXT] if text else type(error).__name__


def answer(notebook: Notebook, request: dict, blob: bytes) -> dict:
    """Carry one request out; what a call returned stands under ``result``, in a list."""
    match request["do"]:
        case "fresh":
            notebook.fresh()
        case "reference":
            try:
                notebook.reference(request["source"])
            except BaseException as error:
                return {"error": in_words(error)}
        case "cell":
            taken = set(request["taken"])
            error = notebook.run(request["source"], whole=request["whole"], taken=taken)
            return {"error": error}
        case "missing":
            return {"missing": [name for name in request["names"] if name not in notebook.names]}
        case "call":
            torch.manual_seed(0)
            case = from_parts(request["case"].encode(), blob).questions[0].cases[0]
            try:
                return {"result": [run_case(notebook.names, case)]}
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
