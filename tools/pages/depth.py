"""Pages that go deeper than their chapter: "In depth: what a map says" in the source, and
"2, in depth: what a map says" for readers."""

from __future__ import annotations

import re

from tools.pages.number import PATTERN

BEGINNING = "In depth: "  # of the title in the source
TITLE = re.compile(rf"{PATTERN}, in depth: ")


def named(title: str) -> str:
    """What a link to the page is called."""
    return "in depth: " + TITLE.sub("", title, count=1)


def origin(label: str) -> str:
    """The last line of its box, in MyST."""
    return f"From {{ref}}`{label}`; the chapters do without it. {{minutes}}`this page`."
