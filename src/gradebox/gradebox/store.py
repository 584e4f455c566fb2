"""The folder of results. A file in it is whole or not there at all.

    grades.csv                   one row for each student
    feedback/STUDENT.html        what the student may see
    students/STUDENT.json        everything about a student, for the instructor
    manual.csv                   where the questions marked by hand get their points
    work/marks/KEY.json          one result for each notebook and package
    work/begun/KEY.json          what is known of a notebook that waits for its next phase
    work/starts/ID               empty: a machine has marked here since it was started
    work/submissions/KEY.ipynb   the notebooks themselves

A result is found again by what it was made from: the notebook's bytes, the package's bytes, the
limits and the grader's version. So a run that was interrupted repeats nothing, equal notebooks are
marked once, and a changed package marks anew.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradebox.result import Result
from gradebox.sandbox import Limits, folder_of
from vitbook.files import write_atomically

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def digest(*parts: bytes) -> str:
    """A short name for bytes."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:24]


# What makes no difference to a result: everything around the marking.
OUTER = {"cli", "collect", "exports", "feedback", "grades", "manual", "roster"}
OUTER |= {"assignment", "finish", "hosted", "plan", "run", "sources", "store"}
OUTER |= {"__main__", "contest", "ranking", "remote", "same_person"}


def grader_version() -> str:
    """A name for the code that marks, vitcheck's comparison too: another version marks anew."""
    root = Path(__file__).parent
    checks = folder_of("vitcheck")
    files = [file for file in sorted(root.rglob("*.py")) if file.parent.name != "platforms"]
    files = [file for file in files if file.parent != root or file.stem not in OUTER]
    files += [checks / f"{name}.py" for name in ("cases", "paired_models", "values")]
    return digest(*(file.read_bytes() for file in files))


def package_key(package: Path, limits: Limits, unsafe: bool = False) -> str:
    """The name of everything but the notebook that a result depends on."""
    how = repr((asdict(limits), unsafe, grader_version()))
    return digest(package.read_bytes(), how.encode())


def file_name(student: str) -> str:
    """A student's key as a file name: the same one always, and never the name of another, not even
    on a disk that takes "Ada" and "ada" for the same file. No name that stands as it is has a "~",
    and nobody can find two whose digests of 128 bits are equal."""
    name = re.sub(r"[^A-Za-z0-9@._-]", "_", student).strip(".")[:60]
    reserved = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name)
    if name == student == student.lower() and not reserved:
        return name
    return f"{name}~{hashlib.sha256(student.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


class Store:
    """The folder of results of one assignment."""

    def __init__(self, out: Path, package: str):
        self.out, self.package = out, package
        self.marks, self.submissions = out / "work/marks", out / "work/submissions"
        self.begun = out / "work/begun"

    def make(self) -> None:
        ours = (self.marks, self.begun, self.submissions)
        for folder in (*ours, self.out / "feedback", self.out / "students"):
            folder.mkdir(parents=True, exist_ok=True)

    def used(self) -> bool:
        """Was anything marked here before?"""
        return any(any(folder.iterdir()) for folder in (self.marks, self.begun))

    def used_since_start(self) -> bool:
        """Was anything marked here since this machine was started? From now on it was."""
        try:
            start = self.out / "work/starts" / BOOT_ID.read_text().strip()
        except OSError:  # it does not tell when it was started
            return self.used()
        used = start.exists() or (self.used() and not start.parent.exists())
        start.parent.mkdir(exist_ok=True)
        start.touch()
        return used

    def keep(self, notebook: bytes) -> str:
        """Store a notebook; its key."""
        key = digest(notebook)
        if not self.notebook(key).exists():
            write_atomically(self.notebook(key), notebook)
        return key

    def notebook(self, key: str) -> Path:
        return self.submissions / f"{key}.ipynb"

    def load(self, key: str) -> Result | None:
        """The result for a notebook and this package, if there is one."""
        return self._read(self.marks / f"{key}-{self.package}.json")

    def earlier(self, key: str) -> Result | None:
        """The newest result for a notebook with any package."""
        found = sorted(self.marks.glob(f"{key}-*.json"), key=lambda path: path.stat().st_mtime)
        return next(filter(None, (self._read(path) for path in reversed(found))), None)

    def _read(self, path: Path) -> Result | None:
        try:
            return Result.from_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # missing, or from another version: marked again

    def save(self, key: str, result: Result) -> None:
        path = self.marks / f"{key}-{self.package}.json"
        write_atomically(path, result.to_json().encode("utf-8", "replace"))
        self.begin_anew(key)

    def so_far(self, key: str) -> dict | None:
        """What is known of a notebook after some of its phases, if an earlier run was stopped."""
        try:
            told = json.loads((self.begun / f"{key}-{self.package}.json").read_text("utf-8"))
            return told if isinstance(told, dict) else None
        except (OSError, ValueError):
            return None

    def keep_so_far(self, key: str, told: dict) -> None:
        write_json(self.begun / f"{key}-{self.package}.json", told)

    def begin_anew(self, key: str) -> None:
        (self.begun / f"{key}-{self.package}.json").unlink(missing_ok=True)

    def forget(self, student: str) -> Iterator[Path]:
        """Remove a student's files; a notebook that another student handed in as well stays."""
        about = self.out / "students" / f"{file_name(student)}.json"
        keys = notebooks_of(about)
        for other in (self.out / "students").glob("*.json"):
            if other != about:
                keys -= notebooks_of(other)
        found = [about, self.out / "feedback" / f"{file_name(student)}.html"]
        entry = self.out / "entries" / file_name(student)  # of a contest
        found += [entry.with_name(entry.name + end) for end in (".json", ".jsonl", ".py")]
        for key in keys:
            found += [self.notebook(key), *self.marks.glob(f"{key}-*.json")]
            found += self.begun.glob(f"{key}-*.json")
        for path in found:
            if path.exists():
                path.unlink()
                yield path


def notebooks_of(about: Path) -> set[str]:
    """The keys of the notebooks that a student's file names."""
    try:
        attempts = json.loads(about.read_text(encoding="utf-8"))["attempts"]
        return {one["notebook"] for one in attempts if one["notebook"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def write_json(path: Path, data: Any) -> None:
    """JSON, atomically; the same data give the same bytes."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode("utf-8", "replace"))
