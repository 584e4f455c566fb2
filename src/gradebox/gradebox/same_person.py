"""The same student in a roster, an export and a gradebook: matched by number, e-mail or name."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gradebox.sources import ESCAPED, InputError

# Columns as the roster, Canvas and Moodle call them; the first that a row has is shown.
IDS = (
    *("id", "student id", "sid", "sis user id", "sis login id", "canvas id", "moodle id"),
    *("id number", "identifier", "username"),
)
NAMES = ("name", "full name", "student", "student name")
# What may stand above a header: blank lines, and the delimiter as spreadsheets write it.
BLANK = r"(?:[ ,;\t]*[\r\n])*"
ABOVE = re.compile(rf'{BLANK}(?:"?sep=([,;\t])"?[ \t]*[\r\n]+)?{BLANK}', re.IGNORECASE)
EMAILS = ("email", "email address", "e-mail")


@dataclass(frozen=True)
class Person:
    """Who a row is about, and all keys by which the row can be found."""

    id: str
    name: str
    email: str
    # ("id", "4711"), ("email", ...), ("name", "jane doe"), ("apart", "doejane") or, where it is
    # not known what its words are, ("run together", "doejane")
    keys: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """A CSV file as it was read, so that it can be written back as it was."""

    header: list[str]
    rows: list[list[str]]
    delimiter: str
    bom: bool
    newline: str
    above: str = ""  # of the header: blank lines, or a spreadsheet's "sep=;"

    @property
    def first_line(self) -> int:
        """The number of the line that holds the first row."""
        return 2 + len(self.above.splitlines())

    def column(self, *names: str) -> int | None:
        """The first column with one of these names, whatever the case."""
        lower = [name.strip().lower() for name in self.header]
        return next((lower.index(name) for name in names if name in lower), None)

    def cell(self, row: list[str], *names: str) -> str:
        at = self.column(*names)
        return row[at].strip() if at is not None and at < len(row) else ""

    def person(self, row: list[str]) -> Person:
        """Who this row is about."""
        worksheet = self.column("grade can be changed") is not None
        moodle = _number(self.cell(row, "identifier"), worksheet)
        ids = [moodle if name == "identifier" else self.cell(row, name) for name in IDS]
        ids = [one for one in ids if one]
        name, email = self.cell(row, *NAMES), self.cell(row, *EMAILS)
        first, last = self.cell(row, "first name"), self.cell(row, "surname", "last name")
        name = name or f"{first} {last}".strip()
        return person(next(iter(ids), "") or email or name, name, email, also=ids)

    def encode(self) -> bytes:
        """The file's bytes: the same delimiter, line ends and byte-order mark."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline)
        writer.writerows([self.header, *self.rows])
        return (self.above + text.getvalue()).encode("utf-8-sig" if self.bom else "utf-8")


def read_table(path: Path, what: str) -> Table:
    """A CSV file with a header; comma, semicolon or tab, with or without a byte-order mark.

    Raises:
        InputError: It does not exist, is no text, or has no rows.
    """
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"there is no {what} {path} ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: save the {what} as CSV (UTF-8)") from error
    above = next(ABOVE.finditer(text))
    text = text.removeprefix(above[0])
    first = text.splitlines()[0] if text.strip() else ""
    delimiter = above[1] or max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(f"{path} is no CSV file: {error}") from error
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InputError(f"{path} is empty: a {what} needs a header and a row for each student")
    newline = "\r\n" if "\r\n" in text else "\n"
    bom = raw.startswith(b"\xef\xbb\xbf")
    return Table(rows[0], rows[1:], delimiter, bom, newline, above[0])


def _number(identifier: str, worksheet: bool) -> str:
    """4711 of Moodle's "Participant 4711" in any language, which need not have a space there."""
    known = worksheet or " " in identifier
    return re.sub(r"^\D+(?=\d+$)", "", identifier) if known else identifier


def person(id: str, name: str = "", email: str = "", also: Iterable[str] = ()) -> Person:
    """A person with the keys that follow from what is known."""
    keys = {("id", one.casefold()) for one in (id, *also) if one}
    for address in (email, id):
        if "@" in address:
            keys |= {("email", address.casefold())}
    words = words_of(name or (id if not id.isdigit() else ""))
    if len(words) == 1:
        keys |= {("name", words[0]), ("run together", words[0])}
    elif words:
        keys.add(("name", " ".join(words)))
        turned = (words[at:] + words[:at] for at in range(1, min(len(words), 9)))
        keys |= {("apart", "".join(one)) for one in turned}
    return Person(id, name, email, frozenset(keys))


def words_of(name: str) -> list[str]:
    """A name's words, small and without accents: "Doe, Jane" and "Jane Doe" are one person, "Doe
    Jane" may be another."""
    name = re.sub(ESCAPED, " ", name)
    last, comma, first = name.partition(",")
    return re.findall(r"\w+", plain((f"{first} {last}" if comma else name).replace("_", " ")))


def contradict(one: Person, other: Person) -> bool:
    """Are these the names of two people? Not if one has all words of the other, an initial counting
    as a word; "doejane" has those that it consists of. A key in the place of a name is none."""
    names = [words_of(who.name) for who in (one, other) if who.name.casefold() != who.id.casefold()]
    if len(names) < 2 or not all(names):
        return False
    few, many = sorted(names, key=len)
    if len(few) == 1 and len(many) > 1:
        run = few[0]
        ends = any(run.startswith(word) or run.endswith(word) for word in many)
        return not (consists_of(run, many) or (ends and all(word in run for word in many)))
    known = set(many) | {word[0] for word in many}
    return not (set(few) <= known or {word[0] for word in few} | set(few) >= set(many))


def consists_of(run: str, words: list[str]) -> bool:
    """Is this a row of some of the words, without spaces?"""
    reached = {0}
    for at in range(len(run)):
        if at in reached:
            reached |= {at + len(word) for word in words if run.startswith(word, at)}
    return len(run) in reached


def plain(text: str) -> str:
    """Small letters without accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))


# "doejane" is found among names whose words are known, and these among those.
MEETS = {"run together": "apart", "apart": "run together"}


class Matcher:
    """Finds a person in a list: by number, else by e-mail, else by a name that only one has."""

    def __init__(self, people: Iterable[Person]):
        self.people = list(people)
        # Are numbers of one kind: do those that are looked for count as those in the list?
        self.one_kind: bool | None = None  # not known before ``learn``
        self.at: dict[tuple[str, str], list[int]] = {}
        for index, one in enumerate(self.people):
            for key in one.keys:
                self.at.setdefault(key, []).append(index)

    def learn(self, people: Iterable[Person]) -> None:
        """Do the numbers of these people count as those in the list? So they do if one is found by
        number and by name: then another number is another person, whatever the name. If nobody
        is, a number without the very name may be another platform's, and decides nothing."""
        found = map(self._sure, people)
        self.one_kind = any(sure.get("number", -1) == sure.get("name", -2) for sure in found)

    def find(self, wanted: Person) -> int | None:
        """The place in the list; nothing if nobody matches, or ``doubt`` says why not."""
        sure = set(self._sure(wanted).values())
        return sure.pop() if sure and not self.doubt(wanted) else None

    def doubt(self, wanted: Person) -> str:
        """Why somebody who may be in the list is not taken for that person; nothing without
        doubt."""
        found = self._places(wanted)
        sure = self._sure(wanted)
        if len(set(sure.values())) > 1:
            whose = (f"its {kind} is that of {self._called(at)}" for kind, at in sure.items())
            return ", ".join(whose)
        if set(sure) == {"number"}:
            at = sure["number"]
            if contradict(wanted, self.people[at]):
                return f"its number is that of {self._called(at)}, its name is not"
            if self.one_kind is False and self._named(wanted, at):
                return f"its number is that of {self._called(at)}, its name is not quite"
        if set(sure) == {"name"} and self.one_kind and wanted.id.isdigit():
            return f"its name is that of {self._called(sure['name'])}, its number is not"
        several = [kind for kind, places in found.items() if len(places) > 1]
        return f"its {several[0]} is that of several" if several and not sure else ""

    def agreement(self, wanted: Person, at: int) -> tuple[bool, int]:
        """How well a person fits that place: is it the very id, how many keys are the same."""
        return wanted.id == self.people[at].id, len(wanted.keys & self.people[at].keys)

    def perhaps(self, wanted: Person) -> set[int]:
        """The places of all that have a number, an address or a name of this person."""
        return set().union(*self._places(wanted).values())

    def _sure(self, wanted: Person) -> dict[str, int]:
        """What of the person only one in the list has, and where that one is."""
        found = self._places(wanted)
        return {kind: min(places) for kind, places in found.items() if len(places) == 1}

    def _places(self, wanted: Person) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {"number": set(), "e-mail": set(), "name": set()}
        for kind, value in wanted.keys:
            said = {"id": "number", "email": "e-mail"}.get(kind, "name")
            found[said].update(self.at.get((MEETS.get(kind, kind), value), []))
        return found

    def _named(self, wanted: Person, at: int) -> bool:
        """Do both have a name, besides a key?"""
        both = (wanted, self.people[at])
        return all(one.name and one.name.casefold() != one.id.casefold() for one in both)

    def _called(self, at: int) -> str:
        one = self.people[at]
        return f"{one.name} ({one.id})" if one.name and one.name != one.id else one.id
