"""How many bytes a reader loads to see one page, gzip-compressed."""

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from website.build.site import Finding, Page, Site

from .addresses import css_addresses, loaded, local_path

LIMIT = 1_000_000  # bytes
FONT_FACE = re.compile(r"@font-face\s*\{[^}]*\}")


@cache
def compressed(path: Path) -> int:
    data = path.read_bytes()
    return min(len(data), len(gzip.compress(data, 6)))


def resources(site: Site, page: Page) -> set[Path]:
    """The page, what it loads, and the pictures and sheets that its style sheets load.

    A figure has a picture for each theme, of about one size, and a browser loads one of them.

    Which declared fonts a page needs only a browser knows: tests/site/test_site.py counts them.
    """
    files, unseen = {page.path}, page.fact(dark_pictures)
    for _, address in page.fact(loaded):
        if address in unseen:
            continue
        path = local_path(site, page.name, address)
        if path is not None and path.is_file():
            files.add(path)
            if path.suffix == ".css":
                files |= _from_css(site, path)
    return files


def dark_pictures(page: Page) -> list[str]:
    """The addresses of the pictures that only the dark theme shows."""
    return [image["src"] for image in page.soup.select("img.only-dark")]


def _from_css(site: Site, sheet: Path) -> set[Path]:
    """Pictures and imported sheets."""
    addresses = css_addresses(FONT_FACE.sub("", sheet.read_text(encoding="utf-8")))
    base = sheet.relative_to(site.html).as_posix()
    paths = (local_path(site, base, address) for address in addresses)
    return {path for path in paths if path is not None and path.is_file()}


def weights(site: Site) -> dict[str, int]:
    """Page -> bytes."""
    return {
        name: sum(compressed(path) for path in resources(site, page))
        for name, page in site.pages.items()
    }


def heavy_pages(site: Site) -> Iterator[Finding]:
    """A page with all its resources stays below the limit."""
    for name, bytes_ in weights(site).items():
        if bytes_ > LIMIT:
            parts = sorted(resources(site, site.pages[name]), key=compressed, reverse=True)[:3]
            largest = ", ".join(f"{path.name} {compressed(path) // 1000} kB" for path in parts)
            yield Finding(name, "page", f"{bytes_ // 1000} kB compressed; largest: {largest}")
