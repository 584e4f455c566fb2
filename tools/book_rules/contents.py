"""A rule for the row of chapters: each has its card on the front page."""

from __future__ import annotations

from collections.abc import Iterator

from tools.cards import Card, read_cards

from .source import Book, Finding


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
