"""Check the built site; print one line for each defect.

The checks are in site_checks/. tests/tools/test_check_site.py plants each defect and sees it
caught.
"""

import sys
from pathlib import Path

from website.build.site import Finding, Page, Site
from website.build.site_checks import addresses, content, weight

ROOT = Path(__file__).resolve().parents[2]
OF_A_PAGE = [
    content.alt_texts,
    content.remnants,
    content.outputs,
    content.folds,
    content.ids,
    content.figures,
]
OF_THE_SITE = [
    content.stray_files,
    addresses.third_party,
    addresses.missing_resources,
    addresses.links,
    addresses.repository_links,
    weight.heavy_pages,
]


def check(html: Path, root: Path = ROOT) -> list[Finding]:
    """All findings in the site at ``html``, whose sources are the repository at ``root``."""
    return check_pages(Site(html, root))


def check_pages(site: Site) -> list[Finding]:
    """The same, of a site whose pages are read already."""
    if not site.pages:
        return [Finding(str(site.html), "site", "there is no page here: build the book first")]
    found = [page.finding(*told) for page in site.pages.values() for told in page.fact(defects)]
    return found + [finding for one in OF_THE_SITE for finding in one(site)]


def defects(page: Page) -> list[tuple[str, str]]:
    """(element, message) of all that is wrong with a page in itself."""
    return [(found.element, found.message) for one in OF_A_PAGE for found in one(page)]


def report(site: Site) -> bool:
    """Print each defect, or that there is none; says whether there is any."""
    found = check_pages(site)
    for finding in found:
        print(finding, file=sys.stderr)
    if not found:
        weights = weight.weights(site)
        name, bytes_ = max(weights.items(), key=lambda item: item[1])
        print(f"{len(weights)} pages, nothing to complain; heaviest: {name}, {bytes_ // 1000} kB")
    return bool(found)
