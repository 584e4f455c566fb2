"""The length of a chapter that a student finishes."""

from __future__ import annotations

from collections.abc import Iterator

from website.pages.counts import count
from website.pages.source import Book, Finding

LIMITS = {"words": 2500, "code": 250, "claims": 6, "exercises": 4}
SAID = {**{what: what for what in LIMITS}, "code": "lines of visible code"}


def limits(book: Book) -> Iterator[Finding]:
    """A chapter, like a page that goes deeper, keeps the limits."""
    for chapter in book.chapters:
        if chapter.belongs_to is None:
            continue
        counts = count(chapter)
        for what, most in LIMITS.items():
            found = getattr(counts, what)
            if found > most:
                yield chapter.finding(None, f"{found:,} {SAID[what]}, at most {most:,}")
