"""The length of a chapter that a student finishes."""

from __future__ import annotations

from collections.abc import Iterator

from tools.counts import count

from .source import Book, Finding

LIMITS = {"words": 2500, "code": 250, "claims": 6, "exercises": 4}
SAID = {**{what: what for what in LIMITS}, "code": "lines of visible code"}
STILL = "tools/book_rules/still_too_long.txt"


def limits(book: Book) -> Iterator[Finding]:
    """A chapter, like a page that goes deeper, keeps the limits.

    What does not do so yet is listed in ``STILL``. The list only becomes shorter: what it names and
    what keeps the limit by now has to be taken out.
    """
    path = book.root / STILL
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    listed = {}  # (page, what) -> line
    for at, line in enumerate(lines, 1):
        name, _, what = line.partition("#")[0].strip().partition(": ")
        listed.update({(name, one.strip()): at for one in what.split(",") if one.strip()})
    for chapter in book.chapters:
        if chapter.belongs_to is None:
            continue
        counts = count(chapter)
        for what, most in LIMITS.items():
            found = getattr(counts, what)
            known = listed.pop((chapter.name, what), None)
            if found > most and known is None:
                yield chapter.finding(None, f"{found:,} {SAID[what]}, at most {most:,}")
            elif found <= most and known is not None:
                words = f"{chapter.name} keeps the limit of {most:,} {SAID[what]} now: take it out"
                yield Finding(path, known, words)
    for (name, what), at in listed.items():
        yield Finding(path, at, f"there is no chapter {name} with a limit of {what!r}")
