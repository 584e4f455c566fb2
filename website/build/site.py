"""The built site as pages, and what is known of each: read from its HTML once, then remembered.

Reading the HTML of a page and looking through it takes most of a build's time after Sphinx, and
an edit changes one page. So what a page's HTML says (its *facts*: ids, addresses, defects) is
kept in a file between builds, under a hash of the page's bytes and of the code that looks at it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import bs4
from bs4 import BeautifulSoup, Tag

from website.pages.number import is_numbered

HERE = Path(__file__).resolve().parent
LOOKS = [HERE / "site.py", HERE / "check_site.py", *sorted((HERE / "site_checks").glob("*.py"))]


@dataclass(frozen=True)
class Finding:
    """One defect: the page, the element, and what is wrong with it."""

    page: str
    element: str
    message: str

    def __str__(self) -> str:
        return f"{self.page}: {self.element}: {self.message}"


class Memory:
    """Facts of pages from the last time; without a file they are forgotten with the process.

    Args:
        file: Where they are kept.
        code: What reads facts; when a byte of it changes, nothing is known any more.
    """

    def __init__(self, file: Path | None = None, code: list[Path] = LOOKS) -> None:
        self.file = file
        self.used: dict[str, dict] = {}
        whole = hashlib.sha256(f"{sys.version} {bs4.__version__}".encode())
        for path in code:
            whole.update(path.name.encode() + b"\0" + path.read_bytes())
        self.code = whole.digest()
        try:
            self.known = json.loads(file.read_text("utf8")) if file and file.is_file() else {}
        except ValueError:  # half written: then everything is looked at again
            self.known = {}

    def of(self, name: str, content: bytes) -> dict:
        """The facts of a page with this name and this content, to be read and added to."""
        key = hashlib.sha256(b"\0".join([self.code, name.encode(), content])).hexdigest()
        return self.used.setdefault(key, self.known.get(key, {}))

    def save(self) -> None:
        """Keep the facts of the pages that are there now."""
        if self.file:
            self.file.write_text(json.dumps(self.used), encoding="utf-8")


@dataclass(eq=False)
class Page:
    """One HTML file; ``name`` is its path inside the site. It is read once."""

    name: str
    path: Path
    memory: Memory

    @cached_property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.content.decode("utf-8"), "html.parser")

    @cached_property
    def facts(self) -> dict:
        return self.memory.of(self.name, self.content)

    def fact(self, find: Callable[[Page], list | dict | bool]) -> Any:
        """What ``find`` says of this page. It looks at nothing but the page, and its answer can be
        written as JSON."""
        name = f"{find.__module__}.{find.__qualname__}"
        if name not in self.facts:
            self.facts[name] = find(self)
        return self.facts[name]

    @cached_property
    def anchors(self) -> set[str]:
        """What a link to this page may name."""
        return {*self.fact(_anchors), "", "top"}

    @cached_property
    def title(self) -> str:
        heading = self.soup.find("h1")
        return heading.get_text().rstrip("#").strip() if heading else ""

    @cached_property
    def cells(self) -> list[Tag]:
        """The executed cells; a page has some if it is a notebook."""
        return self.soup.find_all("div", class_="cell")

    @property
    def is_chapter(self) -> bool:
        return bool(self.cells) and is_numbered(self.title)

    def texts(self, *, skip: tuple[str, ...] = ()) -> Iterator[tuple[Tag, str]]:
        """(parent, text) of each text node a reader sees, outside the elements in ``skip``."""
        hidden = {"script", "style", "template", "noscript", "head"} | set(skip)
        return visible_texts(self.soup.body or self.soup, hidden)

    def finding(self, element: Tag | str, message: str) -> Finding:
        return Finding(self.name, element if isinstance(element, str) else show(element), message)


class Site:
    """All pages under one folder.

    Args:
        html: The folder, ``_build/html``.
        root: The repository, which launch buttons and source links point into.
        memory: What is known of the pages already; by default nothing.
    """

    def __init__(self, html: Path, root: Path, memory: Memory | None = None) -> None:
        self.html, self.root = html.resolve(), root.resolve()
        self.memory = memory or Memory()
        names = (path.relative_to(self.html) for path in sorted(self.html.rglob("*.html")))
        self.pages = {
            name.as_posix(): Page(name.as_posix(), self.html / name, self.memory)
            for name in names
            if name.parts[0] != "_static"
        }


def _anchors(page: Page) -> list[str]:
    named = [tag["name"] for tag in page.soup.find_all("a", attrs={"name": True})]
    return named + [tag["id"] for tag in page.soup.find_all(id=True)]


def visible_texts(tag: Tag, hidden: set[str]) -> Iterator[tuple[Tag, str]]:
    """(parent, text) of each text below ``tag``; elements named in ``hidden`` are not entered."""
    for child in tag.children:
        if not isinstance(child, Tag):
            if child.strip():
                yield tag, str(child)
        elif child.name not in hidden:
            yield from visible_texts(child, hidden)


def show(tag: Tag) -> str:
    """A tag in short: its name, its most telling attribute, the first words in it."""
    for name in ("id", "src", "href", "alt", "class"):
        if value := tag.get(name):
            value = " ".join(value) if isinstance(value, list) else value
            label = f'<{tag.name} {name}="{shorten(value)}">'
            break
    else:
        label = f"<{tag.name}>"
    words = shorten(" ".join(tag.get_text().split()))
    return f"{label} {words!r}" if words else label


def shorten(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
