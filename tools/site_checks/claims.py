"""The table of claims: each row leads to a claim, and each claim to a cell that settles it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from bs4 import Tag

from tools.site import Finding, Page, Site

ASSERTION = re.compile(r"\bassert\b|\bassert_\w+\(")


def claims(site: Site) -> Iterator[Finding]:
    """Every row links to a claim on a page, and the next cell there holds an assertion."""
    linked: set[tuple[str, str]] = set()
    for page in site.pages.values():
        for row in page.soup.select("table.claims-table tbody tr"):
            link = row.find("a", href=True)
            if link is None:
                yield page.finding(row, "a claim without a link to the cell that settles it")
                continue
            name, _, anchor = link["href"].partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), name))
            target = target if name else page.name
            linked.add((target, anchor))
            yield from _settled(page, row, site.pages.get(target), anchor)
    for page in site.pages.values():
        for box in page.soup.select("div.claim[id]"):
            if linked and (page.name, box["id"]) not in linked:
                yield page.finding(box, "this claim is in no table of claims")


def _settled(page: Page, row: Tag, target: Page | None, anchor: str) -> Iterator[Finding]:
    box = target.by_id.get(anchor) if target else None
    if box is None:
        yield page.finding(row, "this claim's link leads nowhere")
        return
    following = box.find_next(
        lambda tag: tag.name == "div" and {"cell", "claim"} & set(tag.get("class", []))
    )
    source = following.select_one(".cell_input") if following else None
    if source is None or not ASSERTION.search(source.get_text()):
        yield page.finding(row, "the next cell after this claim holds no assertion")
