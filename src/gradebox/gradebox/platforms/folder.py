"""A plain folder: a notebook for each student, or a folder for each student."""

from __future__ import annotations

from gradebox.platforms.handed import Handed
from gradebox.sources import Entry

OTHER = {".csv", ".tsv", ".xlsx", ".yml", ".yaml", ".json", ".md"}  # lists that lie beside them


def read(entries: list[Entry]) -> list[Handed]:
    """Several notebooks in a student's folder are attempts, in the order of their names."""
    found = []
    for at, entry in enumerate(entries):
        alone = len(entry.path.parts) == 1
        if alone and entry.suffix in OTHER:
            continue
        student = entry.path.stem if alone else entry.path.parts[0]
        found.append(Handed(student, (entry,), order=(at,), name=student))
    return found
