"""Is anything of the assignments' solutions where students could find it?

A solution is known by its text without spaces: any run of a few of its lines. Pages are read as a
reader sees them, notebooks cell by cell, archives member by member.
"""

import html
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from website.assignments.marks import stub_of, without_marks
from website.assignments.master import Master
from website.assignments.page import public_master

LONG, SHORT = 60, 24  # characters that make a trace; of a shorter answer, all of it
READ = {".html", ".md", ".txt", ".py", ".ipynb", ".js", ".json", ".css", ".xml", ".rst", ".toml"}
# what only masters and the grader hold
MARKS = ("#BEGINSOLUTION", "#ENDSOLUTION", "#BEGINVARIANT", "#MUTANTS", "###BEGINSOLUTION")
NAMES = ("gradebox/", "assignments/a", "package.json", ".solutions.ipynb", ".gradebox.zip")


def traces(master: Master) -> dict[str, str]:
    """Text without spaces -> whose answer it is."""
    found: dict[str, str] = {}
    for question in master.questions:
        if question.manual:
            found[squeezed(question.solution)[:LONG]] = f"{master.name} {question.name}"
            continue
        given = {line.strip() for line in stub_of(question.solution).splitlines()}
        lines = [
            squeezed(line.partition("  # ")[0])
            for line in without_marks(question.solution).splitlines()
            if line.strip() and line.strip() not in given
        ]
        for start in range(len(lines)):
            run = "".join(lines[start:])
            if len(run) >= LONG or (start == 0 and len(run) >= SHORT):
                found[run[:LONG]] = f"{master.name} {question.name}"
    return found


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def leaks(path: Path, known: dict[str, str]) -> list[str]:
    """Everything that should not be in a folder or an archive, a line each."""
    return [
        f"{name}: {what}" for name, data in members(path) for what in _in_file(name, data, known)
    ]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of each file, those in archives too."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield from _member(file.relative_to(path).as_posix(), file.read_bytes())
    else:
        yield from _member(path.name, path.read_bytes())


def _member(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for inside in archive.namelist():
                yield from _member(f"{name}!{inside}", archive.read(inside))
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                if file := archive.extractfile(member):
                    yield from _member(f"{name}!{member.name}", file.read())
    yield name, data


def _in_file(name: str, data: bytes, known: dict[str, str]) -> Iterator[str]:
    for part in NAMES:
        if part in name:
            yield f"a file that belongs to instructors ({part})"
    if Path(name).suffix not in READ | {""}:
        return
    text = squeezed(_as_read(name, data.decode("utf-8", errors="replace")))
    for trace, whose in known.items():
        if trace in text:
            yield f"holds the answer to {whose}: {trace[:40]}..."
    for mark in MARKS:
        if mark in text:
            yield f"holds a mark of a master, {mark}"


def _as_read(name: str, text: str) -> str:
    if name.endswith(".html"):
        return html.unescape(re.sub(r"<[^>]*>", "", text))
    if name.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells)
    return text


def known_traces(root: Path) -> dict[str, str]:
    """The traces of all assignments."""
    found: dict[str, str] = {}
    for path in sorted((root / "assignments").glob("a*.md")):
        found |= traces(public_master(path))
    return found
