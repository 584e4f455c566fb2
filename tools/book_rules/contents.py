"""Rules for the row of pages: each chapter has its card, and each old address leads to a page."""

from __future__ import annotations

from collections.abc import Iterator

from website.pages.moved import TABLE, old_pages
from website.pages.source import Book, Finding
from website.syntax.cards import read_card, read_parts
from website.syntax.drawing.places import read_place


def front_page(book: Book) -> Iterator[Finding]:
    """Each chapter says what its card and the drawing on the first page show; each part has words
    there."""
    front, *_ = book.chapters
    told = set()
    for item in front.directives("chapter-cards"):
        try:
            told |= {part.caption for part in read_parts(item.directive.body)}
        except ValueError as error:
            yield front.finding(item, str(error))
    for chapter in book.numbered:
        assert chapter.place is not None
        for key, read in (("card", read_card), ("map", read_place)):
            try:
                read(chapter.place.slug, chapter.page.metadata.get(key))
            except ValueError as error:
                yield chapter.finding(None, str(error))
    for caption in {chapter.place.part: 0 for chapter in book.numbered if chapter.place}:
        if caption not in told:
            words = f"the cards need a line for {caption!r}: number | title | words"
            yield front.finding(None, words)


def moved(book: Book) -> Iterator[Finding]:
    """What a page was called is no page any more, and leads to one."""
    pages = {chapter.name for chapter in book.chapters}
    for old, path in old_pages(book.root).items():
        if old in pages:
            yield Finding(book.root / TABLE, 1, f"{old} is a page: it has not moved")
        if path[-1].to not in pages:
            yield Finding(book.root / TABLE, 1, f"{old} leads to {path[-1].to}, which is no page")
