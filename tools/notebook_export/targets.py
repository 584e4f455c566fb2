"""What only the built site knows: numbers, titles, link targets and glued values."""

from __future__ import annotations

import json
import posixpath
from functools import cached_property

from docutils.nodes import make_id
from myst_nb.core.variables import format_plain_text
from sphinx.util.inventory import InventoryFile

from tools.site import Page, Site
from tools.site_checks.claims import unconfirmed
from tools.site_checks.content import broke


class Targets:
    """What the notebooks point at: the pages of the built site, and the values their runs glued.

    Args:
        site: The built site.
        base_url: The address it will have, with a trailing slash.
    """

    def __init__(self, site: Site, base_url: str) -> None:
        self.site, self.base_url = site, base_url
        self.executed = site.html.parent / "jupyter_execute"

    def page(self, uri: str) -> Page:
        """The page behind an address such as ``book/index.html``."""
        if uri not in self.site.pages:
            raise KeyError(f"the built site has no {uri}: build the book first")
        return self.site.pages[uri]

    @cached_property
    def _inventory(self) -> dict[tuple[str, str], tuple[str, str]]:
        """(role, name) -> (address, title), from Sphinx's objects.inv."""
        path = self.site.html / "objects.inv"
        if not path.is_file():
            raise KeyError(f"{path} is missing: build the book first")
        with path.open("rb") as file:
            roles = InventoryFile.load(file, "", posixpath.join)
        return {
            (role, name): (uri, name if title == "-" else title)
            for role, entries in roles.items()
            for name, (_, _, uri, title) in entries.items()
        }

    def document(self, name: str) -> tuple[str, str]:
        """Title and address of a page named as in the table of contents."""
        uri, title = self._entry("std:doc", name, "page")
        return title, self.base_url + uri

    def page_of(self, address: str) -> str:
        """The name of the page that an address leads to."""
        return address.removeprefix(self.base_url).partition(".html")[0]

    def label(self, name: str) -> tuple[str, str]:
        """Title and address behind a label. An exercise's title is its number: Exercise 2."""
        uri, title = self._entry("std:label", name.lower(), "label")
        number = self._number(uri)
        return (number if number.startswith("Exercise") else title), self.base_url + uri

    def number(self, name: str) -> tuple[str, str]:
        """Number and address behind a label: ("Fig. 2", ...)."""
        uri, _ = self._entry("std:label", name.lower(), "label")
        number = self._number(uri)
        if not number:
            raise KeyError(f"{name} has no number on the built page")
        return number, self.base_url + uri

    def equation(self, label: str) -> tuple[str, str]:
        """Number, as printed, and address of a labelled equation: ("(3)", ...)."""
        anchor = f"equation-{make_id(label)}"
        for (role, _), (uri, _) in self._inventory.items():
            number = self.page(uri).equations.get(anchor) if role == "std:doc" else None
            if number:
                return number, f"{self.base_url}{uri}#{anchor}"
        raise KeyError(f"no built page has an equation labelled {label}")

    def glued(self, document: str, name: str, spec: str) -> str:
        """A value glued by the run of ``document``, formatted as the page shows it."""
        path = self.executed / f"{document}.glue.json"
        values = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if name not in values and self._page_of(document).fact(broke):
            return "?"  # as on the page
        if name not in values:
            raise KeyError(f"the run of {document} glued no {name}")
        return format_plain_text(values[name]["data"]["text/plain"], spec)

    def is_confirmed(self, document: str, claim: str) -> bool:
        """Did the cell that settles a claim hold in this build?"""
        return f"claim-{claim}" not in self._page_of(document).fact(unconfirmed)

    def _page_of(self, document: str) -> Page:
        return self.page(self._entry("std:doc", document, "page")[0])

    def _entry(self, role: str, name: str, what: str) -> tuple[str, str]:
        if (role, name) not in self._inventory:
            raise KeyError(f"the built site knows no {what} named {name}")
        return self._inventory[role, name]

    def _number(self, uri: str) -> str:
        page, _, anchor = uri.partition("#")
        return self.page(page).numbers.get(anchor, "") if anchor else ""
