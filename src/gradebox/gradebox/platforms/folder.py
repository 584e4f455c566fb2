"""A plain folder: a notebook for each student, or a folder for each student."""

import re
from pathlib import PurePosixPath

from gradebox.platforms.handed import Handed
from gradebox.sources import Entry

OUTSIDE = re.compile(
    r"\.\.|/|//|[A-Za-z]:"
)  # the first part of a name that leads out of an archive


def read(entries: list[Entry]) -> list[Handed]:
    """Several notebooks in a student's folder are attempts, in the order of their names."""
    found = []
    for entry in entries:
        if entry.listing:
            continue
        student = entry.path.stem if len(entry.path.parts) == 1 else entry.path.parts[0]
        if OUTSIDE.fullmatch(student):  # of all that it has a name of its own alone
            student = str(entry.path.with_suffix(""))
        order = natural(entry.path)
        found.append(Handed(student, (entry,), order, name=student, by_name=True))
    return found


def natural(path: PurePosixPath) -> tuple:
    """A key that sorts v9 before v10, and a2.ipynb before a2 (1).ipynb."""
    parts = (*path.parent.parts, path.stem, path.suffix)
    return tuple(
        tuple(map(_number_or_text, re.split(r"([0-9]+)", part.casefold()))) for part in parts
    )


def _number_or_text(piece: str) -> tuple[int, str]:
    """Sorts numbers by size, without int(), which takes only so many digits."""
    number = piece.lstrip("0")
    return (len(number), number) if re.fullmatch("[0-9]+", piece) else (0, piece)
