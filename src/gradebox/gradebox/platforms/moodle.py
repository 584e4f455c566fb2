"""Moodle, "Download all submissions", with folders or without."""

from __future__ import annotations

import re
from collections import defaultdict

from gradebox.collect import Handed
from gradebox.sources import Entry

NAME = re.compile(r"^(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?")


def _match(entry: Entry) -> re.Match | None:
    return next(filter(None, map(NAME.match, entry.path.parts)), None)


def wrote(entries: list[Entry]) -> bool:
    """Do most names hold Moodle's mark? A student can write it into one."""
    return 2 * sum(_match(entry) is not None for entry in entries) > len(entries)


def read(entries: list[Entry]) -> list[Handed]:
    """The number is the participant's in this assignment, as the grading worksheet has it."""
    students: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        if match := _match(entry):
            students[match["id"], match["name"]].append(entry)
    return [Handed(id, tuple(files), name=name) for (id, name), files in students.items()]
