"""What ``_toc.yml`` says: the pages in their order, and the numbers of the chapters.

The pages of the parts that have a Roman numeral are chapters, counted from 1. Under ``meta`` stand
the exceptions: ``zero`` is chapter 0, a page in ``lettered`` shares the number of the one before it
(2b). Pages below a chapter go deeper into it. No file, label or sentence holds a number of its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

PART = re.compile(r"[IVX]+ ")
CHAPTER, CHAPTER_AND_NAME = "chapter {number}", "chapter {number}, {name}"  # words of references


@dataclass(frozen=True)
class Place:
    """Where a page stands: the chapter that it is or goes deeper into, and that one's number."""

    chapter: str  # the name of its page
    number: str  # "2", or "2b"
    deeper: bool = False
    part: str = ""  # of the book

    @property
    def slug(self) -> str:
        """What the chapter is called in references, labels and predictions: ``qk_merge``."""
        return slug(self.chapter)

    def titled(self, title: str) -> str:
        """A title as readers see it: "5. Why two?", "5, in depth: merged heads"."""
        if self.deeper:
            return f"{self.number}, {title[:1].lower()}{title[1:]}"
        return f"{self.number}. {title}"


def slug(page: str) -> str:
    return page.rpartition("/")[2]


def places_of(root: Path) -> dict[str, Place]:
    """The chapters and the pages in depth of the repository, in their order."""
    file = root / "_toc.yml"
    return _places(file.read_text("utf8")) if file.is_file() else {}


def chapter_called(name: str, places: dict[str, Place]) -> str | None:
    """The page with this slug among the chapters and the pages in depth."""
    return next((page for page in places if slug(page) == name), None)


def read_yaml(file: Path) -> Any:
    """What a file of settings holds, to be read only; the same text is parsed once."""
    return _parsed(file.read_text("utf8"))


_parsed = lru_cache(yaml.safe_load)


@lru_cache
def _places(text: str) -> dict[str, Place]:
    return {
        page: Place(chapter, number, page != chapter, part)
        for part, number, entry in _numbered(_parsed(text))
        for chapter, *_ in [toc_files(entry)]
        for page in toc_files(entry)
    }


def _numbered(toc: dict[str, Any]) -> Iterator[tuple[str, str, dict]]:
    meta = toc.get("meta", {})
    last, letter = 0, "a"
    for part in toc.get("parts", []):
        caption = part.get("caption", "")
        for entry in part["chapters"]:
            if entry["file"] == meta.get("zero"):
                yield caption, "0", entry
            elif PART.match(caption):
                lettered = entry["file"] in meta.get("lettered", [])
                last, letter = (last, chr(ord(letter) + 1)) if lettered else (last + 1, "a")
                yield caption, f"{last}{letter if lettered else ''}", entry


def outline(root: Path) -> list[tuple[str, list[list[str]]]]:
    """The parts of the book, "" or a caption each, and their pages: one, and those below it."""
    file = root / "_toc.yml"
    parts = read_yaml(file).get("parts", []) if file.is_file() else []
    return [
        (part.get("caption", ""), [toc_files(entry) for entry in part["chapters"]])
        for part in parts
    ]


def toc_files(node: object) -> list[str]:
    """Every page of a table of contents, depth first."""
    if isinstance(node, list):
        return [name for item in node for name in toc_files(item)]
    if not isinstance(node, dict):
        return []
    own = [node[key].removesuffix(".md") for key in ("root", "file") if key in node]
    nested = ("parts", "chapters", "sections", "subtrees", "entries")
    return own + [name for key in nested for name in toc_files(node.get(key, []))]
