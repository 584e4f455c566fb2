"""Rules for lengths: a chapter is finished in an hour, and code is seen whole."""

from collections.abc import Iterator

from website.pages.counts import count, seen_code
from website.pages.source import Book, Finding

WIDEST = 84  # characters of code that a page shows without a scroll bar
AS_TEXT = 72  # as wide as the text beside it, in a chapter
MINUTES = 60  # of a chapter, exercises included


def minutes(book: Book) -> Iterator[Finding]:
    for chapter in book.numbered:
        counts = count(chapter)
        if (found := counts.read + counts.do) > MINUTES:
            yield chapter.finding(None, f"{found} minutes, at most {MINUTES}")


def line_length(book: Book) -> Iterator[Finding]:
    """A line of code that the page shows fits its column; folded cells may be wider."""
    for chapter in book.chapters:
        for cell in chapter.cells:
            widest = AS_TEXT if chapter.number and cell.gate != "solution" else WIDEST
            shown = set(seen_code(chapter, cell).splitlines())
            for at, line in enumerate(cell.text.splitlines(), cell.directive.body_line):
                if len(line) > widest and line in shown:
                    words = f"{len(line)} characters of code, at most {widest}: {line.strip()!r}"
                    yield Finding(chapter.page.path, at, words)
