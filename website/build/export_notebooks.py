"""Export every page with code cells as a notebook without outputs, and put the package beside it.

    python -m website.build.export_notebooks            into _build/html/notebooks, for the site

Each page becomes a notebook and a Python script, and the package's wheel of this very build lies
beside them: what is read, run and installed is one build. Nothing of it is committed. The public
variants of the assignments, without solutions, lie there too.

How a solution is treated: an exercise's stub is a code cell, its solution a folded one below it
(tag "solution") with names of its own. So "Run all" leaves the learner's answer as it is, and
tools/run_notebooks.py still proves that the solution passes its check.
"""

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from website.build.chapters import Store
from website.build.inputs import digest, hashes
from website.build.render import watched
from website.build.site import Memory, Site
from website.notebooks.notebook import Exporter, stem_of, write_notebook, write_script
from website.notebooks.roles import PageLinks
from website.notebooks.targets import Targets
from website.pages.counts import count_file
from website.pages.markdown import paragraphs
from website.pages.moved import old_notebooks
from website.pages.myst import PageError, front_matter, read_page
from website.pages.settings import Settings, read_settings
from website.syntax import ROLES
from website.syntax.cards import question

ROOT = Path(__file__).resolve().parents[2]
# What the assignments' notebooks follow from; torch is pinned in the second.
DRAWS = ["_config.yml", "requirements.txt", "pyproject.toml"]
DRAW_FOLDERS = ["assignments", "src", "website"]
COUNTS_OTHERS = re.compile(r"\{minutes\}`(?!this page)")  # it takes minutes of other pages


def export(settings: Settings, memory: Memory | None = None) -> dict[str, str]:
    """File name -> content, for the notebook and the script of each page with code cells; written
    anew when the page has changed, or what it takes from outside."""
    memory, targets = memory or Memory(), Targets(settings.root / "_build", settings.release_url)
    outside = around(settings.root)
    pages = {name: read_page(settings.source(name)) for name in settings.documents}
    files: dict[str, str] = {}
    notebooks = {name for name, page in pages.items() if page.is_notebook}
    for name, page in pages.items():
        if not page.is_notebook:
            continue
        stem = stem_of(name)
        if f"{stem}.ipynb" in files:
            raise PageError(page.path, 1, f"another page is called {stem} too")
        source, costs = page.path.read_text("utf8"), seconds(targets, name)
        facts = memory.of(f"notebook of {name}", f"{outside} {costs} {source}".encode())
        if "files" not in facts or COUNTS_OTHERS.search(source):
            links = PageLinks(settings, targets, name, ROLES)
            notebook = Exporter(page, links, partial(opening, settings, targets, name)).notebook()
            offer_notebooks(notebook, settings, notebooks - {name})
            script = write_script(notebook, settings)
            facts["files"] = {f"{stem}.ipynb": write_notebook(notebook), f"{stem}.py": script}
        files |= facts["files"]
    for old, name in old_notebooks(settings.root).items():
        if f"{stem_of(name)}.ipynb" in files:
            title, address = targets.document(name)
            files[f"{old}.ipynb"] = moved_notebook(stem_of(name), title, address, settings)
    return files


def around(root: Path) -> str:
    """A digest of what a notebook may take from outside its page: settings, code, what the site
    knows, glued numbers."""
    files = watched(root) | hashes(root, ["_build/targets.json"], ["_build/jupyter_execute"])
    mine = ("book/", "_build/jupyter_execute/")  # pages, and what Sphinx makes of them
    return digest(
        {
            name: content
            for name, content in files.items()
            if not (name.startswith(mine) and name.endswith((".md", ".ipynb")))
        }
    )


def seconds(targets: Targets, name: str) -> float | None:
    """What the last run of a page took."""
    return Store(targets.build / ".jupyter_cache").state.get(name, {}).get("seconds")


def opening(settings: Settings, targets: Targets, name: str) -> str:
    """What stands below the title: the question, the minutes, and what "Run all" costs."""
    asked = question(name, front_matter(settings.source(name)).get("card"))
    _, page = targets.document(name)
    costs = ""  # a page that has not been run yet has none
    if spent := seconds(targets, name):
        costs = f" *Run all* takes {about(spent)} on one processor core, and asks nothing."
    return paragraphs(
        f"**{asked}**" if asked else "",
        f"{count_file(settings.source(name))}.{costs} [The page]({page}) of "
        f"[{settings.title}]({settings.release_url}) has the same text, with the figures and the "
        "numbers of its last build.",
    )


def about(seconds: float) -> str:
    """Seconds as one says them: "20 seconds", "a minute", "3 minutes"."""
    if seconds < 50:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    minutes = max(1, round(seconds / 60))
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def offer_notebooks(notebook: nbformat.NotebookNode, settings: Settings, others: set[str]) -> None:
    """Beside the first link to another page stands one to its notebook, in Colab."""
    offered: set[str] = set()

    def with_notebook(match: re.Match[str]) -> str:
        page = match["page"]
        if page not in others or page in offered:
            return match[0]
        offered.add(page)
        return f"{match[0]} ([notebook]({settings.colab_url}{stem_of(page)}.ipynb))"

    address = re.escape(settings.release_url)
    link = re.compile(rf"\]\({address}(?P<page>[\w/]+)\.html(#[^)\s]*)?\)(?![\w’'\]])")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = link.sub(with_notebook, cell.source)


def moved_notebook(stem: str, title: str, page: str, settings: Settings) -> str:
    """What stands at the old path of a notebook: where it is now."""
    words = (
        f"# This notebook has moved\n\nIt is [{title}, in Colab]({settings.colab_url}{stem}.ipynb) "
        f"now, made from [the page]({page})."
    )
    cell = new_markdown_cell(words, id="moved")
    return write_notebook(new_notebook(cells=[cell], metadata={"moved": True}))


def assignments(settings: Settings, memory: Memory) -> dict[str, str]:
    """File name -> content, for the public variant of each assignment; drawn anew when a byte of
    what draws it has changed."""
    masters = sorted((settings.root / "assignments").glob("a*.md"))
    if not masters:
        return {}
    facts = memory.of("assignments", digest(hashes(settings.root, DRAWS, DRAW_FOLDERS)).encode())
    if "files" not in facts:
        from website.assignments.public import student_files  # imports torch; pages do not need it

        drawn = [student_files(path, settings) for path in masters]
        facts["files"] = {name: text for files in drawn for name, text in files.items()}
    return facts["files"]


def build_wheel(root: Path, folder: Path) -> None:
    """Put the package's wheel into ``folder``; the same sources give the same bytes."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the package's wheel could not be built:\n{done.stdout}{done.stderr}")


def write(settings: Settings, site: Site) -> None:
    """Fill the site's folder ``notebooks``: every notebook, every script, and the package.

    Raises:
        ValueError: A page holds what a notebook cannot show, or a target is missing.
    """
    try:
        files = export(settings, site.memory) | assignments(settings, site.memory)
    except (PageError, KeyError) as error:
        message = str(error.args[0]).replace(f"{settings.root}/", "")
        raise ValueError(message) from error
    folder = site.html / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    build_wheel(settings.root, folder)
    scripts = sum(name.endswith(".py") for name in files)
    print(f"Exported {scripts} notebooks and the package to {folder}.")


def main(root: Path = ROOT) -> int:
    try:
        write(read_settings(root), Site(root / "_build" / "html", root))
    except ValueError as error:
        print(f"export_notebooks: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
