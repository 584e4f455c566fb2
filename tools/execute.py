"""Execute the chapters whose digest changed, two at a time, into the cache that the pages are
built from.

    python -m tools.execute                     every chapter of _toc.yml
    python -m tools.execute book/00_preview.md  only this one

A failing cell (an exception, anything on stderr, a time-out) makes this command fail, this time
and every time until it is mended; nothing of a failed chapter enters the cache.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbclient
import yaml
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbformat import NotebookNode
from tqdm import tqdm

from tools.chapters import Chapter, Store, find_chapters

ROOT = Path(__file__).resolve().parents[1]
IPC = sys.platform != "win32"  # where a kernel can listen on a file


class CellError(Exception):
    """A cell that ended a chapter, with all that is needed to mend it."""

    def __init__(self, chapter: str, cell: str, reason: str, source: str):
        super().__init__(f"{chapter}: {cell}: {reason}")
        self.report = "\n".join(
            [f"FAILED {chapter}, {cell}", "-" * 72, source, "-" * 72, reason.rstrip(), ""]
        )


class Progress:
    """One bar over the cells that are run, with the chapters in work; or a line for each cell.

    Args:
        chapters: Those that will be run.
        verbose: Lines instead of the bar.
    """

    def __init__(self, chapters: list[Chapter], verbose: bool):
        self.started, self.verbose = time.monotonic(), verbose
        self.lock = threading.Lock()
        self.running: list[str] = []
        cells = sum(len(chapter.cells) for chapter in chapters)
        often = 0.5 if sys.stdout.isatty() else 30
        self.bar = tqdm(
            total=cells, unit="cell", file=sys.stdout, disable=verbose, mininterval=often, ncols=100
        )

    def say(self, line: str) -> None:
        with self.lock:
            self.bar.clear()
            print(f"[{time.monotonic() - self.started:6.1f} s] {line}", flush=True)

    def begin(self, chapter: Chapter) -> None:
        self._running(self.running.append, chapter.name.rpartition("/")[2])

    def end(self, chapter: Chapter) -> None:
        self._running(self.running.remove, chapter.name.rpartition("/")[2])

    def _running(self, change: Callable[[str], None], name: str) -> None:
        with self.lock:
            change(name)
            self.bar.set_description(", ".join(sorted(self.running)), refresh=False)

    def cell(self, line: str) -> None:
        if self.verbose:
            self.say(line)
        with self.lock:
            self.bar.update()

    def close(self) -> None:
        self.bar.close()


class Client(nbclient.NotebookClient):
    """Runs one chapter: reports each cell, and takes anything written to stderr as a failure."""

    def __init__(self, chapter: Chapter, progress: Progress, sockets: Path, **options: Any):
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),  # this very Python, no other
            transport="ipc" if IPC else "tcp",  # a private folder has no ports to race for
            ip=str(sockets / chapter.digest[:12]) if IPC else "127.0.0.1",
        )
        super().__init__(chapter.notebook, km=manager, kernel_name="python3", **options)
        self.owns_km = True  # so that the kernel ends with its chapter
        self.shutdown_kernel = "immediate"
        self.chapter, self.progress, self.done = chapter, progress, 0

    async def async_execute_cell(
        self, cell: NotebookNode, cell_index: int, *arguments: Any, **options: Any
    ) -> NotebookNode:
        if cell.cell_type != "code" or not cell.source.strip():
            return cell
        self.done += 1
        label = f"cell {self.done}/{len(self.chapter.cells)}"
        line = self.chapter.notebook.metadata["source_map"][cell_index] + 1
        where = f"{label} (line {line})"
        start = time.monotonic()
        try:
            await super().async_execute_cell(cell, cell_index, *arguments, **options)
        except nbclient.exceptions.CellExecutionError as error:
            lines = [line for output in cell.outputs for line in output.get("traceback", [])]
            text = "\n".join(lines) or f"{error.ename}: {error.evalue}"
            raise CellError(self.chapter.name, where, plain(text), cell.source) from None
        except nbclient.exceptions.CellTimeoutError:
            reason = f"took longer than {self.timeout} s; move long runs to a recorded experiment"
            raise CellError(self.chapter.name, where, reason, cell.source) from None
        except nbclient.exceptions.DeadKernelError:
            reason = "the Python process died (out of memory, or a crash in compiled code)"
            raise CellError(self.chapter.name, where, reason, cell.source) from None
        cell.outputs = merge_streams(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                reason = "wrote to stderr, which would appear on the page:\n" + plain(output.text)
                raise CellError(self.chapter.name, where, reason, cell.source)
        self.chapter.cell_seconds.append(time.monotonic() - start)
        self.progress.cell(f"{self.chapter.name}  {label}  {self.chapter.cell_seconds[-1]:.1f} s")
        return cell


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def merge_streams(outputs: list) -> list:
    """Join neighbouring pieces of one stream: how the kernel cuts them differs from run to run."""
    merged: list = []
    for output in outputs:
        last = merged[-1] if merged else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            merged.append(output)
    return merged


def kernel_environment(root: Path, build: Path) -> dict[str, str]:
    """What the kernels see: one thread, fixed hashing, nothing of the user's own set-up."""
    own = {"IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}
    folders = {name: str(build / "kernel" / folder) for name, folder in own.items()}
    for folder in folders.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH", "")]))
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        **folders,
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "NO_COLOR": "1",
        "VITBOOK_BOTH_THEMES": "1",  # figures in the inks of both themes
    }


def build_font_cache(environment: dict[str, str]) -> None:
    """Let matplotlib look for fonts now: in a cell it would say so on stderr, once per machine."""
    if not list(Path(environment["MPLCONFIGDIR"]).glob("fontlist*")):
        command = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(command, env=environment, check=False, capture_output=True)


@contextmanager
def sockets_folder() -> Iterator[Path]:
    """A folder with a short name (socket paths are limited to about 100 characters)."""
    before = os.environ.get("JUPYTER_RUNTIME_DIR")
    with tempfile.TemporaryDirectory(prefix="book-", ignore_cleanup_errors=True) as folder:
        os.environ["JUPYTER_RUNTIME_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("JUPYTER_RUNTIME_DIR")
            if before is not None:
                os.environ["JUPYTER_RUNTIME_DIR"] = before


def run_chapter(
    chapter: Chapter, progress: Progress, sockets: Path, environment: dict[str, str], timeout: int
) -> Chapter:
    """Run all cells of one chapter in a fresh kernel, in the chapter's folder."""
    start = time.monotonic()
    client = Client(
        chapter,
        progress,
        sockets,
        timeout=timeout,
        startup_timeout=120,
        record_timing=False,  # it would enter the cells' metadata, and with it the key in the cache
    )
    progress.begin(chapter)
    try:
        client.execute(cwd=str(chapter.path.parent), env=environment)
    finally:
        progress.end(chapter)
    chapter.seconds = time.monotonic() - start
    return chapter


def execute(
    root: Path, build: Path, pages: list[Path], jobs: int, timeout: int, verbose: bool = False
) -> list[str]:
    """Execute what is stale. Returns the reports of what failed (empty: all is well)."""
    store = Store(build / ".jupyter_cache")
    chapters = find_chapters(root, pages, store.inputs)
    stale = [chapter for chapter in chapters if not store.is_fresh(chapter)]
    if not stale:
        store.remember(chapters)
        print(f"{len(chapters)} chapters, all fresh: nothing to execute")
        return []
    stale.sort(key=store.seconds, reverse=True)
    for chapter in stale:
        store.forget(chapter)

    environment = kernel_environment(root, build)
    build_font_cache(environment)
    print(f"{len(stale)} of {len(chapters)} chapters to execute, {min(jobs, len(stale))} at a time")
    progress = Progress(stale, verbose)
    try:
        reports = run_all(stale, store, progress, environment, jobs, timeout)
    finally:
        progress.close()
    if not pages:
        store.drop_others(chapters)
    store.remember(chapters)
    slow = sorted((c for c in stale if c.seconds), key=lambda c: c.seconds, reverse=True)[:3]
    progress.say(
        f"executed {len(stale) - len(reports)} of {len(stale)}; slowest: "
        + (", ".join(f"{c.name} {c.seconds:.1f} s" for c in slow) or "none")
    )
    return reports


def run_all(
    stale: list[Chapter],
    store: Store,
    progress: Progress,
    environment: dict[str, str],
    jobs: int,
    timeout: int,
) -> list[str]:
    """Run chapters side by side, and keep each as it ends. Returns the reports of failures."""
    finished: queue.Queue = queue.Queue()

    def work(chapter: Chapter, sockets: Path) -> None:
        try:
            finished.put((run_chapter(chapter, progress, sockets, environment, timeout), None))
        except CellError as failure:
            finished.put((chapter, failure.report))
        except Exception as error:
            finished.put((chapter, f"FAILED {chapter.name}: {type(error).__name__}: {error}\n"))

    failures = []
    with sockets_folder() as sockets, ThreadPoolExecutor(max_workers=jobs) as pool:
        for chapter in stale:
            pool.submit(work, chapter, sockets)
        try:
            for _ in stale:
                chapter, report = finished.get()
                if report is None:
                    store.keep(chapter)
                else:
                    failures.append(report)
                    progress.say(f"{chapter.name}  FAILED")
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr, flush=True)
            shutil.rmtree(sockets, ignore_errors=True)
            os._exit(130)  # without waiting for the threads; the kernels notice that we are gone
    return failures


def cell_timeout(root: Path) -> int:
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    return config.get("execute", {}).get("timeout", 120)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages to execute; default: all")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--build", type=Path, help="default: _build in the repository")
    parser.add_argument("--verbose", action="store_true", help="a line for each cell")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    build = (options.build or root / "_build").resolve()
    failures = execute(
        root, build, options.pages, options.jobs, cell_timeout(root), options.verbose
    )
    print("\n".join(failures), file=sys.stderr, end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
