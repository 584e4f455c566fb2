"""What an instructor marks with: the zip that ``make assignment`` writes for the grader."""

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from vitcheck.cases import Assignment, Question, read_cases


@dataclass(frozen=True)
class Package:
    """One variant of one assignment, hidden cases too. As a whole it never enters a sandbox."""

    cases: Assignment
    set_up: list[str]  # sources of the given cells that every answer needs
    reference: dict[str, str]  # question -> source of its solution, for the questions after it
    tags: dict[str, str]  # question -> tag of its cell
    stubs: dict[str, str]  # question -> what its cell holds when it is handed out
    given: frozenset[str]  # digests of all other cells that are handed out
    digest: str

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.cases.questions


def load_package(path: Path) -> Package:
    """Read a package.

    Raises:
        ValueError: it is not there, damaged, or not a package.
    """
    try:
        data = Path(path).read_bytes()
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("package.json"))
        cases = read_cases(path)
        set_up, reference = about["setup"], about["reference"]
        tags = {name: cell["tag"] for name, cell in (about.get("cells") or {}).items()}
        stubs, given = dict(about.get("stubs") or {}), frozenset(about.get("given") or ())
        named = about["assignment"], about["variant"]
    except (OSError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path} is no assignment's package ({error})") from None
    if named != (cases.assignment, cases.variant):
        raise ValueError(f"{path}: its two files are of different assignments; make it anew")
    set_up = [set_up] if isinstance(set_up, str) else list(set_up)
    whole = hashlib.sha256(data).hexdigest()
    return Package(cases, set_up, dict(reference), tags, stubs, given, whole)


def digest(cell: str) -> str:
    """A short name for a cell's text; layout makes no difference."""
    return hashlib.sha256(" ".join(cell.split()).encode("utf-8", "replace")).hexdigest()[:16]
