"""The pages of the book, each flattened to a list of items in reading order."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from website.pages.contents import Place, places_of, read_yaml, toc_files
from website.pages.meaning import cell_tree
from website.pages.myst import Block, Directive, Fence, Page, PageError, Text, read_page

# What stands in any other directive are words of the page: they are counted and checked
NO_WORDS = {"api", "bibliography", "changes", "chapter-cards", "claims-table", "code-block"}
NO_WORDS |= {"exercise-end", "exercise-start", "include", "install", "literalinclude", "progress"}
NO_WORDS |= {"records", "solution-end", "solution-start", "start", "toctree", "vit-map"}


@dataclass(frozen=True)
class Finding:
    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Item:
    """A heading, a stretch of text, a directive or a code cell."""

    kind: str  # "heading", "text", "directive" or "cell"
    line: int
    text: str  # the heading, the text, the directive's name, or the cell's code
    level: int = 0  # of a heading
    block: Directive | None = None  # what a directive or a cell was read from
    gate: str = ""  # "exercise" or "solution" between their gates

    @property
    def directive(self) -> Directive:
        """What a directive or a cell was read from; headings and text have none."""
        assert self.block is not None
        return self.block

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a cell, with IPython's magics taken out."""
        return cell_tree(self.text)


@dataclass
class Chapter:
    """One page of the table of contents."""

    name: str
    page: Page
    items: list[Item] = field(default_factory=list)
    place: Place | None = None  # of a chapter, and of a page in depth

    @property
    def number(self) -> str | None:
        """The chapter's number in the book; None for front matter and appendix."""
        return self.place.number if self.place and not self.place.deeper else None

    @property
    def belongs_to(self) -> str | None:
        """The number of the chapter that this page is, or goes deeper into."""
        return self.place.number if self.place else None

    @property
    def cells(self) -> list[Item]:
        return [item for item in self.items if item.kind == "cell"]

    def directives(self, *names: str) -> list[Item]:
        return [item for item in self.items if item.kind == "directive" and item.text in names]

    def finding(self, item: Item | None, message: str) -> Finding:
        return Finding(self.page.path, item.line if item else 1, message)


@dataclass
class Book:
    """All pages, in reading order, and the repository they belong to."""

    root: Path
    chapters: list[Chapter]

    @property
    def numbered(self) -> list[Chapter]:
        return [chapter for chapter in self.chapters if chapter.number is not None]


def read_book(root: Path) -> Book:
    """Read every page that ``_toc.yml`` lists."""
    folder = root / read_yaml(root / "_config.yml")["repository"]["path_to_book"]
    names, places = toc_files(read_yaml(root / "_toc.yml")), places_of(root)
    pages = [read_chapter(name, folder / f"{name}.md", places.get(name)) for name in names]
    return Book(root, pages)


def read_chapter(name: str, path: Path, place: Place | None = None) -> Chapter:
    page = read_page(path)
    chapter = Chapter(name, page, list(_gated(_flatten(page.blocks))), place)
    for cell in chapter.cells:
        try:
            _ = cell.tree
        except SyntaxError as error:
            line = cell.directive.body_line + (error.lineno or 1) - 1
            raise PageError(path, line, f"the cell is not Python: {error.msg}") from None
    return chapter


def _flatten(blocks: list[Block]) -> Iterator[Item]:
    for block in blocks:
        if isinstance(block, Text):
            yield from _text(block)
        elif isinstance(block, Directive):
            if block.name == "code-cell":
                yield Item("cell", block.line, block.text, block=block)
                continue
            yield Item("directive", block.line, block.name, block=block)
            if block.name not in NO_WORDS:
                if (words := _words(block)).strip():
                    yield Item("text", block.line, words)
                yield from _flatten(block.blocks())
        else:
            assert isinstance(block, Fence)


def _words(block: Directive) -> str:
    """The words of a container's first lines. What a claim says, which file a figure shows and what
    a prediction is called are not the book's own words."""
    if block.name == "claim":
        return "\n".join(block.options.get(name, "") for name in ("truth", "refuted-by"))
    if block.name == "figure":
        return block.options.get("alt", "")
    if block.name == "predict":
        return " ".join(block.options.get(name, "") for name in ("choices", "number"))
    if block.name == "live":
        return block.options.get("title", "")
    return "" if block.name == "in-depth" else block.argument


def _text(block: Text) -> Iterator[Item]:
    """Text, cut at its headings."""
    waiting: list[str] = []
    start = block.line
    for line, text in enumerate(block.text.split("\n"), block.line):
        if match := re.match(r"(#{1,6}) +(.+)", text):
            if any(part.strip() for part in waiting):
                yield Item("text", start, "\n".join(waiting))
            yield Item("heading", line, match[2].strip(), level=len(match[1]))
            waiting, start = [], line + 1
        else:
            waiting.append(text)
    if any(part.strip() for part in waiting):
        yield Item("text", start, "\n".join(waiting))


def _gated(items: Iterator[Item]) -> Iterator[Item]:
    gate = ""
    for item in items:
        if item.kind == "directive" and item.text in {"exercise-start", "solution-start"}:
            gate = item.text.removesuffix("-start")
        yield Item(item.kind, item.line, item.text, item.level, item.block, gate)
        if item.kind == "directive" and item.text in {"exercise-end", "solution-end"}:
            gate = ""
