"""What only Sphinx knows: titles, numbers, link targets, and the values that the runs glued."""

import json
from pathlib import Path
from typing import Any

from myst_nb.core.variables import format_plain_text

NAME = "targets.json"


class Targets:
    """What the notebooks point at, as the last rendering wrote it (sphinx_targets.py).

    Args:
        build: The folder of the build, ``_build``.
        base_url: The address that the site will have, with a trailing slash.
    """

    def __init__(self, build: Path, base_url: str) -> None:
        self.build, self.base_url = build, base_url
        if not (build / NAME).is_file():
            raise KeyError(f"{build / NAME} is missing: build the book first")
        self.known = json.loads((build / NAME).read_text("utf-8"))

    def document(self, name: str) -> tuple[str, str]:
        """Title and address of a page named as in the table of contents."""
        return self._of("pages", name, "page"), self.address(name)

    def label(self, name: str) -> tuple[str, str]:
        """Title and address behind a label. An exercise's title is its number: Exercise 2."""
        page, anchor, title, number = self._of("labels", name.lower(), "label")
        return number if number.startswith("Exercise") else title, self.address(page, anchor)

    def page_of(self, label: str) -> str:
        """The page with a label."""
        return self._of("labels", label.lower(), "label")[0]

    def number(self, label: str) -> str:
        """The number of what a label names: "Fig. 2", "Exercise 6.1"."""
        number = self._of("labels", label.lower(), "label")[3]
        if not number:
            raise KeyError(f"{label} has no number on the built page")
        return number

    def equation(self, label: str) -> tuple[str, str]:
        """Number, as printed, and address of a labelled equation: ("(3)", ...)."""
        page, anchor, number = self._of("equations", label, "equation")
        return number, self.address(page, anchor)

    def cited(self, key: str) -> tuple[str, str, str]:
        """Who and when, and the address of an entry of the literature."""
        page, anchor, who, year = self._of("literature", key, "entry of the literature")
        return who, year, self.address(page, anchor)

    def glued(self, document: str, name: str, spec: str) -> str:
        """A value glued by the run of ``document``, formatted as the page shows it."""
        path = self.build / "jupyter_execute" / f"{document}.glue.json"
        values = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if name in self.known["not_computed"].get(document, []):
            return "?"  # as on the page
        if name not in values:
            raise KeyError(f"the run of {document} glued no {name}")
        return format_plain_text(values[name]["data"]["text/plain"], spec)

    def is_confirmed(self, claim: str) -> bool:
        """Did the cell that settles a claim hold in this build?"""
        return f"claim-{claim}" not in self.known["unconfirmed"]

    def address(self, page: str, anchor: str = "") -> str:
        return f"{self.base_url}{page}.html" + (f"#{anchor}" if anchor else "")

    def _of(self, kind: str, name: str, what: str) -> Any:
        if name not in self.known[kind]:
            raise KeyError(f"the built site knows no {what} named {name}")
        return self.known[kind][name]
