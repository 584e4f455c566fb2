"""Which chapter introduces which part of the package: worked out from the pages, never typed."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .source import Book, Chapter, Item

FOLDERS = {"layers", "models", "book"}  # whose modules are imported by their own names


@dataclass(frozen=True)
class Introduction:
    """Where the book first brings a name of the package."""

    at: int  # the page's place in the table of contents
    chapter: Chapter
    shown: bool  # is its source on the page, or is it only imported?

    @property
    def slug(self) -> str:
        """Of the chapter that the page is or goes deeper into."""
        assert self.chapter.place is not None  # other pages introduce nothing
        return self.chapter.place.slug

    @property
    def verb(self) -> str:
        return "Introduced in" if self.shown else "First used in"


def introductions(book: Book) -> dict[tuple[str, str], Introduction]:
    """(part of the package, name) -> where it is introduced: where its source is shown, else
    where it is first imported. The preview introduces nothing."""
    found: dict[tuple[str, str], Introduction] = {}
    for at, chapter, _, part, name in included_sources(book):
        if introduces(chapter):
            found.setdefault((part, name), Introduction(at, chapter, True))
            # the first method that is shown introduces its class
            found.setdefault((part, name.partition(".")[0]), Introduction(at, chapter, True))
    for at, chapter in enumerate(book.chapters):
        for cell in chapter.cells if introduces(chapter) else []:
            for part, name in imported(cell):
                found.setdefault((part, name), Introduction(at, chapter, False))
    return found


def introduces(chapter: Chapter) -> bool:
    return chapter.belongs_to not in (None, "0")


def included_sources(book: Book) -> Iterator[tuple[int, Chapter, Item, str, str]]:
    """(place, chapter, item, part, name) of each piece of the package whose source is shown."""
    for at, chapter in enumerate(book.chapters):
        for item in chapter.directives("literalinclude"):
            parts = Path(item.directive.argument).with_suffix("").parts
            name = item.directive.options.get("pyobject", "")
            if name and "vitbook" in parts:
                yield at, chapter, item, part_of(parts[parts.index("vitbook") + 1 :]), name


def imported(cell: Item) -> Iterator[tuple[str, str]]:
    """(part of the package, name) of what a cell imports from it."""
    for node in ast.walk(cell.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, module = node.module.partition(".")
            if package == "vitbook" and module:
                part = part_of(module.split("."))
                yield from ((part, alias.name) for alias in node.names)


def part_of(names: Sequence[str]) -> str:
    """The part of the package that a module belongs to: a folder, or the module itself."""
    return ".".join(names[: 2 if names[0] in FOLDERS else 1])
