"""Stricter rules for the pages that have been rewritten: they say ``kit: true`` in front.

A limit is no target. From nine tenths on an author is told; a page may exceed its words, lines or
minutes by a tenth while the mean over its part of the book does not grow above what it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from website.pages.cells import is_proof
from website.pages.counts import Counts, count, seen_code
from website.pages.source import Book, Chapter, Finding, Item

WIDEST = 84  # characters of code that a page shows without a scroll bar
AS_TEXT = 72  # as wide as the text beside it
MOST = {"words": 1800, "code": 120, "claims": 5, "predictions": 4, "exercises": 4, "minutes": 60}
IN_DEPTH = {"words": 2500, "code": 250, "claims": 6, "exercises": 4}  # of other pages in the course
FEWEST = {"claims": 1, "predictions": 2}
# The means over the parts, from which a page may borrow up to a tenth
MEANS: dict[str, dict[str, float]] = {
    "": {"words": 1795, "code": 34, "minutes": 60},
    "I Attention": {"words": 1752.2, "code": 52.9, "minutes": 56.3},
    "II The Vision Transformer": {"words": 1784.2, "code": 50.2, "minutes": 58.6},
    "III Relatives": {"words": 1714, "code": 42.5, "minutes": 57.5},
    "IV Your turn": {"words": 1646.5, "code": 74, "minutes": 60},
}
NEAR = 0.9


def limits(book: Book) -> Iterator[Finding]:
    """A page of the kit can be finished in an hour; one that goes deeper is not endless either."""
    for chapter in book.chapters:
        most = IN_DEPTH if chapter.belongs_to is not None else {}
        if chapter.page.metadata.get("kit"):
            most = MOST
        for what, found in measured(count(chapter)).items():
            if found > most.get(what, found) and not _borrows(book, chapter, what, found):
                yield chapter.finding(None, f"{found:,} {what}, at most {most[what]:,}")


def line_length(book: Book) -> Iterator[Finding]:
    """A line of code that the page shows fits its column; folded cells may be wider."""
    for chapter in book.chapters:
        for cell in chapter.cells:
            kept = chapter.page.metadata.get("kit") and cell.gate != "solution"
            widest = AS_TEXT if kept else WIDEST
            shown = set(seen_code(chapter, cell).splitlines())
            for at, line in enumerate(cell.text.splitlines(), cell.directive.body_line):
                if len(line) > widest and line in shown:
                    words = f"{len(line)} characters of code, at most {widest}: {line.strip()!r}"
                    yield Finding(chapter.page.path, at, words)


def kit(book: Book) -> Iterator[Finding]:
    """A page of the kit asks its readers something and shows no line that only proves."""
    for chapter in book.chapters:
        if not chapter.page.metadata.get("kit"):
            continue
        for what, found in measured(count(chapter)).items():
            if found < FEWEST.get(what, 0):
                yield chapter.finding(None, f"kit: {found} {what}, {FEWEST[what]} at least")
        for claim in chapter.directives("claim"):
            for option in ("truth", "refuted-by"):
                if not claim.directive.options.get(option):
                    yield chapter.finding(claim, f"kit: this claim lacks :{option}:")
        for cell in chapter.cells:
            if not cell.gate:
                yield from _plumbing(chapter, cell)


def near(book: Book) -> Iterator[Finding]:
    """What an author is told, and what is no defect."""
    for chapter in book.chapters:
        if chapter.page.metadata.get("kit"):
            found = measured(count(chapter))
            full = [
                f"{found[what]:,} {what} of {MOST[what]:,}"
                for what in ("words", "code", "minutes")
                if found[what] >= NEAR * MOST[what]
            ]
            if full:
                yield chapter.finding(None, f"near: {', '.join(full)}; a limit is no target")


def _borrows(book: Book, chapter: Chapter, what: str, found: int) -> bool:
    """Is it a tenth at most, and the mean over the part no larger than it was?"""
    if chapter.place is None or found > 1.1 * MOST[what]:
        return False
    known = MEANS.get(chapter.place.part, {})
    return what in known and mean(book, chapter.place.part, what) <= known[what]


def mean(book: Book, part: str, what: str) -> float:
    """Over the chapters of a part: words, lines of code, or minutes."""
    pages = [one for one in book.numbered if one.place and one.place.part == part]
    return sum(measured(count(one))[what] for one in pages) / max(len(pages), 1)


def measured(counts: Counts) -> dict[str, int]:
    """What MOST limits."""
    found = {what: getattr(counts, what) for what in MOST if what != "minutes"}
    return found | {"minutes": counts.read + counts.do}


def _plumbing(chapter: Chapter, cell: Item) -> Iterator[Finding]:
    """Visible code that proves or sets up, and printed results."""
    shown = set(seen_code(chapter, cell).splitlines())
    lines = cell.text.splitlines()
    for node in ast.walk(cell.tree):
        if not isinstance(node, ast.stmt) or lines[node.lineno - 1] not in shown:
            continue
        called = getattr(getattr(node, "value", None), "func", None)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield chapter.finding(cell, "kit: this cell shows an import")
        elif is_proof(node):
            words = f"kit: this cell shows what only proves: {lines[node.lineno - 1].strip()!r}"
            yield chapter.finding(cell, words)
        elif getattr(called, "id", "") == "print":
            yield chapter.finding(cell, "kit: this cell prints; show_table(...) shows a table")
