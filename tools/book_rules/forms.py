"""Rules for predictions, and for the pages that go deeper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.pages.prediction import read_prediction

from .source import Book, Chapter, Finding


def predictions(book: Book) -> Iterator[Finding]:
    """A prediction asks, and explains what happened; its id begins with the chapter, and is new."""
    seen: dict[str, str] = {}
    for chapter in book.chapters:
        for item in chapter.directives("predict"):
            one = item.directive
            try:
                read_prediction(one.argument, one.options, one.body)
            except ValueError as error:
                yield chapter.finding(item, str(error))
            if one.argument in seen:
                words = f"the prediction {one.argument} is made already in {seen[one.argument]}"
                yield chapter.finding(item, words)
            seen[one.argument] = chapter.name
            number = chapter.belongs_to
            if number is not None and not one.argument.startswith(f"c{number}-"):
                yield chapter.finding(item, f"the prediction {one.argument} lacks c{number}-")
        for item in chapter.directives("admonition"):
            if "predict" in item.directive.options.get("class", "").split():
                yield chapter.finding(item, "a prediction is written with the directive {predict}")


def in_depth(book: Book) -> Iterator[Finding]:
    """A page in depth follows its chapter, links back to the question, and is linked from it."""
    chapter = None
    for page in book.chapters:
        if page.number is not None:
            chapter = page
        boxes = page.directives("in-depth")
        if page.depth_of is None:
            for box in boxes:
                words = "a page that goes deeper is called like '# 2, in depth: what a map says'"
                yield page.finding(box, words)
            continue
        if len(boxes) != 1:
            words = "one {in-depth} belongs at the top, with a label of its chapter"
            yield page.finding(None, words)
        if chapter is None or chapter.number != page.depth_of:
            words = f"_toc.yml does not list it under chapter {page.depth_of}"
            yield page.finding(None, words)
            continue
        for box in boxes:
            if not _says(chapter, rf"^\({re.escape(box.directive.argument)}\)=\s*$"):
                words = f"{chapter.name} has no label {box.directive.argument!r} to link back to"
                yield page.finding(box, words)
        own = re.escape(page.name.rpartition("/")[2])
        if not _says(chapter, rf"\{{in-depth\}}`([^`]*<)?([^`<]*/)?{own}>?`"):
            yield page.finding(None, f"{chapter.name} does not link here: {{in-depth}}`{own}`")


def _says(chapter: Chapter, pattern: str) -> bool:
    texts = (item.text for item in chapter.items if item.kind == "text")
    return any(re.search(pattern, text, re.MULTILINE) for text in texts)
