"""Who handed in what: one list, wherever the submissions come from.

Each platform has a reader of its own in ``gradebox.platforms``; it turns the names in an export
into students. Whatever is wrong with one submission becomes its `problem`, a sentence for the
student, and never an exception: one odd file must not stop the marking of all others.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from gradebox.platforms import READERS, gradescope, moodle, recognise
from gradebox.platforms.handed import Handed
from gradebox.reading import NotReadableError
from gradebox.sources import EMPTY, LISTS, Entry, InputError, handed_in, in_zip, open_source
from gradebox.words import quoted


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
    beside: tuple[str, ...] = ()  # other files of the student, which nobody looks at


def collect(
    source: Path, platform: str = "auto", say: Callable[[str], None] = lambda sentence: None
) -> list[Found]:
    """All attempts of all students, in the order of students and attempts. How the source was read
    is said.

    Raises:
        InputError: The source does not exist, holds nothing that looks like a submission, or a
            folder that may be a student or the class.
    """
    entries, around = unwrapped(open_source(source))
    chosen = recognise(entries) if platform == "auto" else platform
    handed = READERS[chosen](entries)
    if not handed:
        raise InputError(f"{source} holds no submissions (read as: {chosen})")
    say(f"read as: {chosen}{f', inside {quoted(around)}' if around else ''}")
    used = {id(entry) for one in handed for entry in one.entries}
    left = [entry.path for entry in entries if id(entry) not in used]
    say_some("left out", [quoted(str(one)) for one in left if one.name != gradescope.METADATA], say)
    if chosen == "folder":
        _ask_whose(handed, platform, say)
    return _attempts(handed)


def unwrapped(entries: list[Entry]) -> tuple[list[Entry], str]:
    """Without the folders around all that was handed in, as a download or an archive has them, and
    how these are called. The folder around a single file is a student's, and a platform's stay."""
    around = PurePosixPath()
    while True:
        seen = [one for one in entries if not one.hidden and not one.noise]
        below = [one for one in seen if len(one.path.parts) > 1]
        tops = {one.path.parts[0] for one in [*below, *filter(_is_notebook, seen)]}
        files = [one for one in below if one.suffix not in LISTS]
        single = len(files) == 1 and len(files[0].path.parts) == 2
        whose = any(str(one.path) == gradescope.METADATA for one in seen)
        if len(tops) != 1 or not below or single or whose or any(map(moodle.NAME.match, tops)):
            return entries, str(around) if around.parts else ""
        (top,) = tops
        around /= top
        moved = []
        for one in entries:
            first, *rest = one.path.parts
            inside = rest and first == top
            moved.append(replace(one, path=PurePosixPath(*rest)) if inside else one)
        entries = handed_in(moved)


def _ask_whose(handed: list[Handed], platform: str, say: Callable[[str], None]) -> None:
    """A folder with several notebooks is a student, or the class."""
    count = Counter(one.student for one in handed if _notebooks(one.entries))
    several = [f"{quoted(name)} ({times})" for name, times in count.items() if times > 1]
    if len(count) == 1 and several and platform == "auto":
        raise InputError(
            f"all notebooks lie in the folder {several[0]}: give that folder if it holds the "
            "class, or say --platform folder if it is one student"
        )
    say_some("several notebooks in a folder are attempts of one student", several, say)


def say_some(what: str, names: list[str], say: Callable[[str], None]) -> None:
    """The first of them, if there are any."""
    if names:
        say(f"{what}: {', '.join(names[:20])}{' ...' if names[20:] else ''}")


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
        chosen = [one for one in tries if _notebooks(one.entries)]
        chosen = [one for one in chosen if not _notebooks(one.entries)[0].hidden] or chosen
        looked_at = [entry for one in chosen for entry in _notebooks(one.entries)]
        beside = _others(tries, looked_at or [*tries[-1].entries])
        alike = Counter(entry.path.name for entry in looked_at)
        for attempt, one in enumerate(chosen or tries[-1:], 1):
            this = replace(choose(one), attempt=attempt, beside=beside)
            if alike[this.file] > 1:  # only their folders tell them apart
                this = replace(this, file=str(_notebooks(one.entries)[0].path))
            found.append(this)
    return found


def _others(tries: list[Handed], looked_at: list[Entry]) -> tuple[str, ...]:
    """The names of a student's files but for those that are looked at."""
    known = {id(entry) for entry in looked_at}
    files = [entry for one in tries for entry in one.entries if id(entry) not in known]
    return tuple(one.path.name for one in files if not one.noise and one.path.name != EMPTY)


def _is_notebook(entry: Entry) -> bool:
    return entry.suffix in {".ipynb", ".zip"}


def _notebooks(entries: Iterable[Entry]) -> list[Entry]:
    """The notebooks among files, or else the archives; hidden ones where there are no others."""
    entries = [one for one in entries if not one.noise]
    for hidden in (False, True):
        for suffix in (".ipynb", ".zip"):
            found = [one for one in entries if one.suffix == suffix and one.hidden is hidden]
            if found:
                return found
    return []


def choose(one: Handed) -> Found:
    """The notebook among the files of one attempt; a zip file of the student's is looked into."""
    found = _notebooks(one.entries)
    if len(found) == 1 and found[0].suffix == ".zip":
        read, file = _inside(found[0]), found[0].path.name
    else:
        read, file = _only(found, one.entries)
    about = {key: getattr(one, key) for key in ("name", "email", "submitted", "late", "by_name")}
    return Found(one.student, read, file=file, **about)


def _only(found: list[Entry], all_entries: Iterable[Entry]) -> tuple[Callable, str]:
    if len(found) == 1:
        return found[0].read, found[0].path.name
    files = [one for one in all_entries if not one.noise and one.path.name != EMPTY]
    named = sorted(entry.path.name for entry in found or files)[:4]
    names = ", ".join(map(quoted, named))
    if found:
        what = "notebooks" if found[0].suffix == ".ipynb" else "archives"
        return refuse(f"several {what}, and it is not known which one counts: {names}"), names
    return refuse(f"no notebook (.ipynb) was handed in, but: {names or 'nothing'}"), names


def _inside(archive: Entry) -> Callable[[], bytes]:
    def read() -> bytes:
        inside = in_zip(archive.read())
        notebooks = _notebooks(entry for entry in inside if entry.suffix == ".ipynb")
        platform = recognise(inside)
        if len(notebooks) > 1 and platform != "folder":
            raise NotReadableError(
                f"this archive is an export of {platform} with {len(notebooks)} notebooks: if it "
                "is a section, give it to the grader by itself"
            )
        return _only(notebooks, inside)[0]()

    return read


def refuse(why: str) -> Callable[[], bytes]:
    """A reader for what cannot be read."""

    def read() -> bytes:
        raise NotReadableError(why)

    return read
