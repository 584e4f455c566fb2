"""The same student in a roster, an export and a gradebook: matched by number, e-mail or name."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gradebox.sources import InputError

# Columns as the roster, Canvas and Moodle call them; the first that a row has is shown.
IDS = (
    *("id", "student id", "sid", "sis user id", "sis login id", "canvas id", "moodle id"),
    *("id number", "identifier", "username"),
)
NAMES = ("name", "full name", "student", "student name")
EMAILS = ("email", "email address", "e-mail")


@dataclass(frozen=True)
class Person:
    """Who a row is about, and all keys by which the row can be found."""

    id: str
    name: str
    email: str
    keys: frozenset[tuple[str, str]]  # ("id", "4711"), ("email", ...), ("name", ...)


@dataclass(frozen=True)
class Table:
    """A CSV file as it was read, so that it can be written back as it was."""

    header: list[str]
    rows: list[list[str]]
    delimiter: str
    bom: bool
    newline: str

    def column(self, *names: str) -> int | None:
        """The first column with one of these names, whatever the case."""
        lower = [name.strip().lower() for name in self.header]
        return next((lower.index(name) for name in names if name in lower), None)

    def cell(self, row: list[str], *names: str) -> str:
        at = self.column(*names)
        return row[at].strip() if at is not None and at < len(row) else ""

    def person(self, row: list[str]) -> Person:
        """Who this row is about."""
        ids = [self.cell(row, name) for name in IDS]
        ids = [re.sub(r"^\D+(?=\d+$)", "", one) if " " in one else one for one in ids if one]
        name, email = self.cell(row, *NAMES), self.cell(row, *EMAILS)
        first, last = self.cell(row, "first name"), self.cell(row, "surname", "last name")
        name = name or f"{first} {last}".strip()
        return person(next(iter(ids), "") or email or name, name, email, also=ids)

    def encode(self) -> bytes:
        """The file's bytes: the same delimiter, line ends and byte-order mark."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline)
        writer.writerows([self.header, *self.rows])
        return text.getvalue().encode("utf-8-sig" if self.bom else "utf-8")


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
    first = text.splitlines()[0] if text.strip() else ""
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{path} is no CSV file: {error}") from error
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InputError(f"{path} is empty: a {what} needs a header and a row for each student")
    newline = "\r\n" if "\r\n" in text else "\n"
    return Table(rows[0], rows[1:], delimiter, raw.startswith(b"\xef\xbb\xbf"), newline)


def person(id: str, name: str = "", email: str = "", also: Iterable[str] = ()) -> Person:
    """A person with the keys that follow from what is known."""
    keys = {("id", one.casefold()) for one in (id, *also) if one}
    for address in (email, id):
        if "@" in address:
            keys |= {("email", address.casefold())}
    # "Doe, Jane", "Jane Doe" and Canvas's "doejane" are one person
    for one in (name, id if not id.isdigit() else ""):
        words = re.findall(r"\w+", plain(one.replace("_", " ")))
        if words:
            keys |= {("name", "".join(words)), ("name", "".join(words[-1:] + words[:-1]))}
    return Person(id, name, email, frozenset(keys))


def plain(text: str) -> str:
    """Small letters without accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))


class Matcher:
    """Finds a person in a list: by number, else by e-mail, else by a name that only one has."""

    def __init__(self, people: Iterable[Person]):
        self.people = list(people)
        self.at: dict[tuple[str, str], list[int]] = {}
        for index, one in enumerate(self.people):
            for key in one.keys:
                self.at.setdefault(key, []).append(index)

    def find(self, wanted: Person) -> int | None:
        """The place in the list; nothing if nobody matches, more than one does, or the number is
        one person's and the name another's."""
        found: dict[str, set[int]] = {kind: set() for kind in ("id", "email", "name")}
        for key in wanted.keys:
            found[key[0]].update(self.at.get(key, []))
        sure = [places.pop() for places in found.values() if len(places) == 1]
        return sure[0] if len(set(sure)) == 1 else None
