"""Who handed in what: one list, wherever the submissions come from.

Each platform has a reader of its own in ``gradebox.platforms``; it turns the names in an export
into students. Whatever is wrong with one submission becomes its `problem`, a sentence for the
student, and never an exception: one odd file must not stop the marking of all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gradebox.platforms import READERS, recognise
from gradebox.platforms.handed import Handed
from gradebox.reading import NotReadableError
from gradebox.sources import Entry, InputError, in_zip, open_source


@dataclass(frozen=True)
class Found:
    """One attempt of one student."""

    student: str  # the platform's key: a number, an e-mail address or a name
    read: Callable[[], bytes]  # the notebook; raises NotReadableError
    name: str = ""
    email: str = ""
    file: str = ""  # what the student called it; shown, never opened by that name
    attempt: int = 1
    submitted: datetime | None = None
    late: bool = False  # the platform's own mark, where it says no time
    by_name: bool = False  # only the names say which of several attempts is the last


def collect(source: Path, platform: str = "auto") -> list[Found]:
    """All attempts of all students, in the order of students and attempts.

    Raises:
        InputError: The source does not exist, or holds nothing that looks like a submission.
    """
    entries = open_source(source)
    chosen = recognise(entries) if platform == "auto" else platform
    handed = READERS[chosen](entries)
    if not handed:
        raise InputError(f"{source} holds no submissions (read as: {chosen})")
    return _attempts(handed)


def _attempts(handed: Iterable[Handed]) -> list[Found]:
    handed = list(handed)
    names = {(one.student, one.name) for one in handed}
    several = {id for id, count in Counter(id for id, _ in names).items() if count > 1}
    students: dict[str, list[Handed]] = defaultdict(list)
    for one in handed:  # a number with two names is not one person's
        student = f"{one.student} ({one.name})" if one.student in several else one.student
        students[student].append(replace(one, student=student))
    found = []
    for student in sorted(students):
        tries = sorted(students[student], key=lambda one: one.order)
        notebooks = [one for one in tries if _holds_notebook(one)]
        for attempt, one in enumerate(notebooks or tries[-1:], 1):
            found.append(replace(choose(one), attempt=attempt))
    return found


def _holds_notebook(one: Handed) -> bool:
    return any(entry.suffix in {".ipynb", ".zip"} for entry in one.entries)


def choose(one: Handed) -> Found:
    """The notebook among the files of one attempt; a zip file of the student's is looked into."""
    entries = [entry for entry in one.entries if entry.suffix == ".ipynb"]
    zipped = [entry for entry in one.entries if entry.suffix == ".zip"]
    if entries or not zipped:
        read, file = _only(entries, one.entries)
    else:
        read, file = _inside(zipped[0]), zipped[0].path.name
    about = {key: getattr(one, key) for key in ("name", "email", "submitted", "late", "by_name")}
    return Found(one.student, read, file=file, **about)


def _only(notebooks: Iterable[Entry], all_entries: Iterable[Entry]) -> tuple[Callable, str]:
    notebooks = list(notebooks)
    if len(notebooks) == 1:
        return notebooks[0].read, notebooks[0].path.name
    names = ", ".join(sorted(entry.path.name[:60] for entry in notebooks or all_entries)[:4])
    if notebooks:
        return refuse(f"several notebooks, and it is not known which one counts: {names}"), names
    return refuse(f"no notebook (.ipynb) was handed in, but: {names or 'nothing'}"), names


def _inside(archive: Entry) -> Callable[[], bytes]:
    def read() -> bytes:
        inside = in_zip(archive.read())
        return _only((entry for entry in inside if entry.suffix == ".ipynb"), inside)[0]()

    return read


def refuse(why: str) -> Callable[[], bytes]:
    """A reader for what cannot be read."""

    def read() -> bytes:
        raise NotReadableError(why)

    return read
