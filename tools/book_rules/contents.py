"""Rules for the row of chapters: each number once, and each chapter on the front page."""

from __future__ import annotations

from collections.abc import Iterator

from tools.cards import Card, read_cards
from tools.pages.number import Number

from .source import Book, Finding


def numbers(book: Book) -> Iterator[Finding]:
    """No two chapters have the same number, and they stand in order."""
    before = None
    seen: dict[Number, str] = {}
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
    """The first page has a card for each chapter, with a question."""
    front, *_ = book.chapters
    asked: dict[Number | None, str] = {}
    for item in front.directives("chapter-cards"):
        try:
            cards = [one for one in read_cards(item.directive.body) if isinstance(one, Card)]
        except ValueError as error:
            yield front.finding(item, str(error))
            continue
        asked |= {card.chapter: card.question for card in cards}
    for chapter in book.numbered:
        if not asked.get(chapter.number, "").endswith("?"):
            words = f"the cards lack a question for chapter {chapter.number}"
            yield front.finding(None, words)
