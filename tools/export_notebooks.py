"""Export every page with code cells as a notebook for Colab, without outputs.

    python tools/export_notebooks.py            write notebooks/ and the site's downloads
    python tools/export_notebooks.py --check    write nothing; fail if a notebook is stale

The notebooks in notebooks/ are generated and committed. Never edit them: edit the page and build.
The site offers the same notebooks, and each as a Python script, under _build/html/notebooks/.

How a solution is treated: an exercise's stub is a code cell, its solution a folded Markdown cell
(tag "solution") that holds the code as text. So "Run all" runs the learner's own answer, and
tools/run_notebooks.py still proves that the printed solution passes its check.
"""

from __future__ import annotations

import argparse
import gc
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
    site = Site(build, settings.site_url)
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
        files[f"{stem}.py"] = write_script(notebook, settings.requirement)
    return files


def _references(settings: Settings, site: Site, pages: dict) -> References:
    for name in pages:
        if "```{bibliography}" in settings.source(name).read_text(encoding="utf-8"):
            _, url = site.document(name)
            page = site.page(url.removeprefix(settings.site_url))
            return References(list(settings.bib_files), page, url)
    return References(list(settings.bib_files), None, settings.site_url)


def findings(folder: Path, files: dict[str, str]) -> list[str]:
    """What is stale, missing or orphaned among the committed notebooks."""
    wanted = {name: text for name, text in files.items() if name.endswith(".ipynb")}
    found = []
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{path}: missing")
        elif path.read_text(encoding="utf-8") != text:
            found.append(f"{path}: stale: its page has changed since it was exported")
    extra = sorted(path for path in folder.glob("*") if path.name not in wanted)
    return found + [f"{path}: orphaned: no page of _toc.yml makes it" for path in extra]


def write(folder: Path, files: dict[str, str]) -> None:
    """Make `folder` hold exactly these files; unchanged ones are not touched."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, name what is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--build", type=Path, help="the build folder; default: ROOT/_build")
    options = parser.parse_args(arguments)
    settings = read_settings(options.root)
    build = options.build or settings.root / "_build"
    folder = settings.root / "notebooks"
    try:
        files = export(settings, build)
    except (PageError, KeyError) as error:
        message = str(error.args[0]).replace(f"{settings.root}/", "")
        print(f"export_notebooks: {message}", file=sys.stderr)
        return 1
    if options.check:
        found = findings(folder, files)
        print("\n".join(found) or f"{len(files) // 2} notebooks, all fresh")
        return 1 if found else 0
    notebooks = {name: text for name, text in files.items() if name.endswith(".ipynb")}
    write(folder, notebooks)
    write(build / "html" / "notebooks", files)
    print(f"Exported {len(notebooks)} notebooks to {folder} and to the site.")
    return 0


if __name__ == "__main__":
    gc.disable()  # the trees of all pages stay: no garbage to look for, a fifth of the time
    sys.exit(main())
