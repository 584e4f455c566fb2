"""One page -> one notebook: plain cells, no outputs, ids that stay when other cells change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from website.pages.markdown import details, fence, paragraphs
from website.pages.myst import Block, Directive, Fence, Page, PageError, Text
from website.pages.settings import Settings
from website.syntax import DIRECTIVES

from .roles import PageLinks

# What the package needs beside itself, as Python and as pip call it.
NEEDED = {
    "torch": "torch",
    "torchvision": "torchvision",
    "matplotlib": "matplotlib",
    "einops": "einops",
    "sklearn": "scikit-learn",
    "scipy": "scipy",
    "PIL": "pillow",
    "safetensors": "safetensors",
    "tqdm": "tqdm",
}
NEEDED_BY_SOME = ("timm",)  # told only in notebooks that import it
TAGS = {"hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell"}
TAGS |= {"deeper"}  # on the site it moves into the box before it
CODE = {"code-cell"}
GATES = {"exercise-start", "exercise-end", "solution-start", "solution-end"}
SOLUTION = "solution"  # the tag of a Markdown cell whose code must pass; see run_notebooks.py

BOOTSTRAP = """\
# Installs the course's package and nothing else; where it is installed, it installs nothing.
import importlib.util
from pathlib import Path

if importlib.util.find_spec("vitbook") is None:
    beside = Path("{wheel}")  # handed out with this notebook? Then no network is needed.
    package = beside if beside.is_file() else "{wheel_url}"
    %pip install -q --no-deps "{{package}}"
    importlib.invalidate_caches()

{missing}
"""
BOOTSTRAP_SCRIPT = """\
import importlib.util

if importlib.util.find_spec("vitbook") is None:
    raise SystemExit("This script needs the package: pip install {wheel_url}")

{missing}
"""
MISSING = """\
needed = {needed}
missing = [name for module, name in needed.items() if importlib.util.find_spec(module) is None]
if missing:
    raise ModuleNotFoundError("This notebook also needs: pip install " + " ".join(missing))\
"""
COLLECT = """
from vitbook.book.checks import collect

collect()  # a check that does not hold says what it found; in a notebook the next line runs\
"""


class Exporter:
    """Writes the cells of one page.

    Top-level directives are either cells (``code-cell``), gates around cells (exercises and
    solutions) or plain Markdown; ``body`` and ``text`` serve the directives that nest others.
    """

    def __init__(self, page: Page, links: PageLinks) -> None:
        self.page, self.links = page, links
        self._cells: list = []
        self._waiting: list[str] = []  # Markdown of the cell being filled
        self._solution: Directive | None = None

    def notebook(self) -> nbformat.NotebookNode:
        """The whole notebook, with the link back and the install cell in front."""
        for block, following in zip_longest(self.page.blocks, self.page.blocks[1:]):
            self._top_level(_opened(block) if _is_deeper(following) else block)
        if self._solution:
            raise PageError(self.page.path, self._solution.line, "this solution has no end")
        self._flush()
        title, introduction = self._title()
        self._cells[:1] = [
            new_markdown_cell(f"{title}\n\n{self._link_back()}"),
            new_code_cell(bootstrap(BOOTSTRAP + COLLECT, self.links.settings, self._cells)),
            *([new_markdown_cell(introduction)] if introduction else []),
        ]
        _set_ids(self._cells, self.page.path.stem)
        metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        notebook = new_notebook(cells=self._cells, metadata=metadata)
        nbformat.validate(notebook)
        return notebook

    def body(self, directive: Directive, start: int = 0, end: int | None = None) -> str:
        """Markdown of the lines of a directive's body from ``start`` to ``end``."""
        return paragraphs(*map(self.markdown, directive.blocks(start, end)))

    def text(self, text: str, line: int) -> str:
        """Markdown of a stretch of text."""
        return self.links.plain(text, self.page.path, line)

    def markdown(self, block: Block) -> str:
        """Markdown of a block that is no cell."""
        if isinstance(block, Text):
            return self.text(block.text, block.line)
        if isinstance(block, Fence):
            return block.text
        if block.name in CODE | GATES:
            raise self._error(block, "stands inside another directive; it must stand on its own")
        if block.name not in DIRECTIVES:
            raise self._error(block, "is not translated: Colab would show it as raw text")
        try:
            markdown = DIRECTIVES[block.name](block, self)
        except PageError:
            raise
        except (KeyError, ValueError, OSError) as error:
            reason = error.args[0] if isinstance(error, KeyError) else error
            raise self._error(block, f"cannot be translated: {reason}") from error
        rest = re.sub(r"[^>]", " ", block.prefix)
        first, *more = markdown.splitlines() or [""]
        indented = (rest + line if line else rest.rstrip() for line in more)
        return "\n".join([block.prefix + first if first else "", *indented])

    def _top_level(self, block: Block) -> None:
        if isinstance(block, Directive) and block.name in CODE:
            self._code(block)
        elif isinstance(block, Directive) and block.name in GATES:
            self._gate(block)
        elif isinstance(block, Text):
            for part in _sections(block):
                if part.text.lstrip().startswith("#"):
                    self._flush()
                self._waiting.append(self.markdown(part))
        else:
            self._waiting.append(self.markdown(block))

    def _code(self, block: Directive) -> None:
        tags = block.tags
        if unknown := tags - TAGS:
            raise self._error(block, f"has a tag with no meaning in Colab: {', '.join(unknown)}")
        if self._solution:
            self._waiting.append(fence(block.text, "python"))
            return
        self._flush()
        cell = new_code_cell(block.text)
        if tags:
            cell.metadata["tags"] = sorted(tags)
        if tags & {"hide-input", "hide-cell", "remove-input", "remove-cell"}:
            cell.metadata["jupyter"] = {"source_hidden": True}
        self._cells.append(cell)

    def _gate(self, block: Directive) -> None:
        """Exercises get a heading; a solution becomes one folded cell whose code does not run."""
        if block.name == "exercise-start":
            self._flush()
            number = self._number(block, block.options.get("label", ""))
            title = self.text(block.argument, block.line)
            self._waiting.append(f"### {number}: {title}" if title else f"### {number}")
        elif block.name == "solution-start":
            self._flush()
            self._solution = block
        elif block.name == "solution-end":
            if self._solution is None:
                raise self._error(block, "ends a solution that was never begun")
            number = self._number(self._solution, self._solution.argument)
            folded = details(f"Solution to {number}", "\n\n".join(self._waiting))
            self._waiting, self._solution = [], None
            cell = new_markdown_cell(folded)
            cell.metadata["tags"] = [SOLUTION]
            self._cells.append(cell)
        else:
            self._flush()

    def _number(self, block: Directive, label: str) -> str:
        """An exercise's number on the built page, such as "Exercise 2"."""
        try:
            return self.links.site.number(label)
        except KeyError as error:
            raise self._error(block, f"has no label with a number: {error.args[0]}") from error

    def _flush(self) -> None:
        if self._solution:
            return
        text = paragraphs(*self._waiting)
        self._waiting = []
        if text:
            self._cells.append(new_markdown_cell(text))

    def _title(self) -> tuple[str, str]:
        """The page's title line and what follows it before the next heading or cell."""
        first = self._cells[0] if self._cells else new_code_cell()
        title, _, rest = first.source.partition("\n")
        if first.cell_type != "markdown" or not title.startswith("# "):
            raise PageError(self.page.path, 1, "the page does not begin with its title")
        return f"# {self.links.numbered(title[2:])}", rest.strip("\n")

    def _link_back(self) -> str:
        settings = self.links.settings
        _, address = self.links.site.document(self.links.document)
        return (
            f"*This notebook is made from [the page]({address}) of "
            f"[{settings.title}]({settings.release_url}), which shows the figures and numbers of "
            f"its last build. Run the next cell first.*"
        )

    def _error(self, block: Directive, what: str) -> PageError:
        return PageError(self.page.path, block.line, f"{{{block.name}}} {what}")


def write_notebook(notebook: nbformat.NotebookNode) -> str:
    return nbformat.writes(notebook) + "\n"


def bootstrap(
    template: str, settings: Settings, cells: Sequence[nbformat.NotebookNode] = ()
) -> str:
    """The first code cell: the package, and the names of what else is missing.

    Args:
        template: ``BOOTSTRAP`` or ``BOOTSTRAP_SCRIPT``, with ``COLLECT`` for a page.
        settings: The address of the package.
        cells: Of the notebook, whose imports are looked through.
    """
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    imports = re.compile(rf"^\s*(?:import|from) ({'|'.join(NEEDED_BY_SOME)})\b", re.M)
    some = sorted(set(imports.findall(code)))
    needed = NEEDED | {name: name for name in some}
    listed = "".join(f'    "{module}": "{name}",\n' for module, name in needed.items())
    missing = MISSING.format(needed="{\n" + listed + "}")
    cell = template.format(wheel=settings.wheel, wheel_url=settings.wheel_url, missing=missing)
    return cell.strip()


def write_script(notebook: nbformat.NotebookNode, settings: Settings) -> str:
    """The notebook as a plain Python script in percent format."""
    copy = nbformat.from_dict(notebook)
    copy.cells[1].source = bootstrap(BOOTSTRAP_SCRIPT + COLLECT, settings, notebook.cells)
    return jupytext.writes(copy, fmt="py:percent")


def _is_deeper(block: Block | None) -> bool:
    return isinstance(block, Directive) and block.name in CODE and "deeper" in block.tags


def _opened(block: Block) -> Block:
    """A box whose cells follow it: they cannot be folded into it, so it stands open above them."""
    if isinstance(block, Directive) and block.name == "dropdown":
        return replace(block, options={**block.options, "open": ""})
    return block


def _sections(block: Text) -> list[Text]:
    """Cut text before its headings, so that each section is a cell of its own."""
    parts, start = [], 0
    lines = block.text.split("\n")
    for at, line in enumerate([*lines, "# end"]):
        if re.match(r"^#{1,6} ", line):
            if any(text.strip() for text in lines[start:at]):
                parts.append(Text(block.line + start, "\n".join(lines[start:at])))
            start = at
    return parts


def _set_ids(cells: list, stem: str) -> None:
    """An id is a digest of the cell's text, so editing one cell leaves the other ids alone."""
    seen: set[str] = set()
    for cell in cells:
        repeat = 0
        while True:
            whole = f"{stem}\0{cell.cell_type}\0{cell.source}\0{repeat}"
            cell.id = hashlib.sha256(whole.encode()).hexdigest()[:12]
            if cell.id not in seen:
                break
            repeat += 1
        seen.add(cell.id)


def stem_of(document: str) -> str:
    return Path(document).name
