"""Canvas, "Download Submissions": name_LATE_user_attachment_file, all files side by side. A quiz
has question_NUMBER before the attachment, and a name without letters is empty."""

import re

from gradebox.platforms.handed import Handed, by_most
from gradebox.sources import Entry

NAME = re.compile(
    r"^(?P<name>.*?)_(?P<late>LATE_)?(?P<user>\d+)_"
    r"(?:(?:question_\d+_)?(?P<attachment>\d+)_.+|(?:text|link)\.html)$"
)
ANONYMOUS = re.compile(r"^(?P<name>anon)_(?P<late>LATE_)?(?P<user>\w{5})_(?P<attachment>\d+)_.+$")


def match(entry: Entry) -> re.Match | None:
    """The parts of a name that Canvas wrote, if it did."""
    return ANONYMOUS.match(entry.path.name) or NAME.match(entry.path.name)


def wrote(entries: list[Entry]) -> bool:
    """Are most names like Canvas's? What could be no answer has no voice."""
    said = ((entry, bool(match(entry))) for entry in entries)
    return by_most(
        (entry, ours) for entry, ours in said if ours or entry.suffix in {".ipynb", ".zip"}
    )


def read(entries: list[Entry]) -> list[Handed]:
    """Attachments are numbered upward, so a greater number is a later attempt. Canvas says that
    something is late, and not when it came."""
    found = []
    for entry in entries:
        named = match(entry)
        if named is None and entry.listing:
            continue
        if named is None:
            found.append(Handed(str(entry.path), (entry,)))  # not Canvas's: nobody's number
            continue
        order = (int(named.groupdict().get("attachment") or 0),)
        late = bool(named["late"])
        found.append(Handed(named["user"], (entry,), order, name=named["name"], late=late))
    return found
