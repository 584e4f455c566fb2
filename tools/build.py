"""Build the site: execute what changed, render the pages, export the notebooks, check the result.

    python -m tools.build           the whole book, into _build/html

When nothing changed since the last good build it says so and stops. Rendering always starts from
a clean slate: it takes seconds, and remembered pages could hide a warning or an old output.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nbformat import NotebookNode

from tools import check_site, export_notebooks
from tools.execute import cell_timeout, execute
from tools.settings import read_settings
from tools.site import Memory, Site, digest
from tools.sphinx_once import worked_out_once

ROOT = Path(__file__).resolve().parents[1]
WATCHED = ["_config.yml", "_toc.yml", "requirements.txt", "pyproject.toml", "README.md"]
WATCHED_FOLDERS = ["assignments", "book", "src", "tools"]


def sphinx(root: Path, build: Path, toc: Path, strict: bool) -> int:
    """Render the pages of ``toc`` into ``build/html``; with ``strict`` a warning is a failure."""
    from jupyter_book.sphinx import build_sphinx
    from myst_nb.core.execute import cache

    cache.single_nb_execution = only_empty
    with worked_out_once(build / "colours.json"):
        result = build_sphinx(
            sourcedir=root / "book",
            outputdir=build / "html",
            noconfig=True,
            path_config=root / "_config.yml",
            confoverrides={
                "external_toc_path": toc.as_posix(),
                "latex_individualpages": False,
                "nitpicky": True,
                "release": read_settings(root).version,
            },
            freshenv=True,
            force_all=True,
            warningiserror=strict,
            keep_going=True,
            quiet=True,
        )
    return result if isinstance(result, int) else 1


def only_empty(notebook: NotebookNode, **options: Any) -> SimpleNamespace:
    """Stands in for myst-nb's own executor, which knows nothing of our rules for kernels: what
    has code must be in the cache by now."""
    if any(cell.cell_type == "code" and cell.source.strip() for cell in notebook.cells):
        raise RuntimeError("a chapter is not in the cache: run tools/execute.py before Sphinx")
    return SimpleNamespace(nb=notebook, err=None, exc_string=None, time=0.0)


def say_where(build: Path) -> None:
    page = build / "html" / "index.html"
    print(f"The site is in {page.parent}\nOpen {page.as_uri()} or run: make serve")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="also when nothing has changed")
    parser.add_argument("--verbose", action="store_true", help="a line for each cell that was run")
    options = parser.parse_args()
    build = ROOT / "_build"
    stamp = build / "site.json"
    started = time.monotonic()
    inputs = digest(ROOT, WATCHED, WATCHED_FOLDERS)  # before: an edit made meanwhile counts as new
    good = json.loads(stamp.read_text()) if stamp.is_file() else {}
    if not options.force and good == {"inputs": inputs} and (build / "html/index.html").is_file():
        print("Nothing has changed since the last build.")
        say_where(build)
        return 0
    stamp.unlink(missing_ok=True)
    jobs = min(2, os.cpu_count() or 1)
    if failures := execute(ROOT, build, [], jobs, cell_timeout(ROOT), options.verbose):
        print("\n".join(failures), file=sys.stderr, end="")
        raise SystemExit("make book: cells failed (above); the site is not finished.")
    print("Rendering the pages", flush=True)
    shutil.rmtree(build / "html", ignore_errors=True)  # no page outlives its source
    if sphinx(ROOT, build, ROOT / "_toc.yml", strict=True):
        raise SystemExit("make book: warnings or errors (above); the site is not finished.")
    (build / "html" / ".nojekyll").touch()  # so that GitHub Pages serves _static as well
    memory = Memory(build / "site-facts.json")
    site = Site(build / "html", ROOT, memory)  # read once, for the notebooks and for the check
    try:
        export_notebooks.write(read_settings(ROOT), site)
    except ValueError as error:
        raise SystemExit(f"make book: {error}; the site is not finished.") from None
    defects = check_site.report(site)
    memory.save()
    if defects:
        raise SystemExit("make book: the site has defects (above); it is not finished.")
    stamp.write_text(json.dumps({"inputs": inputs}))
    print(f"Built in {time.monotonic() - started:.0f} s.")
    say_where(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
