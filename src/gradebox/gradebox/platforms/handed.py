"""What every platform's reader returns."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gradebox.sources import Entry


@dataclass(frozen=True)
class Handed:
    """Files of one student at one time, before a notebook is chosen from them."""

    student: str
    entries: tuple[Entry, ...]
    order: tuple = ()  # sorts the attempts of a student
    name: str = ""
    email: str = ""
    submitted: datetime | None = None
    late: bool = False
    by_name: bool = False  # only the names of the files put the attempts in order


def by_most(said: Iterable[tuple[Entry, bool]]) -> bool:
    """Do most of these names look as a platform writes them? A folder, which is a section or one
    student, has one voice: no student decides by many files."""
    voices: dict[str, list[bool]] = defaultdict(list)
    for entry, ours in said:
        voices[entry.path.parts[0]].append(ours)
    most = [2 * sum(ours) > len(ours) for ours in voices.values()]
    return 2 * sum(most) > len(most)
