"""Export every page with code cells as a notebook without outputs, and put the package beside it.

    python tools/export_notebooks.py            into _build/html/notebooks, for the site

Each page becomes a notebook and a Python script, and the package's wheel of this very build lies
beside them: what is read, run and installed is one build. Nothing of it is committed.

How a solution is treated: an exercise's stub is a code cell, its solution a folded Markdown cell
(tag "solution") that holds the code as text. So "Run all" runs the learner's own answer, and
tools/run_notebooks.py still proves that the printed solution passes its check.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import subprocess
import sys
from pathlib import Path

from notebook_export.notebook import Exporter, stem_of, write_notebook, write_script
from notebook_export.reader import PageError, read_page
from notebook_export.references import References
from notebook_export.roles import PageLinks
from notebook_export.settings import Settings, read_settings
from notebook_export.site import Site

ROOT = Path(__file__).resolve().parents[1]


def export(settings: Settings, build: Path) -> dict[str, str]:
    """File name -> content, for the notebook and the script of each page with code cells."""
    site = Site(build, settings.release_url)
    pages = {name: read_page(settings.source(name)) for name in settings.documents}
    references = _references(settings, site, pages)
    files: dict[str, str] = {}
    for name, page in pages.items():
        if not page.is_notebook:
            continue
        stem = stem_of(name)
        if f"{stem}.ipynb" in files:
            raise PageError(page.path, 1, f"another page is called {stem} too")
        links = PageLinks(settings, site, references, name)
        notebook = Exporter(page, links).notebook()
        files[f"{stem}.ipynb"] = write_notebook(notebook)
        files[f"{stem}.py"] = write_script(notebook, settings)
    return files


def _references(settings: Settings, site: Site, pages: dict) -> References:
    for name in pages:
        if "```{bibliography}" in settings.source(name).read_text(encoding="utf-8"):
            _, url = site.document(name)
            page = site.page(url.removeprefix(settings.release_url))
            return References(list(settings.bib_files), page, url)
    return References(list(settings.bib_files), None, settings.release_url)


def build_wheel(root: Path, folder: Path) -> None:
    """Put the package's wheel into `folder`; the same sources give the same bytes."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the package's wheel could not be built:\n{done.stdout}{done.stderr}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--build", type=Path, help="the build folder; default: ROOT/_build")
    options = parser.parse_args(arguments)
    settings = read_settings(options.root)
    build = options.build or settings.root / "_build"
    try:
        files = export(settings, build)
    except (PageError, KeyError) as error:
        message = str(error.args[0]).replace(f"{settings.root}/", "")
        print(f"export_notebooks: {message}", file=sys.stderr)
        return 1
    folder = build / "html" / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    build_wheel(settings.root, folder)
    print(f"Exported {len(files) // 2} notebooks and the package to {folder}.")
    return 0


if __name__ == "__main__":
    gc.disable()  # the trees of all pages stay: no garbage to look for, a fifth of the time
    sys.exit(main())
