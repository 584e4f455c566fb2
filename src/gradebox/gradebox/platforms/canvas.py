"""Canvas, "Download Submissions": name_LATE_user_attachment_file, all files side by side."""

from __future__ import annotations

import re

from gradebox.collect import Handed
from gradebox.sources import Entry

NAME = re.compile(
    r"^(?P<name>.+?)_(?P<late>LATE_)?(?P<user>\d+)_(?:(?P<attachment>\d+)_.+|(?:text|link)\.html)$"
)
ANONYMOUS = re.compile(r"^(?P<name>anon)_(?P<late>LATE_)?(?P<user>\w{5})_(?P<attachment>\d+)_.+$")


def _match(entry: Entry) -> re.Match | None:
    return ANONYMOUS.match(entry.path.name) or NAME.match(entry.path.name)


def wrote(entries: list[Entry]) -> bool:
    """Are all names like Canvas's?"""
    return bool(entries) and all(len(one.path.parts) == 1 and _match(one) for one in entries)


def read(entries: list[Entry]) -> list[Handed]:
    """Attachments are numbered upward, so a greater number is a later attempt. Canvas says that
    something is late, and not when it came."""
    found = []
    for entry in entries:
        match = _match(entry)
        if match is None:
            found.append(Handed(entry.path.stem, (entry,), name=entry.path.stem))
            continue
        order = (int(match.groupdict().get("attachment") or 0),)
        late = bool(match["late"])
        found.append(Handed(match["user"], (entry,), order, name=match["name"], late=late))
    return found
