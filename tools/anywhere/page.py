"""Run a page, an assignment or a file of tests under one or several roundings: what it saw.

    python -m tools.anywhere.page book/attention/weight_sharing.md plain draw-1 seeds-3

One line of JSON for each run on standard output. No kernel and no pictures: half of a build's time.
"""

import argparse
import contextlib
import importlib
import json
import math
import os
import time
import traceback
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

from tools.anywhere.cells import Cell, OtherSeeds, cells_of, decisive, is_page
from tools.anywhere.runs import DIED

NAMES = "plain, draw-K, drawn-K, seeds-K"


def context_of(run: str) -> contextlib.AbstractContextManager:
    """What a run changes in torch; K is the seed of the noise."""
    from tools.anywhere.noise import Noise, drawn_otherwise

    kind, _, number = run.partition("-")
    if kind in ("draw", "seeds"):
        return Noise(int(number))
    if kind == "drawn":
        return drawn_otherwise(int(number))
    if run != "plain":
        raise SystemExit(f"no run is called {run!r}; there are {NAMES}")
    return contextlib.nullcontext()


class Seen:
    """What one run of a page saw."""

    def __init__(self) -> None:
        self.checks: dict[str, float] = {}  # by place, "cell.line.column source": the distance
        self.failed: list[dict[str, Any]] = []
        self.glued: dict[str, int | float | str] = {}
        self.cell: Cell | None = None
        self._decisive: set[tuple[int, int]] = set()

    def begin(self, cell: Cell) -> None:
        self.cell, self._decisive = cell, decisive(cell.source)

    def fail(self, line: int, source: str, found: list[str]) -> None:
        assert self.cell is not None
        where = {"cell": self.cell.number, "line": line}
        self.failed.append({**where, "source": source, "found": found})

    def compare(self, one: Any) -> None:
        """Keep the nearest of a comparison that decides an assertion: how far it is from false."""
        if (one.line, one.column) not in self._decisive or self.cell is None:
            return
        least, most = (one.left, one.right) if one.sign[0] == "<" else (one.right, one.left)
        try:
            distance = smallest_gap(least, most)
        except (TypeError, ValueError):
            return  # words, lists: no number
        place = f"{self.cell.number}.{one.line}.{one.column} {one.source}"
        self.checks[place] = min(distance, self.checks.get(place, math.inf))

    def publish(self, data: dict, metadata: dict | None) -> None:
        glued = (metadata or {}).get("scrapbook")
        if glued:
            self.glued[glued["name"]] = eval(data[glued["mime_prefix"] + "text/plain"], {})


def smallest_gap(least: Any, most: Any) -> float:
    """The smallest of ``most - least``; below 0 where a comparison is false or not a number."""
    import numpy as np

    least, most = (one.detach() if hasattr(one, "detach") else one for one in (least, most))
    gap = np.asarray(most, dtype=float) - np.asarray(least, dtype=float)
    if not gap.size:
        raise ValueError("nothing was compared")
    return float(np.where(np.isnan(gap), -np.inf, gap).min())


def run_page(page: Path, run: str) -> dict[str, Any]:
    """Run a page's cells in this process: what was compared, what failed, what was glued."""
    from IPython.core.interactiveshell import InteractiveShell

    from vitbook.book.checks import Checks, install

    without_pictures()
    seen = Seen()
    shell = InteractiveShell.instance()
    mock.patch.object(shell, "showtraceback").start()
    install(shell, Checks(seen.fail, seen.compare))
    kind, _, number = run.partition("-")
    if kind == "seeds":
        shell.ast_transformers.insert(0, OtherSeeds(100 * int(number)))

    def publish(data: dict, metadata: dict | None = None, **more: Any) -> None:
        seen.publish(data, metadata)

    mock.patch.object(shell.display_pub, "publish", publish).start()
    cells, error = cells_of(page), ""
    started = time.process_time()
    os.chdir(page.parent)
    with context_of(run), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        for cell in cells:
            seen.begin(cell)
            result = shell.run_cell(cell.source, store_history=False)
            trouble = result.error_before_exec or result.error_in_exec
            if trouble is not None:
                at = traceback.extract_tb(trouble.__traceback__)[-1]
                error = f"cell {cell.number}: {type(trouble).__name__}: {trouble} ({at.name})"
                break
    return {
        "run": run,
        "seconds": round(time.process_time() - started, 1),
        "checks": seen.checks,
        "failed": seen.failed,
        "glued": seen.glued,
        "error": error,
    }


def run_master(master: Path, run: str) -> dict[str, Any]:
    """Prove the public variant of an assignment: the solution and other right answers get all
    points, and every mistake loses some."""
    from website.assignments.draw import PUBLIC
    from website.assignments.prove import draw_assignment

    started, error = time.process_time(), ""
    with context_of(run):
        try:
            draw_assignment(master, PUBLIC, "0")
        except Exception as refused:
            error = f"{type(refused).__name__}: {refused}"
    return {"run": run, "seconds": round(time.process_time() - started, 1), "error": error}


def run_tests(file: Path, run: str) -> dict[str, Any]:
    """Run the quick tests of a file."""
    import pytest

    class Fallen:
        def __init__(self) -> None:
            self.names: list[str] = []

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self.names.append(f"{report.nodeid}: {str(report.longrepr)[-300:]}")

    fallen, started = Fallen(), time.process_time()
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with context_of(run), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        choice = ["-m", "not (deep or slow or browser or site)"]
        status = pytest.main([*options, *choice, str(file)], plugins=[fallen])
    error = "\n".join(fallen.names) or ("" if status in (0, 5) else f"pytest ended with {status}")
    return {"run": run, "seconds": round(time.process_time() - started, 1), "error": error}


def run_file(path: Path, run: str) -> dict[str, Any]:
    """Run a page, an assignment or a file of tests."""
    if path.suffix == ".py":
        return run_tests(path, run)
    return run_page(path, run) if is_page(path) else run_master(path, run)


def without_pictures() -> None:
    """Figures are laid out and not drawn."""
    from PIL import Image

    small = Image.new("RGB", (8, 8))
    mock.patch.multiple(
        "vitbook.plotting.display",
        _pixels=lambda fig, ground="white": small,
        enlarge=lambda fig: None,
        laid_out=contextlib.nullcontext,
    ).start()


def one_in_a_child(page: Path, run: str, to: TextIO) -> None:
    """A run in a process of its own, forked from this one, in which torch is loaded already."""
    child = os.fork()
    if not child:
        status = 1
        try:
            found = run_file(page, run)
            to.write(json.dumps(found, default=float) + "\n")
            to.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        to.write(json.dumps({"run": run, "error": DIED}) + "\n")
        to.flush()


def run_all(page: Path, runs: list[str]) -> None:
    """A file in each run."""
    import matplotlib
    import torch

    for slow in ("vitbook.models.vit", "vitbook.plotting", "vitbook.training"):  # once for all runs
        importlib.import_module(slow)
    matplotlib.use("agg")
    torch.set_num_threads(1)
    with os.fdopen(os.dup(1), "w") as to:
        os.dup2(2, 1)  # what a cell prints is nobody's
        for run in runs:
            one_in_a_child(page.resolve(), run, to)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("runs", nargs="+", help=NAMES)
    options = parser.parse_args()
    run_all(options.page, options.runs)


if __name__ == "__main__":
    main()
