"""Run the cells of one page under one or several roundings, and tell what its checks saw.

    python -m tools.anywhere.page book/attention/07_weight_sharing.md plain draw-1 seeds-3

One line of JSON for each run on standard output. No kernel and no pictures: half of a build's time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from tools.anywhere.cells import Cell, OtherSeeds, cells_of, decisive, needed_for

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
        about = {"rounding": self.cell.rounding} if self.cell.rounding else {}
        where = {"cell": self.cell.number, "line": line}
        self.failed.append({**where, "source": source, "found": found, **about})

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
        name = (metadata or {}).get("scrapbook", {}).get("name")
        if name:
            prefix = metadata["scrapbook"]["mime_prefix"]  # type: ignore[index]
            self.glued[name] = eval(data[prefix + "text/plain"], {})


def smallest_gap(least: Any, most: Any) -> float:
    """The smallest of ``most - least``; below 0 where a comparison is false or not a number."""
    import numpy as np

    least, most = (one.detach() if hasattr(one, "detach") else one for one in (least, most))
    gap = np.asarray(most, dtype=float) - np.asarray(least, dtype=float)
    if not gap.size:
        raise ValueError("nothing was compared")
    return float(np.where(np.isnan(gap), -np.inf, gap).min())


def run_page(page: Path, run: str, line: int | None = None) -> dict[str, Any]:
    """Run a page's cells in this process: what was compared, what failed, what was glued."""
    from IPython.core.interactiveshell import InteractiveShell

    from vitbook.book.checks import Checks, install

    without_pictures()
    seen = Seen()
    shell = InteractiveShell.instance()
    shell.showtraceback = lambda *a, **k: None
    install(shell, Checks(seen.fail, seen.compare))
    kind, _, number = run.partition("-")
    if kind == "seeds":
        shell.ast_transformers.insert(0, OtherSeeds(100 * int(number)))

    class Publisher(type(shell.display_pub)):  # type: ignore[misc]
        def publish(self, data: dict, metadata: dict | None = None, **more: Any) -> None:
            seen.publish(data, metadata)

    shell.display_pub = Publisher()
    shell.displayhook.write_output_prompt = lambda: None
    cells, error = cells_of(page), ""
    started = time.process_time()
    os.chdir(page.parent)
    with context_of(run), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        for cell in needed_for(cells, line) if line else cells:
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


def without_pictures() -> None:
    """Figures are laid out and not drawn."""
    from PIL import Image

    import vitbook.plotting.display as display

    display._pixels = lambda fig, ground="white": Image.new("RGB", (8, 8))
    display.enlarge = lambda fig: None
    display.laid_out = contextlib.nullcontext


def one_in_a_child(page: Path, run: str, line: int | None, to: TextIO) -> None:
    """A run in a process of its own, forked from this one, in which torch is loaded already."""
    child = os.fork()
    if not child:
        status = 1
        try:
            found = run_page(page, run, line)
            to.write(json.dumps(found, default=float) + "\n")
            to.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        to.write(json.dumps({"run": run, "error": "the process died"}) + "\n")
        to.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("runs", nargs="+", help=NAMES)
    parser.add_argument("--line", type=int, help="only the cell there, and what it needs")
    options = parser.parse_args()
    import matplotlib
    import torch

    import vitbook.models.vit
    import vitbook.plotting
    import vitbook.training  # noqa: F401

    matplotlib.use("agg")
    torch.set_num_threads(1)
    with os.fdopen(os.dup(1), "w") as to:
        os.dup2(2, 1)  # what a cell prints is nobody's
        for run in options.runs:
            one_in_a_child(options.page.resolve(), run, options.line, to)


if __name__ == "__main__":
    sys.exit(main())
