"""What every platform's reader returns."""

from __future__ import annotations

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
