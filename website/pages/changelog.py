"""What CHANGELOG.md says, for all who need it: a release, and the book's page of changes.

    ## Unreleased
    - Something new.
    ### Errata
    - The chapter on heads said ..., which is wrong: ...

    ## 0.1.0 (2026-11-24)
    ...

A part "Errata" names statements of the course that were wrong, and what holds instead.
"""

import re
from dataclasses import dataclass
from pathlib import Path

NAME = "CHANGELOG.md"
UNRELEASED = "Unreleased"
ERRATA = "Errata"
HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
RELEASED = re.compile(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)")
PART = re.compile(r"^### +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """What one release says of itself, as Markdown.

    Attributes:
        version: "" for what is not released yet.
        date: ``2026-11-24``, "" likewise.
        notes: what is new.
        errata: which statements were wrong, "" where none is known.
    """

    version: str
    date: str
    notes: str
    errata: str

    @property
    def empty(self) -> bool:
        return not self.notes and not self.errata


def read_changes(root: Path) -> list[Release]:
    """The releases of the change log of the repository at ``root``, the newest first.

    Raises:
        ValueError: A heading is none of those above, or the order is another.
    """
    _, *parts = HEADING.split((root / NAME).read_text("utf8"))
    titles, texts = parts[::2], parts[1::2]
    if titles[:1] != [UNRELEASED]:
        raise ValueError(f"{NAME} has to begin with '## {UNRELEASED}', not with {titles[:1]}")
    found = [of_text("", "", texts[0])]
    for title, text in zip(titles[1:], texts[1:], strict=True):
        match = RELEASED.fullmatch(title)
        if match is None:
            raise ValueError(f"{NAME}: write '## 0.2.0 (2026-01-31)', not {title!r}")
        found.append(of_text(match[1], match[2], text))
    return found


def of_text(version: str, date: str, text: str) -> Release:
    notes, *parts = PART.split(text)
    titles, errata = parts[::2], "".join(parts[1::2])
    if titles not in ([], [ERRATA]):
        raise ValueError(f"{NAME}: the only part of a release is '### {ERRATA}', not {titles}")
    return Release(version, date, notes.strip(), errata.strip())
