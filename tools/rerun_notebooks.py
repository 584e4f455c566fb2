"""Can each cell of a notebook be run again, and each section after the set-up alone?

    python -m tools.rerun_notebooks                      all notebooks of the site
    python -m tools.rerun_notebooks scaled_dot_product   only those

Each notebook is run once in a process of its own. Then, in forks of that process, each cell once
more: it fails where an earlier cell left a name with another meaning. And in forks of the process
as it was after the set-up, each section by itself, as somebody who comes back would run it.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from tools.run_notebooks import TOLD, is_code
from website.pages.moved import notebooks_in

ROOT = Path(__file__).resolve().parents[1]


class Kernel:
    """An IPython in this process, which keeps what the cell that runs displays."""

    def __init__(self) -> None:
        from IPython.core.displaypub import CapturingDisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.shell.display_pub = self.shown = CapturingDisplayPublisher()

    def run(self, source: str) -> str:
        """Run a cell. Returns what failed in it; nothing where all is well."""
        self.shown.outputs.clear()
        result = self.shell.run_cell(source)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            return f"{type(error).__name__}: {error}"
        told = [
            output["data"]["text/plain"]
            for output in self.shown.outputs
            if any(kind.startswith(TOLD) for kind in output["data"])
        ]
        return "\n".join(told)

    def run_apart(self, sources: list[str]) -> list[tuple[int, str]]:
        """Run cells in a fork, one after the other: which failed, and how."""
        receives, sends = os.pipe()
        child = os.fork()
        if child == 0:
            found = [(at, words) for at, one in enumerate(sources) if (words := self.run(one))]
            os.write(sends, json.dumps(found).encode()[:60_000])
            os._exit(0)
        os.close(sends)
        with os.fdopen(receives, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return [(at, words) for at, words in json.loads(said or b'[[0, "the process died"]]')]


def sections(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, list[int]]]:
    """The title of each section, and its cells of code; the set-up is in none."""
    title, cells = "before the first section", list[int]()
    for at, cell in enumerate(notebook.cells):
        if not is_code(cell):
            if cell.source.startswith("## "):
                if cells:
                    yield title, cells
                title, cells = cell.source.partition("\n")[0].removeprefix("## "), []
        elif at > 1:
            cells.append(at)
    if cells:
        yield title, cells


def failures(path: Path) -> dict[str, list[str]]:
    """Of one notebook, in this process: what fails in "cells" and in "sections"."""
    notebook, kernel = nbformat.read(path, as_version=4), Kernel()
    code = {at: cell.source for at, cell in enumerate(notebook.cells) if is_code(cell)}
    kernel.run(code[1])
    alone = [
        f"{title}, cell {cells[at]}: {words}"
        for title, cells in sections(notebook)
        for at, words in kernel.run_apart([code[cell] for cell in cells])[:1]
    ]
    first = [
        f"cell {at}, the first time: {words}" for at in code if (words := kernel.run(code[at]))
    ]
    again = [f"cell {at}: {words}" for at in code for _, words in kernel.run_apart([code[at]])]
    return {"cells": first + again, "sections": alone}


def examined(path: Path) -> dict[str, list[str]]:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "tools.rerun_notebooks", "--inside", str(path)]
    env: dict[str, Any] = {
        **os.environ,
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path]),
    }
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return {"cells": [done.stderr], "sections": []}
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="notebooks, by name; default: all")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        print("\n" + json.dumps(failures(options.inside)))
        return 0
    failed = 0
    for path in notebooks_in(ROOT / "_build/html/notebooks"):
        if not options.names or path.stem in options.names:
            found = examined(path)
            failed += len(found["cells"])
            for kind, all_of_them in found.items():
                print(f"{path.stem}, {kind}: {len(all_of_them)} fail", flush=True)
                for words in all_of_them:
                    print("    " + words.replace("\n", "\n    ")[:400], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
