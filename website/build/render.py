"""Render the pages with Sphinx, and read again only those that were edited.

Sphinx reads each page into a tree, then writes the trees as HTML. All pages are written every
time, into an empty folder: each reference is resolved anew, and no page outlives its source. But
the tree of a page that nobody edited is the one of last time. It is used again as long as

- the last rendering gave no warning,
- nothing that is no page has changed: settings, literature, package, website, lock file,
- the page's text and its run in the cache are the same, byte by byte (not by dates).

Otherwise the page, or in the first two cases every page, is read anew. A page that looks at other
pages while it is read (`note_reread` in website/) is read anew each time. Those of the package say
where each name comes in, those of the records what was asked and who reads a record: they are read
anew when that has changed.
"""

import gc
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nbformat import NotebookNode

from website.build.inputs import digest, hashes
from website.pages.changelog import NAME
from website.pages.introductions import introductions
from website.pages.settings import read_settings
from website.pages.source import Book, read_book
from website.syntax.records import questions, readers

WATCHED = ["_config.yml", "_toc.yml", "requirements.txt", "pyproject.toml", "README.md", NAME]
API, RECORDS = "book/appendix/api", "book/appendix/records"  # how pages are called that they make
QUESTIONS = "experiments"
WATCHED_FOLDERS = ["assignments", "book", "src", "website"]


def watched(root: Path) -> dict[str, str]:
    """Each file that the site is made from, with a hash of its bytes; what the experiments ask."""
    asked = digest({folder: f"{asks} {names}" for folder, (asks, names) in questions(root).items()})
    return hashes(root, WATCHED, WATCHED_FOLDERS) | {QUESTIONS: asked}


class Trees:
    """The trees of the last rendering, and what they were read from.

    Args:
        root: the repository.
        build: the folder `_build`, whose cache holds the runs of all pages.
    """

    def __init__(self, root: Path, build: Path) -> None:
        self.folder, self.stamp = build / ".doctrees", build / "trees.json"
        self.glued = build / "jupyter_execute"  # myst-nb writes it while it reads a page
        files = watched(root)
        pages = {name: files.pop(name) for name in [*files] if is_page(name)}
        files.pop(NAME, None)  # the page that shows it is read anew each time
        asked = files.pop(QUESTIONS)
        digests = build / ".jupyter_cache" / "digests.json"
        runs = json.loads(digests.read_text()) if digests.is_file() else {}
        self.rest = digest({"": str(root.resolve()), **files})
        self.pages = {
            name: digest({name: content, "run": json.dumps(runs.get(page_name(name)))})
            for name, content in pages.items()
        }
        if made := [name for name in self.pages if name.startswith((API, RECORDS))]:
            book = read_book(root)
            seen = {API: introduced(book), RECORDS: asked + read(book)}
            for start, what in seen.items():
                self.pages |= {n: self.pages[n] + what for n in made if n.startswith(start)}

    def prepare(self) -> None:
        """Remove what must be read anew; until `keep`, the rest is not to be trusted either."""
        last = json.loads(self.stamp.read_text()) if self.stamp.is_file() else {}
        self.stamp.unlink(missing_ok=True)
        if last.get("rest") != self.rest or last["pages"].keys() != self.pages.keys():
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(self.glued, ignore_errors=True)
            return
        for name, content in self.pages.items():
            if last["pages"][name] != content:  # Sphinx reads a page that has no tree
                (self.folder / f"{page_name(name)}.doctree").unlink(missing_ok=True)
                (self.glued / f"{page_name(name)}.glue.json").unlink(missing_ok=True)

    def keep(self) -> None:
        """All is well: use the trees the next time."""
        self.stamp.write_text(json.dumps({"rest": self.rest, "pages": self.pages}, indent=1))


def introduced(book: Book) -> str:
    """Where the pages bring in each name of the package, in few characters."""
    found = introductions(book)
    return digest(
        {".".join(name): f"{one.at} {one.slug} {one.verb}" for name, one in found.items()}
    )


def read(book: Book) -> str:
    """Which pages read which record, in few characters."""
    found = sorted(readers(book).items())
    return digest({name: str([page.name for page in by]) for name, by in found})


def is_page(name: str) -> bool:
    return name.startswith("book/") and name.endswith(".md") and "/_" not in name


def page_name(name: str) -> str:
    return name.removeprefix("book/").removesuffix(".md")


def render(root: Path, build: Path) -> bool:
    """Render the book into an empty ``build/html``; False where Sphinx warned of anything."""
    trees = Trees(root, build)
    trees.prepare()
    shutil.rmtree(build / "html", ignore_errors=True)
    well = sphinx(root, build, root / "_toc.yml", strict=True, fresh=False) == 0
    if well:
        trees.keep()
    return well


def sphinx(
    root: Path, build: Path, toc: Path, strict: bool, fresh: bool = True, runs: Path | None = None
) -> int:
    """Render the pages of ``toc`` into ``build/html``.

    Args:
        strict: a warning is a failure.
        fresh: read all pages anew, whatever trees there are.
        runs: the folder whose cache holds the runs of the pages; default: ``build``.
    """
    from jupyter_book.sphinx import build_sphinx
    from myst_nb.core.execute import cache

    cache.single_nb_execution = only_empty
    gc.set_threshold(200_000, 20, 20)  # trees are many objects in use: look through them seldom
    result = build_sphinx(
        sourcedir=root / "book",
        outputdir=build / "html",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={
            "external_toc_path": toc.as_posix(),
            "latex_individualpages": False,
            "nb_execution_cache_path": str((runs or build) / ".jupyter_cache"),
            "nitpicky": True,
            "release": read_settings(root).version,
        },
        freshenv=fresh,
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
        raise RuntimeError(
            "a chapter is not in the cache: run website/build/execute.py before Sphinx"
        )
    return SimpleNamespace(nb=notebook, err=None, exc_string=None, time=0.0)
