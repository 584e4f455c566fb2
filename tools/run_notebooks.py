"""Prove the exported notebooks: run all of them where only their own first cell installed anything.

They and the package are taken from ``_build/html``, served on this machine under the address of the
release, as the published branch would be.

    python -m tools.run_notebooks                 all notebooks and scripts
    python -m tools.run_notebooks preview         only those
    python -m tools.run_notebooks --kind imports  only what they import, and the records they load

In a stand-in for Colab (tools/colab_standin.py) the install cell runs once, and ``pip freeze`` must
then show our package more and nothing else. Each notebook runs in a kernel of its own, its
solutions too, then the same notebook as a Python script. Any error fails, and any check that does
not hold.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager

from tools import colab_standin as standin
from website.notebooks.notebook import LOOK, SOLUTION
from website.pages.meaning import cell_tree, loaded_records
from website.pages.moved import notebooks_in
from website.pages.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[1]
TOLD = "application/vnd.vitbook."  # outputs of what Colab's image lacks: checks that failed
CELL_SECONDS, SCRIPT_SECONDS = 300, 900


def kernel_manager(python: Path, scratch: Path) -> AsyncKernelManager:
    """A manager whose only kernel is the stand-in's Python.

    Each has a folder of its own: notebooks start side by side, and one would read another's
    description while it is written.
    """
    kernels = Path(tempfile.mkdtemp(dir=scratch))
    spec = kernels / "standin"
    spec.mkdir()
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    command.append("--log-level=ERROR")
    description = {"argv": command, "display_name": "stand-in", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(description))
    specs = KernelSpecManager(kernel_dirs=[str(kernels)], ensure_native_kernel=False)
    return AsyncKernelManager(kernel_name="standin", kernel_spec_manager=specs)


class Client(nbclient.NotebookClient):
    """Remembers which cell it is at."""

    at = 0

    async def async_execute_cell(
        self, cell: nbformat.NotebookNode, cell_index: int, *arguments: Any, **options: Any
    ) -> nbformat.NotebookNode:
        self.at = cell_index
        return await super().async_execute_cell(cell, cell_index, *arguments, **options)


def run_notebook(
    notebook: nbformat.NotebookNode, name: str, python: Path, scratch: Path, env: dict
) -> str | None:
    """Run the cells in order. Returns a report of the failure, or None."""
    notebook = nbformat.from_dict(notebook)  # its outputs are not for the caller
    cells = notebook.cells
    manager = kernel_manager(python, scratch)
    client = Client(notebook, km=manager, kernel_name="standin", timeout=CELL_SECONDS)
    client.owns_km = True  # so that the kernel ends with its notebook
    try:
        client.execute(cwd=tempfile.mkdtemp(dir=scratch), env=env)
    except (nbclient.exceptions.CellControlSignal, nbclient.exceptions.DeadKernelError) as error:
        where = place(cells, client.at)
        source = getattr(error, "traceback", None) or f"{cells[client.at].source}\n\n{error}"
        return f"FAILED {name}.ipynb, {where}\n{plain(source)}"
    return failed_checks(notebook, name)


def failed_checks(notebook: nbformat.NotebookNode, name: str) -> str | None:
    """A check that does not hold lets its notebook run on, and is a failure nevertheless."""
    told = []
    for at, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if any(kind.startswith(TOLD) for kind in output.get("data", {})):
                where = place(notebook.cells, at)
                told.append(f"FAILED {name}.ipynb, {where}\n{output.data['text/plain']}")
    return "\n".join(told) or None


def place(cells: list[nbformat.NotebookNode], at: int) -> str:
    solves = SOLUTION in cells[at].metadata.get("tags", [])
    return f"cell {at + 1}" + (", a solution" if solves else "")


def run_script(script: str, name: str, python: Path, scratch: Path, env: dict) -> str | None:
    """Run the script form with plain Python. Returns a report of the failure, or None."""
    path = Path(tempfile.mkdtemp(dir=scratch)) / f"{name}.py"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [str(python), str(path)],
        cwd=path.parent,
        env={**env, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=SCRIPT_SECONDS,
        check=False,
    )
    return f"FAILED {name}.py\n{done.stderr}" if done.returncode else None


def run_imports(notebooks: dict, python: Path, scratch: Path, env: dict) -> str | None:
    """Let one process import what each notebook imports, and load the records that it loads.

    Returns a report of the first failure, or None.
    """
    lines = []
    for name, notebook in notebooks.items():
        lines.append(f"print({name!r}, flush=True)")
        for code in (cell.source for cell in notebook.cells[1:] if is_code(cell)):
            tree = cell_tree(code)
            lines += map(ast.unparse, filter(is_import, ast.walk(tree)))
            lines += (f"load_record({record!r})" for record in sorted(loaded_records(tree) or ()))
    path = Path(tempfile.mkdtemp(dir=scratch)) / "imports.py"
    path.write_text("from vitbook.book.records import load_record\n" + "\n".join(lines))
    command = [str(python), str(path)]
    done = subprocess.run(command, cwd=path.parent, env=env, capture_output=True, text=True)
    last = done.stdout.split()[-1:]
    return f"FAILED {last}, its imports or records\n{done.stderr}" if done.returncode else None


def is_code(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code"


def is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) or (
        isinstance(node, ast.ImportFrom) and node.module != "__future__"
    )


def install_as_a_reader_would(
    notebooks: dict, python: Path, scratch: Path, env: dict
) -> str | None:
    """Run the install cell, alone, and compare what is installed. Returns a complaint, or None."""
    cells = {notebook.cells[1].source for notebook in notebooks.values()}
    installs = {cell.partition(LOOK)[0] for cell in cells}  # what a page imports may differ
    if len(installs) != 1 or "distributions" not in next(iter(installs)):
        return "the notebooks do not share one install cell: export them again"
    before = standin.freeze(python)
    alone = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(max(cells, key=len))])
    if report := run_notebook(alone, "install", python, scratch, env):
        return report
    after = standin.freeze(python)
    added, gone = after - before, before - after
    if gone or len(added) != 1 or not next(iter(added)).startswith("vitbook"):
        printed = "".join(output.get("text", "") for output in alone.cells[0].get("outputs", []))
        return f"the install cell added {sorted(added)} and removed {sorted(gone)}\n{printed}"
    return None


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line on the screen for each."""

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve ``folder`` on this machine; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def led_to(address: str, notebooks: dict, settings: Settings) -> dict:
    """The notebooks with an install cell that asks ``address`` instead of the published release."""
    copies = {name: nbformat.from_dict(notebook) for name, notebook in notebooks.items()}
    for copy in copies.values():
        copy.cells[1].source = copy.cells[1].source.replace(settings.release_url, f"{address}/")
    return copies


def prove(root: Path, names: list[str], kinds: list[str]) -> list[str]:
    """Run notebooks and scripts. Returns the reports of failures.

    Args:
        root: The repository; its site is built.
        names: Notebooks by name; none means all.
        kinds: "ipynb", "py" (whole), "imports", or several of them.
    """
    site = root / "_build" / "html"
    notebooks = {
        path.stem: nbformat.read(path, as_version=4)
        for path in notebooks_in(site / "notebooks")
        if not names or path.stem in names
    }
    if not notebooks:
        return [f"no such notebook under {site / 'notebooks'}: run make book first"]
    with standin.environment(root) as python:
        return _prove_in(python, root, notebooks, kinds)


def _prove_in(python: Path, root: Path, notebooks: dict, kinds: list[str]) -> list[str]:
    settings, site = read_settings(root), root / "_build" / "html"
    files = [(name, kind) for kind in kinds if kind != "imports" for name in notebooks]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, served(site) as address:
        scratch = Path(folder)
        env = standin.child_environment(python, scratch)
        here = led_to(address, notebooks, settings)
        if complaint := install_as_a_reader_would(here, python, scratch, env):
            return [complaint]
        installed = standin.freeze(python)

        def one(file: tuple[str, str]) -> str | None:
            started = time.monotonic()
            name, kind = file
            if kind == "ipynb":
                report = run_notebook(notebooks[name], name, python, scratch, env)
            else:
                script = (site / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
                report = run_script(script, name, python, scratch, env)
            seconds = time.monotonic() - started
            print(f"{name}.{kind}: {'FAILED' if report else 'ok'}, {seconds:.0f} s", flush=True)
            return report

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            reports = [report for report in pool.map(one, files) if report]
        if "imports" in kinds and (report := run_imports(notebooks, python, scratch, env)):
            reports.append(report)
        if standin.freeze(python) != installed:
            reports.append("a notebook changed what is installed")
    return reports


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="notebooks, by name; default: all")
    parser.add_argument("--kind", choices=["ipynb", "py", "imports"], help="only these")
    options = parser.parse_args(arguments)
    kinds = [options.kind] if options.kind else ["ipynb", "py"]
    reports = prove(ROOT, options.names, kinds)
    print("\n\n".join(reports), file=sys.stderr, end="\n" if reports else "")
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
