"""Moodle, "Download all submissions", with folders or without."""

import re
from collections import defaultdict

from gradebox.platforms import canvas
from gradebox.platforms.handed import Handed, by_most
from gradebox.sources import Entry

# The first such mark is Moodle's own: it takes the underscores out of people's names, while what
# follows may be a file's name, which a student chose.
NAME = re.compile(r"^(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+_?")


def _match(entry: Entry) -> re.Match | None:
    return next(filter(None, map(NAME.match, entry.path.parts)), None)


def wrote(entries: list[Entry]) -> bool:
    """Does Moodle's mark stand in most names, before anything of Canvas's? A student can write
    either into the end of a name."""
    return by_most((entry, _is_ours(entry)) for entry in entries)


def _is_ours(entry: Entry) -> bool:
    ours, other = _match(entry), canvas.match(entry)
    if ours is None:
        return False
    return other is None or ours.start("id") <= other.start("user")


def read(entries: list[Entry]) -> list[Handed]:
    """The number is the participant's in this assignment, as the grading worksheet has it. What
    Moodle did not name is kept under the file's whole name, which is nobody's number."""
    students: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        match = _match(entry)
        if match is None and entry.listing:
            continue
        who = (match["id"], match["name"]) if match else (str(entry.path), "")
        students[who].append(entry)
    return [Handed(id, tuple(files), name=name) for (id, name), files in students.items()]
