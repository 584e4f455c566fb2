"""Execute the chapters whose digest changed, two at a time, into the cache that the pages are
built from.

    python -m website.build.execute                     every chapter of _toc.yml
    python -m website.build.execute book/preview.md  only this one

A check that does not hold, and a cell that breaks (an exception, anything on stderr, a time-out,
the death of the process), is printed when it happens. The chapter runs on. What it has, with a
sentence in place of what it has not, enters the cache, so every page can be built. But the command
fails, this time and every time until it is mended, and executes the chapter again each time.
"""

import argparse
import os
import queue
import re
import secrets
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
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbformat import NotebookNode
from tqdm import tqdm

from website.build.chapters import Chapter, Store, find_chapters
from website.pages.failures import (
    CHECK,
    ELSEWHERE,
    Failure,
    at_most_some,
    broken,
    check_words,
    error_words,
    failures_in,
    raised_at,
    summary,
    warning_words,
)

ROOT = Path(__file__).resolve().parents[2]
IPC = sys.platform != "win32"  # where a kernel can listen on a file


# In each kernel, before its first cell: a check that does not hold is told, and its cell runs on.
COLLECT = "__import__('vitbook.book.checks', fromlist=['collect']).collect()"
UNSEEN = {"remove-cell", "remove-output"}  # tags
STDERR = "On this machine this cell wrote what no page should show:"


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
    """Runs one chapter to its end, whatever its cells do, and reports each cell.

    An exception, anything on stderr, a time-out and the death of the process leave a sentence in
    the cell. After the last two the cells that follow are not run, and say so.
    """

    def __init__(self, chapter: Chapter, progress: Progress, sockets: Path, **options: Any):
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),  # this very Python, no other
            transport="ipc" if IPC else "tcp",  # a private folder has no ports to race for
            ip=str(sockets / secrets.token_hex(6)) if IPC else "127.0.0.1",
        )
        super().__init__(chapter.notebook, km=manager, kernel_name="python3", **options)
        self.owns_km = True  # so that the kernel ends with its chapter
        self.shutdown_kernel = "immediate"
        self.chapter, self.progress, self.done = chapter, progress, 0
        self.ended = 0  # the line of the cell with which the process came to an end

    async def async_execute_cell(
        self, cell: NotebookNode, cell_index: int, *arguments: Any, **options: Any
    ) -> NotebookNode:
        if cell.cell_type != "code" or not cell.source.strip():
            return cell
        if not self.done:
            await self._collect_checks()
        self.done += 1
        label = f"cell {self.done}/{len(self.chapter.cells)}"
        start = time.monotonic()
        if self.ended:
            ends = f"the cell in line {self.ended} ended the run"
            cell.outputs = [broken(f"This cell was not run on this machine: {ends}")]
        else:
            await self._try(cell, cell_index, *arguments, **options)
        self.chapter.cell_seconds.append(time.monotonic() - start)
        self.progress.cell(f"{self.chapter.name}  {label}  {self.chapter.cell_seconds[-1]:.1f} s")
        return cell

    async def _collect_checks(self) -> None:
        """No cell of the page: it leaves no output and is not counted."""
        assert isinstance(self.kc, AsyncKernelClient)
        reply = await self.kc.execute_interactive(
            COLLECT, silent=True, output_hook=lambda message: None, timeout=self.startup_timeout
        )
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{COLLECT}: {reply['content'].get('evalue')}")

    async def _try(self, cell: NotebookNode, index: int, *arguments: Any, **options: Any) -> None:
        line = self.chapter.first_line(index)
        broken_by = None
        try:
            await super().async_execute_cell(cell, index, *arguments, **options)
        except nbclient.exceptions.CellExecutionError as error:
            lines = [line for output in cell.outputs for line in output.get("traceback", [])]
            text = plain("\n".join(lines)) or f"{error.ename}: {error.evalue}"
            words = error_words(error.ename, plain(error.evalue), text)
            broken_by = broken("On this machine this cell ended with", words)
            self._report(cell, line + raised_at(text) - 1, f"ended with {words}", text)
        except nbclient.exceptions.CellTimeoutError:
            broken_by = broken(f"On this machine this cell took longer than {self.timeout} seconds")
            reason = f"took longer than {self.timeout} s; move long runs to a recorded experiment"
            self._report(cell, line, reason)
            self.ended = line
        except nbclient.exceptions.DeadKernelError:
            broken_by = broken("On this machine the Python process died in this cell")
            reason = "the Python process died (out of memory, or a crash in compiled code)"
            self._report(cell, line, reason)
            self.ended = line
        outputs = at_most_some(merge_streams(cell.outputs))
        errors = [one for one in outputs if is_error(one)]
        cell.outputs = [one for one in outputs if not is_error(one)]
        if broken_by is None and errors:
            text = plain("".join(one.text for one in errors))
            broken_by = broken(STDERR, warning_words(text))
            reason = f"wrote to stderr, which would appear on the page: {warning_words(text)}"
            self._report(cell, line, reason, text)
        for output in failures_in(cell.outputs):
            self._report(None, line + output.data[CHECK]["line"] - 1, check_words(output))
        if broken_by is not None:
            cell.outputs.append(broken_by)

    def give_up(self, error: str) -> None:
        """The kernel does not do its work: the cells that are left are not run."""
        for cell in self.chapter.cells[len(self.chapter.cell_seconds) :]:
            cell.outputs = [broken("On this machine this cell was not run:", error)]
        self._report(None, 1, f"could not be run: {error}")

    def _report(self, cell: NotebookNode | None, line: int, said: str, more: str = "") -> None:
        """Say at once what failed, with the source of a cell that broke."""
        failure = Failure(f"book/{self.chapter.name}.md", line, said)
        self.chapter.failures.append(failure)
        rule = "-" * 72
        source = [] if cell is None else [rule, cell.source, rule, *filter(None, [more.rstrip()])]
        self.progress.say("\n".join([f"FAILED {failure}", *source]))


def is_error(output: NotebookNode) -> bool:
    return output.output_type == "error" or (
        output.output_type == "stream" and output.name == "stderr"
    )


def bring_to_light(notebook: NotebookNode) -> None:
    """What failed in a cell that the page does not show moves to the last cell before it that it
    does, or to the first. There it says nothing against that cell."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [cell for cell in cells if not UNSEEN & set(cell.metadata.get("tags", []))]
    place = shown[0] if shown else None
    for cell in cells:
        if cell in shown:
            place = cell
        elif place is not None:
            found = failures_in(cell.outputs)
            cell.outputs = [output for output in cell.outputs if output not in found]
            for output in found:
                output.metadata[ELSEWHERE] = True
            place.outputs += found


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
    except Exception as error:  # no kernel, or one that does not answer
        client.give_up(f"{type(error).__name__}: {error}")
    finally:
        progress.end(chapter)
    bring_to_light(chapter.notebook)
    chapter.seconds = time.monotonic() - start
    return chapter


def execute(
    root: Path, build: Path, pages: list[Path], jobs: int, timeout: int, verbose: bool = False
) -> list[Failure]:
    """Execute what is stale. Returns what failed (empty: all is well).

    Every page can be rendered afterwards. One on which something failed counts as stale.
    """
    store = Store(build / ".jupyter_cache")
    chapters = find_chapters(root, pages, store.inputs)
    stale = [chapter for chapter in chapters if not store.is_fresh(chapter)]
    if not stale:
        store.remember(chapters)
        print(f"{len(chapters)} chapters, all fresh: nothing to execute")
        return []
    stale.reverse()  # the last pages train longest: where no time is known, they start first
    stale.sort(key=store.seconds, reverse=True)
    for chapter in stale:
        _ = chapter.digest  # of what it starts with: a module that changes meanwhile makes it stale
        store.forget(chapter)

    environment = kernel_environment(root, build)
    build_font_cache(environment)
    print(f"{len(stale)} of {len(chapters)} chapters to execute, {min(jobs, len(stale))} at a time")
    progress = Progress(stale, verbose)
    try:
        run_all(stale, store, progress, environment, jobs, timeout)
    finally:
        progress.close()
    if not pages:
        store.drop_others(chapters)
    store.remember(chapters)
    failed = [chapter for chapter in stale if chapter.failures]
    slow = sorted(stale, key=lambda chapter: chapter.seconds, reverse=True)[:3]
    progress.say(
        f"executed {len(stale)}, {len(failed) or 'none'} of them with failures; slowest: "
        + ", ".join(f"{c.name} {c.seconds:.1f} s" for c in slow)
    )
    return [failure for chapter in chapters for failure in chapter.failures]


def run_all(
    stale: list[Chapter],
    store: Store,
    progress: Progress,
    environment: dict[str, str],
    jobs: int,
    timeout: int,
) -> None:
    """Run chapters side by side, and keep each as it ends."""
    finished: queue.Queue[Chapter | Exception] = queue.Queue()

    def work(chapter: Chapter, sockets: Path) -> None:
        try:
            finished.put(run_chapter(chapter, progress, sockets, environment, timeout))
        except Exception as error:  # a defect of this program
            finished.put(error)

    with sockets_folder() as sockets, ThreadPoolExecutor(max_workers=jobs) as pool:
        for chapter in stale:
            pool.submit(work, chapter, sockets)
        try:
            for _ in stale:
                ended = finished.get()
                if isinstance(ended, Exception):
                    raise ended
                store.keep(ended)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr, flush=True)
            shutil.rmtree(sockets, ignore_errors=True)
            os._exit(130)  # without waiting for the threads; the kernels notice that we are gone


def cell_timeout(root: Path) -> int:
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    return config.get("execute", {}).get("timeout", 120)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages to execute; default: all")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--verbose", action="store_true", help="a line for each cell")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    jobs = min(2, os.cpu_count() or 1)
    failures = execute(
        root, root / "_build", options.pages, jobs, cell_timeout(root), options.verbose
    )
    if failures:
        print(summary(failures), file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
