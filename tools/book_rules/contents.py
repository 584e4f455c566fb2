"""Rules for what leads from page to page: old addresses, and pages in depth."""

import re
from collections.abc import Iterator

from website.pages.moved import TABLE, old_pages
from website.pages.source import Book, Finding


def moved(book: Book) -> Iterator[Finding]:
    """What a page was called is no page any more, and leads to one."""
    pages = {chapter.name for chapter in book.chapters}
    for old, path in old_pages(book.root).items():
        if old in pages:
            yield Finding(book.root / TABLE, 1, f"{old} is a page: it has not moved")
        if path[-1].to not in pages:
            yield Finding(book.root / TABLE, 1, f"{old} leads to {path[-1].to}, which is no page")


def in_depth(book: Book) -> Iterator[Finding]:
    """A page in depth leads back to the question of its chapter, and is linked from it."""
    pages = {page.name: page for page in book.chapters}
    for page in book.chapters:
        if page.place is None or not page.place.deeper:
            continue
        if len(page.directives("in-depth")) != 1:
            words = "one {in-depth} belongs at the top, with a label of its chapter"
            yield page.finding(None, words)
        chapter, own = pages[page.place.chapter], re.escape(page.name.rpartition("/")[2])
        texts = "\n".join(item.text for item in chapter.items if item.kind == "text")
        if not re.search(rf"\{{in-depth\}}`([^`]*<)?([^`<]*/)?{own}>?`", texts):
            yield page.finding(None, f"{chapter.name} does not link here: {{in-depth}}`{own}`")
