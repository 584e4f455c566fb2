"""Rules for what stands between the cells."""

import re
from collections.abc import Iterator

from website.pages.myst import Piece, substitute
from website.pages.number import DEFINED, NUMBER, is_numbered
from website.pages.source import Book, Finding, Item
from website.syntax.goals import LONGEST, length

OF_CHAPTER = re.compile(r"\b(?:[Cc]hapters?\s+\d+[a-z]?|(?:[Ee]xercises?|[Tt]ables?)\s+\d+\.\d+)\b")
ALLOWED_ON_PAGE = re.compile(r"^%\s*typed numbers?:\s*(.+)$", re.MULTILINE)


def goals(book: Book) -> Iterator[Finding]:
    """Goals and needs of a chapter are one line, which a reader takes in at once."""
    for chapter in book.numbered:
        for item in chapter.directives("goals"):
            characters = length(item.directive.argument, item.directive.body)
            if characters > LONGEST:
                words = f"the goals are {characters} characters long, at most {LONGEST}"
                yield chapter.finding(item, words)


def typed_numbers(book: Book) -> Iterator[Finding]:
    """A decimal number or a percentage in prose comes from a cell, through glue.

    Numbers that no cell could compute are listed on the page that needs them, in a comment:
    ``% typed numbers: 28.4, 41.8 %``.
    """
    for chapter in book.chapters:
        texts = [item for item in chapter.items if item.kind in {"text", "heading"}]
        listed = [match[1] for item in texts for match in ALLOWED_ON_PAGE.finditer(item.text)]
        allowed = DEFINED | {number.strip() for line in listed for number in line.split(", ")}
        for item in texts:
            text = substitute(item.text, _blank)
            for match in NUMBER.finditer(text):
                number = re.sub(r"\s?%$", " %", match["number"])
                if not match["before"] and number not in allowed:
                    at = _line(item, text, match.start())
                    message = f"the number {number} is typed; glue it, or list it as typed"
                    yield Finding(chapter.page.path, at, message)


def typed_chapters(book: Book) -> Iterator[Finding]:
    """The number of a chapter comes from _toc.yml: {chapter}`looking`, and in titles by itself."""
    for chapter in book.chapters:
        for item in chapter.items:
            if item.level == 1 and is_numbered(item.text):
                yield chapter.finding(item, "the title's number is typed; _toc.yml gives it")
            if item.kind == "directive":
                continue
            text = item.text if item.kind == "cell" else substitute(item.text, _chapter_blank)
            for match in OF_CHAPTER.finditer(text):
                words = " ".join(match[0].split())
                message = f"the number of {words!r} is typed: {{chapter}}`page`"
                yield Finding(chapter.page.path, _line(item, text, match.start()), message)


def _blank(piece: Piece) -> str:
    """Keep the line count, lose the words."""
    return "\x00" + "\n" * piece.source.count("\n")


def _chapter_blank(piece: Piece) -> str:
    """Links keep their words: ``chapter 12 <page>`` is typed as well."""
    return piece.content if piece.kind == "role" and piece.name != "chapter" else _blank(piece)


def _line(item: Item, text: str, at: int) -> int:
    """The line of the place ``at`` in ``text``, which has as many lines as the item."""
    return item.line + text.count("\n", 0, at)
