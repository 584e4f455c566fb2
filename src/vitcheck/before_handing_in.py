"""What of a notebook will not run when it is marked: said at home, before it is handed in."""

import ast
import sys
import time
from collections.abc import Iterable
from typing import Any

CELL_SECONDS = 10  # that a cell has when a notebook is marked
RUN_SECONDS = 60  # that all cells have together
# Packages that are there wherever notebooks are marked: those that the course's own package needs.
THERE = {"vitbook", "vitcheck", "torch", "torchvision", "numpy", "matplotlib", "einops", "sklearn"}
THERE |= {"scipy", "PIL", "safetensors", "tqdm", *sys.stdlib_module_names}
READS = {"open", "load", "loadtxt", "genfromtxt", "imread", "read_csv", "read_text", "read_bytes"}
FETCHES = {"urlopen", "urlretrieve", "from_pretrained", "load_dataset", "hf_hub_download"}
OUTSIDE = {"asyncio.run", "subprocess", "multiprocessing", "socket"}  # a call, and modules
HARMLESS = {"time", "timeit", "capture", "prun", "matplotlib", "config"}  # magics
INTRODUCTION = (
    f"When your notebook is marked, it is run from its first cell to its last, without a network "
    f"and without other files, and a cell has {CELL_SECONDS} seconds. So this will not be there, "
    f"nor what follows from it:"
)


class Clock:
    """Notes how long each cell of a running notebook takes."""

    def __init__(self, shell: Any) -> None:
        self.seconds: dict[int, float] = {}
        self._began = time.monotonic()
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def _begin(self, *_: Any) -> None:
        self._began = time.monotonic()

    def _end(self, result: Any) -> None:
        self.seconds[result.execution_count] = time.monotonic() - self._began


def warnings(cells: Iterable[str], seconds: dict[int, float]) -> list[str]:
    """A line for each thing that is lost.

    Args:
        cells: The sources that were run, as IPython keeps them: its own syntax is Python there.
        seconds: How long cells took, by their number.
    """
    found = []
    for number, source in enumerate(cells):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        found += [f"  {words[:70]}  ({why})" for words, why in _lost(tree)]
        if seconds.get(number, 0) > CELL_SECONDS:
            first = source.strip().splitlines()[0][:50]
            found.append(f"  {first} ...  (the cell took {seconds[number]:.0f} s)")
    whole = sum(min(taken, CELL_SECONDS) for taken in seconds.values())
    if whole > RUN_SECONDS:
        found.append(f"  the last cells  (all took {whole:.0f} s, and have {RUN_SECONDS})")
    return list(dict.fromkeys(found))


def _lost(tree: ast.Module) -> Iterable[tuple[str, str]]:
    """What is lost, as its author wrote it, and why."""
    for statement in filter(_awaits, tree.body):
        yield ast.unparse(statement).splitlines()[0], "await outside of a function"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            missing = {(name or "").partition(".")[0] for name in names} - THERE
            if missing and not getattr(node, "level", 0):
                yield ast.unparse(node), f"not there: {', '.join(sorted(missing))}"
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = next((str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant)), "")
            if name in ("system", "getoutput"):
                yield f"!{first}", "a command of the machine"
            elif name == "run_cell_magic" and first not in HARMLESS:
                yield f"%%{first}", "a command of the machine"
            elif {ast.unparse(node.func), ast.unparse(node.func).partition(".")[0]} & OUTSIDE:
                yield ast.unparse(node), "needs a process or a socket"
            elif name in FETCHES or any(_downloads(word) for word in node.keywords):
                yield ast.unparse(node), "needs a network"
            elif name in READS and node.args:
                yield ast.unparse(node), "reads a file"


def _awaits(node: ast.AST) -> bool:
    """Does it wait, outside of any function? Notebooks can; plain Python refuses the statement."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    waits = isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)
    waits = waits or bool(getattr(node, "is_async", 0))
    return waits or any(map(_awaits, ast.iter_child_nodes(node)))


def _downloads(word: ast.keyword) -> bool:
    return (
        word.arg == "download" and isinstance(word.value, ast.Constant) and bool(word.value.value)
    )
