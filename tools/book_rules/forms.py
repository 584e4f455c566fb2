"""Rules for predictions, and for the pages that go deeper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from website.pages.myst import Text
from website.pages.source import Book, Chapter, Finding
from website.syntax.in_depth import BEGINNING
from website.syntax.predict import read_prediction


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
            begins = chapter.place.slug.replace("_", "-") + "-" if chapter.place else ""
            if not one.argument.startswith(begins):
                yield chapter.finding(item, f"the prediction {one.argument} lacks {begins}")
        for item in chapter.directives("admonition"):
            if "predict" in item.directive.options.get("class", "").split():
                yield chapter.finding(item, "a prediction is written with the directive {predict}")


def in_depth(book: Book) -> Iterator[Finding]:
    """A page in depth follows its chapter, links back to the question, and is linked from it."""
    pages = {page.name: page for page in book.chapters}
    for page in book.chapters:
        boxes = page.directives("in-depth")
        if not (page.place and page.place.deeper):
            for box in boxes:
                yield page.finding(box, "a page that goes deeper stands below its chapter")
            continue
        chapter = pages[page.place.chapter]
        if not page.title.startswith(BEGINNING):
            yield page.finding(None, f"its title begins with {BEGINNING!r}")
        if len(boxes) != 1:
            words = "one {in-depth} belongs at the top, with a label of its chapter"
            yield page.finding(None, words)
        text = "\n".join(one.text for one in page.page.blocks if isinstance(one, Text))
        if not re.search(r"^[^#%(\s]", text, re.MULTILINE):
            yield page.finding(None, "a sentence belongs below {in-depth}: shared links show it")
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
