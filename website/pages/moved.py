"""Old addresses of the book: ``book/moved.toml`` says what they are called now.

The site gets a small page at each old address, the notebooks one at each old path, and what a
browser has kept of its reader goes by the new names. All three read the table here.
"""

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from website.pages.contents import slug

TABLE = Path("book/moved.toml")
MARK = '"moved": true'  # in a notebook that only says where its page is now


@dataclass(frozen=True)
class Moved:
    """A page that was called otherwise. ``words`` are what its labels and predictions began with,
    and do now: ``{"c5": "qk-merge"}``."""

    page: str
    to: str
    words: dict[str, str] = field(default_factory=dict)


def read_moved(root: Path) -> list[Moved]:
    """The rows of the table, the oldest first; no table, no rows."""
    file = root / TABLE
    return [Moved(**row) for row in _rows(file.read_text("utf8"))] if file.is_file() else []


@lru_cache
def _rows(text: str) -> list[dict]:
    return tomllib.loads(text).get("moved", [])


def steps(rows: list[Moved], page: str) -> list[Moved]:
    """The rows that lead from an old page to where it is now: several where it moved again."""
    found: list[Moved] = []
    for row in rows:
        if row.page == page:
            found.append(row)
            page = row.to
    return found


def renamed(name: str, path: list[Moved]) -> str:
    """What an anchor or a prediction of an old page is called now: ``sec-qk-merge-cost``."""
    for row in path:
        for old, new in row.words.items():
            name = f"-{name}-".replace(f"-{old}-", f"-{new}-", 1)[1:-1]
    return name


def old_pages(root: Path) -> dict[str, list[Moved]]:
    """Each old page, and its way to the page that it is now."""
    rows = read_moved(root)
    return {row.page: steps(rows, row.page) for row in rows}


def old_notebooks(root: Path) -> dict[str, str]:
    """The name of each notebook that was called otherwise, and the page that it is now."""
    now = {slug(page): path[-1].to for page, path in old_pages(root).items()}
    return {name: page for name, page in now.items() if name != slug(page)}


def notebooks_in(folder: Path) -> list[Path]:
    """The notebooks of a folder, without those that only say where their page is now."""
    found = sorted(folder.glob("*.ipynb"))
    return [path for path in found if MARK not in path.read_text("utf8")]
