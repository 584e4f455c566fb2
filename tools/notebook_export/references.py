"""Author-year citations, as `references.bib` has them."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup
from pybtex.database import Entry, parse_file


class References:
    """The entries of the book's .bib files.

    Args:
        files: the .bib files.
        page: the built page that lists them, or None where the book has none.
        url: that page's address.
    """

    def __init__(self, files: list[Path], page: BeautifulSoup | None, url: str) -> None:
        self.entries = {
            key: entry for path in files for key, entry in parse_file(str(path)).entries.items()
        }
        self.url = url
        listed = page.select("div.citation[id]") if page else []
        self._anchors = {_letters(item.get_text()): item["id"] for item in listed}

    def cite(self, keys: str, *, textual: bool = False) -> str:
        """Markdown for one {cite} role. Raises KeyError for a key that no file has."""
        cited = []
        for key in (key.strip() for key in keys.split(",")):
            if key not in self.entries:
                raise KeyError(f"references.bib has no entry {key}")
            who, year = authors(self.entries[key]), self.entries[key].fields["year"]
            shown = f"{who} ({year})" if textual else f"{who}, {year}"
            cited.append(f"[{shown}]({self._address(self.entries[key])})")
        return ", ".join(cited) if textual else f"({'; '.join(cited)})"

    def _address(self, entry: Entry) -> str:
        title = _letters(entry.fields["title"])
        anchor = next((id_ for text, id_ in self._anchors.items() if title in text), None)
        return self.url + (f"#{anchor}" if anchor else "")


def authors(entry: Entry) -> str:
    """ "Vaswani et al.", "Alpha and Beta" or "Alpha"."""
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    if not people:
        raise KeyError(f"{entry.key} in references.bib names no author")
    names = [
        re.sub(r"[{}]", "", " ".join([*person.prelast_names, *person.last_names]))
        for person in people
    ]
    if len(names) > 2:
        return f"{names[0]} et al."
    return " and ".join(names)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
