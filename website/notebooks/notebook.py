"""One page -> one notebook: plain cells, no outputs, ids that stay when other cells change."""

import ast
import base64
import copy
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from website.pages.cells import parts, settles, shows_table
from website.pages.markdown import details, paragraphs
from website.pages.myst import Block, Directive, Fence, Page, PageError, Text
from website.pages.settings import Settings
from website.syntax import DIRECTIVES
from website.syntax.live import cell_for, read_live, runs_in_notebook
from website.syntax.predict import PARAMETER, Predict, asked_for, parameter, read_prediction

from .code import (
    bound,
    checks_in,
    draws,
    glues_inside,
    imports_in,
    is_glue,
    is_import,
    merged,
    own_names,
    renamed,
    without,
)
from .roles import PageLinks
from .titles import title_of

NEEDED_BY_SOME = ("timm",)  # looked for only in notebooks that import it
TAGS = {"hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell"}
TAGS |= {"deeper"}  # on the site it moves into the box before it
CODE = {"code-cell"}
GATES = {"exercise-start", "exercise-end", "solution-start", "solution-end"}
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
# What every reader of notebooks folds a cell by: Colab, JupyterLab, Kaggle, Jupyter Book.
FOLDED: dict[str, Any] = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "_kg_hide-input": True,
    "tags": ["hide-input"],
}
SOLUTION = "solution"  # the tag of a solution's cell

BOOTSTRAP = """\
#@title Setup: installs the course's package, imports. Run it first, and again after a restart
import importlib.metadata
from pathlib import Path

if {version!r} not in [found.version for found in importlib.metadata.distributions(name="vitbook")]:
    beside = Path("{wheel}")  # handed out with this notebook? Then no network is needed.
    package = beside if beside.is_file() else "{wheel_url}"
    %pip install -q --no-deps "{{package}}"
    importlib.invalidate_caches()
"""
BOOTSTRAP_SCRIPT = """\
import importlib.util

if importlib.util.find_spec("vitbook") is None:
    raise SystemExit("This script needs the package: pip install {wheel_url}")
"""
LOOK = "\nfrom vitbook.book.needed import look_for\n\nlook_for("  # what else is missing
KIT = ("set_up", "predict", "result_of", "show_live", "still_open")  # of vitcheck.notebook
BEGIN = """
from vitcheck.notebook import {names}

set_up()  # from here on a check that does not hold says so, and the next line runs
"""


@dataclass
class Prediction:
    """The latest prediction, while the section goes on in which it stands."""

    name: str
    level: int  # of the section's heading
    cell: nbformat.NotebookNode  # in which it is answered
    key: str
    shown: bool = False  # has a cell shown what happened?


class Exporter:
    """Writes the cells of one page.

    Top-level directives are either cells (``code-cell``), gates around cells (exercises and
    solutions) or plain Markdown; ``body`` and ``text`` serve the directives that nest others.
    ``opening`` writes what stands below the title.
    """

    def __init__(self, page: Page, links: PageLinks, opening: Callable[[], str] = str) -> None:
        self.page, self.links, self.opening = page, links, opening
        self._cells: list = []
        self._waiting: list[str] = []  # Markdown of the cell being filled
        self._solution: Directive | None = None
        self._solved: list[str] = []  # the code of the solution
        self._renamed: dict[str, str] = {}  # names of the solutions so far
        self._exercise = ""  # the number of the one that is open
        self._heading, self._level, self._tables = "", 1, 0
        self._claim = ""  # what people say, where the block before is a claim
        self._asked: Prediction | None = None
        self._explained = ""  # what happened, for below the next cell
        self._buttons: list[str] = []  # links to figures above, which have these words as buttons
        self._predictions: dict[str, str] = {}  # name -> where it stands
        self._exercises: dict[str, str] = {}  # check -> number
        codes = [one.text for one in page.blocks if _is_cell(one)]
        self._setup: list[str] = []
        self._glues = any(map(glues_inside, codes))
        self._names = Counter(name for code in codes for name in bound(without(code, is_import)))
        if taken := sorted({PARAMETER, *KIT} & self._names.keys()):
            raise PageError(page.path, 1, f"a cell binds {taken[0]}, which the notebook needs")

    def notebook(self) -> nbformat.NotebookNode:
        """The whole notebook, with its opening and the set-up in front."""
        for block, following in zip_longest(self.page.blocks, self.page.blocks[1:]):
            self._top_level(_opened(block) if _is_deeper(following) else block, following)
        if self._solution:
            raise PageError(self.page.path, self._solution.line, "this solution has no end")
        self._flush()
        self._still_open()
        title, introduction = self._title()
        code = "\n".join(cell.source for cell in self._cells if cell.cell_type == "code")
        setup = bootstrap(self.links.settings, "\n".join([*self._setup, code]))
        used = [name for name in KIT if name == "set_up" or f"{name}(" in code]
        begin = BEGIN.format(names=", ".join(used))
        imports = "\n".join(merged(self._setup))
        self._cells[:1] = [
            new_markdown_cell(paragraphs(title, self.opening())),
            folded_cell(f"{setup}\n{imports}\n{begin}".rstrip("\n")),
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

    def _top_level(self, block: Block, following: Block | None) -> None:
        if isinstance(block, Directive) and block.name in CODE:
            self._code(block, self._claim)
        elif isinstance(block, Directive) and block.name in GATES:
            self._gate(block)
        elif isinstance(block, Directive) and block.name == "predict" and not block.prefix:
            self._predict(block, following)
        elif isinstance(block, Directive) and block.name == "live" and not block.prefix:
            self._live(block)
        elif isinstance(block, Text):
            for part in _sections(block):
                if part.text.lstrip().startswith("#"):
                    self._flush()
                    self._begin_section(part)
                self._waiting.append(self.markdown(part))
        else:
            self._tables += isinstance(block, Directive) and block.name == "list-table"
            self._waiting.append(self.markdown(block))
        self._claim = ""
        if isinstance(block, Directive) and block.name == "claim":
            self._claim = block.options["says"]

    def _begin_section(self, part: Text) -> None:
        marks, _, title = part.text.lstrip().partition("\n")[0].partition(" ")
        self._heading, self._level = self.text(title, part.line), len(marks)
        if self._asked and self._level <= max(self._asked.level, 2):
            self._asked = None

    def _code(self, block: Directive, claim: str) -> None:
        tags, code = block.tags, block.text
        if unknown := tags - TAGS:
            raise self._error(block, f"has a tag with no meaning in Colab: {', '.join(unknown)}")
        if self._solution:
            self._solved.append(without(code, self._drops))
            return
        self._flush()
        first, found = not self._setup, parts(code)
        setup, below = without(found.setup, self._drops), code.removeprefix(found.setup)
        if first and setup:
            self._setup, setup = [f"{setup}\n"], ""
        else:
            self._setup += filter(self._is_free, imports_in(setup))
            setup = without(setup, lambda one: is_import(one) and self._is_free(ast.unparse(one)))
        if self._exercise:
            self._exercises |= dict.fromkeys(checks_in(code), self._exercise)
            self._add(f"{setup}\n{below}", "")
            return
        proves = claim and settles(code)
        whole = proves or (tags & HIDDEN and found.words is None)
        shown, check = (below, "") if whole else (found.shown, found.check)
        shown = f"{setup}\n{shown}".strip("\n")
        hidden = proves or tags & HIDDEN or shows_table(code)
        self._tables += shows_table(code)
        for piece, words in ((shown, None), (check, found.words)):
            if text := without(piece, self._drops):
                title = self._titled(text, words, claim) if hidden or piece is check else ""
                self._add(text, title)
                hidden = True

    def _titled(self, code: str, words: str | None, claim: str) -> str:
        """The title of a folded cell. Below a prediction the words of a check may tell."""
        words = "" if self._asked else words or ""
        place = self.links.places.get(self.links.document)
        chapter = f"{place.number}." if place and not place.deeper else ""
        table = f"{chapter}{self._tables}"
        return title_of(code, words=words, claim=claim, heading=self._heading, table=table)

    def _is_free(self, statement: str) -> bool:
        """Does nothing else bind what it imports, so that it may stand in the set-up?"""
        return not bound(statement) & self._names.keys()

    def _drops(self, node: ast.stmt) -> bool:
        """Numbers that the text has already, and the import of what glued them."""
        return is_glue(node) and not (self._glues and is_import(node))

    def _add(self, code: str, title: str) -> None:
        """A cell of code, folded where it has a title."""
        code = code.strip("\n")
        if self._asked and draws(code) and not self._exercise:
            again = ", again=True" if self._asked.shown else ""
            code = f'result_of("{self._asked.name}"{again})\n{code}'
            if not self._asked.shown:
                cell, key = self._asked.cell, self._asked.key
                asks = cell.source.removesuffix(_key(key) + ")").removesuffix(")")
                cell.source = f"{asks}{_key(f'>{key}')})"
            self._asked.shown = True
        self._cells.append(
            folded_cell(f"#@title {title}\n{code}") if title else new_code_cell(code)
        )
        if self._explained:
            self._waiting.append(self._explained)
            self._explained = ""

    def _predict(self, block: Directive, following: Block | None) -> None:
        """The question, the cell in which it is answered, and what happened, folded."""
        try:
            read = read_prediction(block.argument, block.options, block.body)
        except ValueError as error:
            raise self._error(block, f"cannot be translated: {error}") from error
        question, explained = Predict.parts_for_notebook(block, self, read)
        self._waiting.append(question)
        self._flush()
        key = read.key
        cell = new_code_cell(
            f'#@title What do you expect? {asked_for(read)} {{ run: "auto" }}\n'
            f"{PARAMETER} = {parameter(read)}\n"
            f'predict("{read.id}", {PARAMETER}{_key(key)})'
        )
        cell.metadata["cellView"] = "form"
        self._cells.append(cell)
        where = self._heading or "before the first section"
        count = sum(one.partition(" (")[0] == where for one in self._predictions.values())
        self._predictions[read.id] = f"{where} ({count + 1})" if count else where
        self._asked = Prediction(read.id, self._level, cell, key)
        if following is not None and _is_cell(following):
            self._explained = explained
        else:
            self._waiting.append(explained)

    def _live(self, block: Directive) -> None:
        """What to try, and below it the figure, where it can run in a notebook. It is closed like
        the cell that shows its prediction's result; where none has, it is no result either."""
        self._waiting.append(self.markdown(block))
        read = read_live(block.argument, block.options, block.body)
        if runs_in_notebook(self, read):
            self._flush()
            code = cell_for(block, self, self.page.path.read_text("utf8"))
            if self._asked and self._asked.shown:
                code = f'result_of("{self._asked.name}", again=True)\n{code}'
            title = self.text(read.title, block.line)
            self._cells.append(folded_cell(f"#@title The live figure: {title}\n{code}"))
            address = re.escape(f"{self.links.here[1]}#{read.anchor}")
            self._buttons.append(rf"\[([^\[\]]+)\]\({address}\)")

    def _gate(self, block: Directive) -> None:
        """Exercises get a heading; a solution is a fold of words and a folded cell of code, which
        runs under names of its own."""
        if block.name == "exercise-start":
            self._flush()
            self._asked = None
            self._exercise = self._number(block, block.options.get("label", ""))
            title = self.text(block.argument, block.line)
            self._waiting.append(
                f"### {self._exercise}: {title}" if title else f"### {self._exercise}"
            )
        elif block.name == "solution-start":
            self._flush()
            self._solution = block
        elif block.name == "solution-end":
            if self._solution is None:
                raise self._error(block, "ends a solution that was never begun")
            self._solve(self._number(self._solution, self._solution.argument))
        else:
            self._flush()
            self._exercise = ""

    def _solve(self, number: str) -> None:
        words, code = "\n\n".join(self._waiting), "\n\n\n".join(self._solved)
        self._waiting, self._solved, self._solution = [], [], None
        if words.strip():
            self._cells.append(new_markdown_cell(details(f"Solution to {number}, in words", words)))
        if code.strip():
            once = Counter(bound(code))
            others = {name for name, count in (self._names - once).items() if count > 0}
            self._renamed |= own_names(code, others)
            cell = folded_cell(
                f"#@title Solution to {number} (your own answer stays)\n"
                + renamed(code, self._renamed)
            )
            cell.metadata["tags"] = [*FOLDED["tags"], SOLUTION]
            self._cells.append(cell)

    def _still_open(self) -> None:
        if not self._predictions and not self._exercises:
            return
        lists = (
            json.dumps(one, ensure_ascii=False) for one in (self._predictions, self._exercises)
        )
        joined = ",\n           ".join(lists)
        call = f"still_open({joined})"
        self._cells.append(folded_cell(f"#@title What is still open\n{call}"))

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
        for one in self._buttons:
            text = re.sub(one, r"*\1*", text)
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

    def _error(self, block: Directive, what: str) -> PageError:
        return PageError(self.page.path, block.line, f"{{{block.name}}} {what}")


def write_notebook(notebook: nbformat.NotebookNode) -> str:
    return nbformat.writes(notebook) + "\n"


def folded_cell(source: str) -> nbformat.NotebookNode:
    """A cell whose code is seen when it is asked for; its first line is its title."""
    cell = new_code_cell(source)
    cell.metadata.update(copy.deepcopy(FOLDED))
    return cell


def bootstrap(settings: Settings, code: str = "", template: str = BOOTSTRAP) -> str:
    """The first lines of the first code cell: the package, and the names of what else is missing.

    Args:
        settings: The address of the package.
        code: Of the notebook, whose imports are looked through.
        template: ``BOOTSTRAP`` or ``BOOTSTRAP_SCRIPT``.
    """
    imports = re.compile(rf"^\s*(?:import|from) ({'|'.join(NEEDED_BY_SOME)})\b", re.M)
    more = ", ".join(f'"{name}"' for name in sorted(set(imports.findall(code))))
    given = {"version": settings.version, "wheel": settings.wheel, "wheel_url": settings.wheel_url}
    installs = template.format(**given)
    return f"{installs}{LOOK}{more})\n"


def write_script(notebook: nbformat.NotebookNode, settings: Settings) -> str:
    """The notebook as a plain Python script in percent format."""
    script = nbformat.from_dict(notebook)
    installs = bootstrap(settings, template=BOOTSTRAP_SCRIPT).partition(LOOK)[0]
    rest = script.cells[1].source.partition(LOOK)[1:]
    script.cells[1].source = installs + "".join(rest)
    return jupytext.writes(script, fmt="py:percent")


def _is_cell(block: Block | None) -> bool:
    return isinstance(block, Directive) and block.name in CODE


def _key(key: str) -> str:
    return f', "{base64.b64encode(key.encode()).decode()}"' if key else ""


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
