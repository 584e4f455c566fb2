"""The built site as parsed pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bs4 import BeautifulSoup, Tag


@dataclass(frozen=True)
class Finding:
    """One defect: the page, the element, and what is wrong with it."""

    page: str
    element: str
    message: str

    def __str__(self) -> str:
        return f"{self.page}: {self.element}: {self.message}"


@dataclass(eq=False)
class Page:
    """One HTML file; `name` is its path inside the site. It is read once."""

    name: str
    path: Path

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.path.read_text(encoding="utf-8"), "html.parser")

    @cached_property
    def by_id(self) -> dict[str, Tag]:
        return {element["id"]: element for element in self.soup.find_all(id=True)}

    @cached_property
    def anchors(self) -> set[str]:
        names = {tag["name"] for tag in self.soup.find_all("a", attrs={"name": True})}
        return set(self.by_id) | names | {"", "top"}

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
        number = self.title.partition(".")[0]
        return bool(self.cells) and number.isdigit()

    def texts(self, *, skip: tuple[str, ...] = ()) -> Iterator[tuple[Tag, str]]:
        """(parent, text) of each text node a reader sees, outside the elements in `skip`."""
        hidden = {"script", "style", "template", "noscript", "head"} | set(skip)
        return visible_texts(self.soup.body or self.soup, hidden)

    def finding(self, element: Tag | str, message: str) -> Finding:
        return Finding(self.name, element if isinstance(element, str) else show(element), message)


class Site:
    """All pages under one folder.

    Args:
        html: the folder, `_build/html`.
        root: the repository, which launch buttons and source links point into.
    """

    def __init__(self, html: Path, root: Path) -> None:
        self.html, self.root = html.resolve(), root.resolve()
        names = (path.relative_to(self.html) for path in sorted(self.html.rglob("*.html")))
        self.pages = {
            name.as_posix(): Page(name.as_posix(), self.html / name)
            for name in names
            if name.parts[0] != "_static"
        }


def visible_texts(tag: Tag, hidden: set[str]) -> Iterator[tuple[Tag, str]]:
    """(parent, text) of each text below `tag`; elements named in `hidden` are not entered."""
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
