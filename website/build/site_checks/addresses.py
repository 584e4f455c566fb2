"""Where a page points: its links, anchors, downloads and launch buttons, and what it loads."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import Tag

from website.build.site import Finding, Page, Site, shorten, show
from website.pages.settings import read_settings

NOT_LOADED = {
    "canonical",
    "alternate",
    "author",
    "next",
    "prev",
    "search",
    "index",
    "license",
    "help",
}
LOADED = {
    "script": ["src"],
    "img": ["src", "srcset"],
    "source": ["src", "srcset"],
    "iframe": ["src"],
    "embed": ["src"],
    "object": ["data"],
    "video": ["src", "poster"],
    "audio": ["src"],
    "track": ["src"],
    "input": ["src"],
    "use": ["href", "xlink:href"],
    "image": ["href", "xlink:href"],
}
CSS_ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]")
STATE = re.compile(r"[a-z-]+:[a-zA-Z.]+=")
COLAB = "https://colab.research.google.com/"


def loaded(page: Page) -> list[tuple[str, str]]:
    """(element, address) of everything a browser fetches when it opens the page."""
    return [(show(element), address) for element, address in _loaded(page)]


def linked(page: Page) -> list[tuple[str, str]]:
    """(element, address) of each link."""
    return [(show(link), link["href"]) for link in page.soup.find_all("a", href=True)]


def has_cells(page: Page) -> bool:
    return bool(page.cells)


def _loaded(page: Page) -> Iterator[tuple[Tag, str]]:
    for element in page.soup.find_all([*LOADED, "link"]):
        if element.name == "link":
            names = ["href"] if not NOT_LOADED & set(element.get("rel") or []) else []
        else:
            names = LOADED[element.name]
        for name in names:
            for address in _addresses(element.get(name) or "", name):
                yield element, address
    for element in page.soup.find_all("style"):
        yield from ((element, address) for address in css_addresses(element.get_text()))
    for element in page.soup.find_all(style=True):
        yield from ((element, address) for address in css_addresses(element["style"]))


def _addresses(value: str, attribute: str) -> list[str]:
    if attribute == "srcset" and not value.startswith("data:"):
        return [part.split()[0] for part in value.split(",") if part.strip()]
    return [value] if value else []


def css_addresses(css: str) -> list[str]:
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return [match[1] or match[2] for match in CSS_ADDRESS.finditer(css)]


def is_external(address: str) -> bool:
    return address.startswith("//") or urlsplit(address).scheme in {
        "http",
        "https",
        "ws",
        "wss",
        "ftp",
    }


def local_path(site: Site, base: str, address: str) -> Path | None:
    """The file behind a relative address seen from the file named ``base``; None for others."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or address.startswith("#"):
        return None
    path = posixpath.join(posixpath.dirname(base), unquote(parts.path)) if parts.path else base
    return site.html / posixpath.normpath(path.lstrip("/") if path.startswith("/") else path)


def third_party(site: Site) -> Iterator[Finding]:
    """A page loads nothing from anybody else, neither itself nor through its style sheets."""
    seen: set[Path] = set()
    for page in site.pages.values():
        for element, address in page.fact(loaded):
            if is_external(address):
                yield page.finding(element, f"loads {shorten(address)} from another site")
                continue
            path = local_path(site, page.name, address)
            if path and path.suffix == ".css" and path.is_file() and path not in seen:
                seen.add(path)
                yield from _style_sheet(site, path)


def _style_sheet(site: Site, path: Path) -> Iterator[Finding]:
    name = path.relative_to(site.html).as_posix()
    for address in css_addresses(path.read_text(encoding="utf-8")):
        if is_external(address):
            yield Finding(name, "url()", f"loads {shorten(address)} from another site")


def missing_resources(site: Site) -> Iterator[Finding]:
    """Every local script, style sheet and picture exists."""
    for page in site.pages.values():
        for element, address in page.fact(loaded):
            path = local_path(site, page.name, address)
            if path is not None and not path.is_file():
                yield page.finding(element, f"loads {shorten(address)}, which does not exist")


def place(fragment: str) -> str:
    """The id that the end of an address leads to; "train:depth=2" is the state of a figure."""
    return f"live-{fragment.partition(':')[0]}" if STATE.match(fragment) else fragment


def links(site: Site) -> Iterator[Finding]:
    """Every link inside the site leads to a file, and to an anchor where it names one."""
    for page in site.pages.values():
        for element, address in page.fact(linked):
            here = address.startswith("#")
            path = page.path if here else local_path(site, page.name, address)
            anchor = place(unquote(urlsplit(address).fragment))
            if path is None:
                continue
            if path.is_dir():
                path /= "index.html"
            if site.html not in path.parents or not path.is_file():
                yield page.finding(element, f"broken link to {shorten(address)}")
                continue
            target = site.pages.get(path.relative_to(site.html).as_posix())
            if target and anchor not in target.anchors:
                yield page.finding(element, f"no element has the id of {shorten(address)}")


def repository_links(site: Site) -> Iterator[Finding]:
    """Launch buttons open notebooks of this build; links into the repository lead to its files."""
    settings = read_settings(site.root)
    colab = settings.colab_url
    at = f"{re.escape(settings.repository)}/(?:blob|raw|tree)/{re.escape(settings.commit)}"
    source = re.compile(rf"{at}/(.+)")
    for name, page in site.pages.items():
        launched = False
        for element, href in page.fact(linked):
            address = unquote(href.partition("#")[0])
            launched |= address.startswith(COLAB)
            file = address.removeprefix(colab)
            if address.startswith(COLAB) and not re.fullmatch(r"[\w-]+\.ipynb", file):
                yield page.finding(element, f"the Colab link is not {colab}...")
            elif address.startswith(COLAB) and not (site.html / "notebooks" / file).is_file():
                yield page.finding(element, f"notebooks/{file} does not exist")
            elif (match := source.match(address)) and not (site.root / match[1]).exists():
                yield page.finding(element, f"the repository has no {match[1]}")
        if not launched and page.fact(has_cells) and name != "index.html":
            yield page.finding("page", "has cells but no Colab link")
