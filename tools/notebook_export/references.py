"""Author-year citations, as ``references.bib`` has them."""

from __future__ import annotations

import re
from pathlib import Path

from docutils.nodes import make_id
from pybtex.database import Entry, parse_file

from tools.site import Page


class References:
    """The entries of the book's .bib files.

    Args:
        files: The .bib files.
        page: The built page that lists them, or None where the book has none.
        url: That page's address.
    """

    def __init__(self, files: list[Path], page: Page | None, url: str) -> None:
        self.entries = {
            key: entry for path in files for key, entry in parse_file(str(path)).entries.items()
        }
        self.url = url
        self._anchors = page.anchors if page else set()

    def cite(self, keys: str, *, textual: bool = False) -> str:
        """Markdown for one {cite} role.

        Raises:
            KeyError: No file has such a key.
        """
        cited = []
        for key in (key.strip() for key in keys.split(",")):
            if key not in self.entries:
                raise KeyError(f"references.bib has no entry {key}")
            who, year = authors(self.entries[key]), self.entries[key].fields["year"]
            shown = f"{who} ({year})" if textual else f"{who}, {year}"
            cited.append(f"[{shown}]({self._address(key)})")
        return ", ".join(cited) if textual else f"({'; '.join(cited)})"

    def _address(self, key: str) -> str:
        anchor = make_id(f"cite-{key}")  # as bibtex_cite_id in _config.yml has it
        return f"{self.url}#{anchor}" if anchor in self._anchors else self.url


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
