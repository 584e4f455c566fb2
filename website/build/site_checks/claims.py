"""The table of claims: each row leads to a claim, and each claim to a cell that settles it."""

import posixpath
import re
from collections.abc import Iterator

from bs4 import Tag

from website.build.site import Finding, Page, Site, show

ASSERTION = re.compile(r"\bassert\b|\bassert_\w+\(")


def claims(site: Site) -> Iterator[Finding]:
    """Every row links to a claim on a page, and the next cell there holds an assertion."""
    linked: set[tuple[str, str]] = set()
    for page in site.pages.values():
        for row, address in page.fact(rows):
            if not address:
                yield page.finding(row, "a claim without a link to the cell that settles it")
                continue
            name, _, anchor = address.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), name))
            target = target if name else page.name
            linked.add((target, anchor))
            there = site.pages[target].fact(boxes) if target in site.pages else {}
            if anchor not in there:
                yield page.finding(row, "this claim's link leads nowhere")
            elif not there[anchor][1]:
                yield page.finding(row, "the next cell after this claim holds no assertion")
    for page in site.pages.values():
        for anchor, (box, _) in page.fact(boxes).items():
            if linked and (page.name, anchor) not in linked:
                yield page.finding(box, "this claim is in no table of claims")


def rows(page: Page) -> list[tuple[str, str]]:
    """(row, the address that it links to) of the tables of claims."""
    found = page.soup.select("table.claims-table tbody tr")
    links = [row.find("a", href=True) or {"href": ""} for row in found]
    return [(show(row), link["href"]) for row, link in zip(found, links, strict=True)]


def boxes(page: Page) -> dict[str, tuple[str, bool]]:
    """Id -> (element, is it settled?) of the claims on a page."""
    found = page.soup.select("div.claim[id]")
    return {box["id"]: (show(box), settled(box)) for box in found}


def settled(box: Tag) -> bool:
    """Does the next cell after a claim hold an assertion?"""
    following = box.find_next(
        lambda tag: tag.name == "div" and {"cell", "claim"} & set(tag.get("class", []))
    )
    sources = following.select(".cell_input") if following else []
    return any(ASSERTION.search(source.get_text()) for source in sources)
