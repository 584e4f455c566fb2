"""Rules for the row of chapters: each number once, and each chapter on the front page."""

from __future__ import annotations

from collections.abc import Iterator

from .source import Book, Finding


def numbers(book: Book) -> Iterator[Finding]:
    """No two chapters have the same number, and they stand in order."""
    before = None
    seen: dict[int, str] = {}
    for chapter in book.numbered:
        number = chapter.number
        assert number is not None
        if number in seen:
            words = f"chapter {number} is {seen[number]} already; take the next free number"
            yield chapter.finding(None, words)
        elif before is not None and number < before:
            yield chapter.finding(None, f"chapter {number} stands after chapter {before}")
        seen.setdefault(number, chapter.name)
        before = number


def front_page(book: Book) -> Iterator[Finding]:
    """The table of the first page has a row for each chapter, with its two numbers of minutes."""
    front, *_ = book.chapters
    shown = "\n".join(item.text for item in front.items if item.kind == "text")
    for chapter in book.numbered:
        name = chapter.name
        for wanted in (f"{{doc}}`{name}`", f"{{minutes}}`read {name}`", f"{{minutes}}`do {name}`"):
            if wanted not in shown:
                yield front.finding(None, f"the table of chapters lacks {wanted}")
