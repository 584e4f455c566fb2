"""The style sheets of a page as one file: eighteen requests, and waits, become one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

LINK = re.compile(
    r'<link (?=[^>]*rel="stylesheet")(?![^>]*media=)[^>]*href="(?P<address>[^"?:]+)[^"]*"[^>]*>\s*'
)
ADDRESS = re.compile(r"""url\((["']?)(?!data:|/|#|https?:)([^"')]+)\1\)""")
IMPORT = re.compile(r"""@import\s*["']([^"']+)["'];""")
CHARSET = re.compile(r'@charset "[^"]*";')
VARIABLE = re.compile(r"""(?<=[{;\s])(--[\w-]+)\s*:(?:"[^"]*"|'[^']*'|[^;{}"'])*(?:;|(?=\}))""")
ASKED = re.compile(r"var\(\s*(--[\w-]+)")
NAMED = re.compile(r"--[\w-]+")


def join_sheets(site: Path) -> None:
    """Give each page of a site one sheet in place of its many, in their order; print keeps its own.

    Pages with the same sheets share a file. Variables that nothing asks for are left out.
    """
    found = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: path.read_text("utf8") for path in found}
    asked = {name for text in pages.values() for name in ASKED.findall(text)}
    asked.update(n for file in site.rglob("*.js") for n in NAMED.findall(file.read_text("utf8")))
    written: dict[tuple[Path, ...], str] = {}
    for path, text in pages.items():
        links = list(LINK.finditer(text))
        sheets = tuple((path.parent / link["address"]).resolve() for link in links)
        if len(sheets) < 2:
            continue
        if sheets not in written:
            written[sheets] = write_sheet(site, sheets, asked)
        up = "../" * (len(path.relative_to(site).parts) - 1)
        begin, end = links[0].span()
        rest = LINK.sub("", text[end:])
        one = f'<link rel="stylesheet" type="text/css" href="{up}{written[sheets]}" />\n'
        path.write_text(text[:begin] + one + rest, "utf8")


def write_sheet(site: Path, sheets: Iterable[Path], asked: set[str]) -> str:
    """Write the sheets as one; its address, seen from the front page."""
    static = site.resolve() / "_static"
    css = without_unasked("\n".join(read_sheet(sheet, static) for sheet in sheets), asked)
    names = (sheet.relative_to(static).as_posix() for sheet in sheets)
    address = f"_static/sheet-{digest(' '.join(names))}.css"
    (site / address).write_text('@charset "UTF-8";' + css, "utf8")
    return f"{address}?v={digest(css)}"


def read_sheet(path: Path, static: Path) -> str:
    """A sheet with what it imports, whose addresses hold when it lies directly in ``static``."""
    folder = path.parent.relative_to(static).as_posix()
    up = "" if folder == "." else f"{folder}/"
    css = CHARSET.sub("", path.read_text("utf8"))
    css = ADDRESS.sub(lambda found: f"url({found[1]}{up}{found[2]}{found[1]})", css)
    return IMPORT.sub(lambda found: read_sheet((path.parent / found[1]).resolve(), static), css)


def without_unasked(css: str, asked: set[str]) -> str:
    """The sheet without variables that neither it nor a page nor a script asks for."""
    wanted = asked.union(ASKED.findall(css))
    lean = VARIABLE.sub(lambda found: found[0] if found[1] in wanted else "", css)
    return lean if lean == css else without_unasked(lean, asked)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
