"""What failed while the cells of pages ran: where, with which values, on which processor.

A check that does not hold leaves an output in its cell (``vitbook.book.checks``); a cell that broke
gets one here. Both are displayed data of a type of their own, with the sentence for a reader as
plain text. website/syntax/cells/failures.py shows them.
"""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output

from vitbook.book.checks import MIME as CHECK
from vitbook.book.checks import in_words, sentence

BROKEN = "application/vnd.vitbook.broken+json"
KINDS = (CHECK, BROKEN)
ELSEWHERE = "vitbook-elsewhere"  # in an output's metadata: it failed in a cell that is not shown
MOST = 3  # times that one check is told to fail in its cell
LONGEST = 240  # characters of an error's message that a page shows
PATH = re.compile(r"(?<![\w.:/])/(?:[\w.+@-]+/)+")
RAISED = re.compile(r"^(?:.*: )?(\w*(?:Warning|Error|Exception)): ?(.*)$", re.MULTILINE)
HERE = re.compile(r"^-+> \d+ (.*)$", re.MULTILINE)  # the line of a traceback that raised
IN_CELL = re.compile(r"^Cell In\[\d+\], line (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """A check that did not hold or a cell that broke; ``page`` is its file in the repository."""

    page: str
    line: int
    said: str

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}: {self.said}"


def failures_in(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Those outputs of a cell that say what failed."""
    return [one for one in outputs if any(kind in one.get("data", {}) for kind in KINDS)]


def at_most_some(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Of a check that fails in a loop the first times, the last of which counts the others."""
    kept: list[NotebookNode] = []
    of_line: dict[int, list[NotebookNode]] = {}
    for output in outputs:
        data = output.get("data", {}).get(CHECK)
        same = of_line.setdefault(data["line"], []) if data else []
        same.append(output)
        if len(same) <= MOST:
            kept.append(output)
    for same in of_line.values():
        if more := len(same[MOST:]):
            told = same[MOST - 1].data
            told[CHECK]["found"].append(f"and {more} times more")
            told["text/plain"] = sentence(told[CHECK]["source"], told[CHECK]["found"])
    return kept


def is_broken(notebook: NotebookNode) -> bool:
    """Did a cell break, so that what follows from it may be missing?"""
    return any(
        BROKEN in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )


def check_words(output: NotebookNode) -> str:
    """What did not hold, with the values; for the person who builds the book."""
    data = output.data[CHECK]
    return f"did not hold: {in_words(data['source'], data['found'])}"


def broken(said: str, found: str = "") -> NotebookNode:
    """The output that stands in a cell in place of what it does not show.

    Args:
        said: the beginning of a sentence, or a whole one without its full stop.
        found: an error as Python tells it; paths of this machine are cut, and what is very long.
    """
    found = PATH.sub("", " ".join(found.split()))
    if len(found) > LONGEST:
        found = found[:LONGEST].rpartition(" ")[0] + " ..."
    data = {"said": said, "found": found}
    words = f"{said} {found}".strip().rstrip(".")
    return new_output("display_data", data={BROKEN: data, "text/plain": f"{words}."})


def error_words(name: str, message: str, traceback: str) -> str:
    """``ValueError: the reason``; an error without words is told with the line that raised it."""
    if message:
        return f"{name}: {message}"
    lines = HERE.findall(traceback)
    return f"{name} at {lines[-1].strip()}" if lines else name


def warning_words(text: str) -> str:
    """What is told of something on stderr: the first warning or error in it, else its last line."""
    if match := RAISED.search(text):
        return f"{match[1]}: {match[2]}".rstrip(": ")
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def raised_at(traceback: str) -> int:
    """The line of the cell that a traceback leads from, counted from 1."""
    match = IN_CELL.search(traceback)
    return int(match[1]) if match else 1


def processor() -> str:
    """Where numbers came from: rounding differs from one kind of processor to the next."""
    import torch

    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)$", info.read_text() if info.is_file() else "", re.M)
    name = names[0] if names else platform.processor() or platform.machine()
    asked = os.environ.get("ATEN_CPU_CAPABILITY")
    used = torch.backends.cpu.get_cpu_capability()
    return f"{name}, PyTorch uses {used}" + (f" (ATEN_CPU_CAPABILITY={asked})" if asked else "")


def summary(failures: list[Failure]) -> str:
    """The last lines of a command."""
    count = len(failures)
    head = f"{count} {'failure' if count == 1 else 'failures'} on this machine:"
    lines = [f"  {failure}" for failure in failures]
    return "\n".join([head, *lines, f"Processor: {processor()}"])
