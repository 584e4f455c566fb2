"""Rules for the row of pages: each chapter has its card, and each old address leads to a page."""

from __future__ import annotations

from collections.abc import Iterator

from website.pages.moved import TABLE, old_pages
from website.pages.source import Book, Finding
from website.syntax.cards import Card, read_cards


def front_page(book: Book) -> Iterator[Finding]:
    """The first page has a card for each chapter, with a question, in the book's order."""
    front, *_ = book.chapters
    asked: dict[str, str] = {}
    for item in front.directives("chapter-cards"):
        try:
            cards = [one for one in read_cards(item.directive.body) if isinstance(one, Card)]
        except ValueError as error:
            yield front.finding(item, str(error))
            continue
        asked |= {card.chapter: card.question for card in cards}
    chapters = [chapter.place.slug for chapter in book.numbered if chapter.place]
    for chapter in chapters:
        if not asked.get(chapter, "").endswith("?"):
            yield front.finding(None, f"the cards lack a question for {chapter}")
    for card in asked:
        if card not in chapters:
            yield front.finding(None, f"the cards have {card}, which is no chapter")
    if sorted(asked) == sorted(chapters) and list(asked) != chapters:
        yield front.finding(None, "the cards stand in another order than _toc.yml")


def moved(book: Book) -> Iterator[Finding]:
    """What a page was called is no page any more, and leads to one."""
    pages = {chapter.name for chapter in book.chapters}
    for old, path in old_pages(book.root).items():
        if old in pages:
            yield Finding(book.root / TABLE, 1, f"{old} is a page: it has not moved")
        if path[-1].to not in pages:
            yield Finding(book.root / TABLE, 1, f"{old} leads to {path[-1].to}, which is no page")
