"""A notebook that anybody may have written: which cells are answers, and to what.

Only JSON is read here. Whether a cell is Python finds out who runs it, in the sandbox.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gradebox.package import Package, digest
from gradebox.reading import NotReadableError, read_file
from gradebox.words import quoted
from vitcheck.cases import Question

MOST_CELLS = 2_000
MOST_SOURCE = 200_000  # characters of one cell
# How an answer begins, should its metadata be lost. In Markdown "## Question 4" is the question.
FIRST_OF_CODE = HEADING = re.compile(r"\s*#+\s*Question\s+(\w{1,20})\b", re.IGNORECASE)
FIRST_OF_TEXT = re.compile(r"\W*Your answer to question\s+(\w{1,20})\b", re.IGNORECASE)


class NotebookError(Exception):
    """A submission that cannot be marked: the result's status, a sentence for the student."""

    def __init__(self, status: str, detail: str):
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class Cell:
    """A code cell; ``question`` is None for those that answer nothing. ``stub``: the question whose
    cell, as it was handed out, this is."""

    source: str
    question: str | None
    stub: str | None = None


@dataclass(frozen=True)
class Answers:
    """The code cells of a notebook in the order in which they are run, the texts of its "explain"
    questions, in words what had to be guessed, and the questions whose own cells are as handed
    out; a cell elsewhere may still answer those."""

    cells: list[Cell]
    texts: dict[str, str]
    notes: list[str]
    untouched: frozenset[str] = frozenset()


def read_answers(path: Path, package: Package) -> Answers:
    """Find the answers in a notebook.

    Raises:
        NotebookError: it is no notebook, or one of another assignment or variant, or without a
            single answer.
    """
    try:
        notebook = as_notebook(read_file(path))
    except NotReadableError as error:
        raise unreadable(f"The notebook cannot be used: {error}.") from None
    notes = check_names(notebook, package)
    code: list[Cell] = []
    texts: dict[str, list[str]] = {}
    stubs = {bare(stub): question for question, stub in package.stubs.items() if bare(stub)}
    section = None  # the question whose part of the notebook this is
    for kind, source, metadata, pictures in cells_of(notebook):
        if len(source) > MOST_SOURCE:
            notes.append(f"a cell of more than {MOST_SOURCE:,} characters was left out")
            continue
        first = FIRST_OF_TEXT if kind == "markdown" else FIRST_OF_CODE
        question = question_of(source, metadata, package, first)
        heading = kind == "markdown" and source.lstrip().startswith("#")
        if question or heading:
            section = question or named(source, HEADING, package)
        if kind == "code":
            code.append(Cell(source, question, stubs.get(bare(source))))
        if section and answers_in_words(source, question, section, package):
            texts.setdefault(section, []).append(pictures + source)
    if not texts and not any(cell.question for cell in code) and not tries(code, package):
        raise NotebookError("no-answers", "No answer to any of the questions is in this notebook.")
    # an unchanged stub undoes nothing: it is run before all else
    code = [cell for stub in (True, False) for cell in code if bool(cell.stub) is stub]
    found = {id: "\n\n".join(parts) for id, parts in texts.items()}
    return Answers(code, found, notes, left_as_handed_out(code, found, package))


def left_as_handed_out(
    code: list[Cell], texts: Collection[str], package: Package
) -> frozenset[str]:
    """The questions in whose own cells nothing was written: only the stub is there."""
    stubs = {cell.stub for cell in code}
    changed = {cell.question for cell in code if not cell.stub}
    return frozenset(
        one.id
        for one in package.questions
        if (one.id not in texts if one.manual else one.id in stubs - changed)
    )


def bare(source: str) -> tuple[str, ...]:
    """The words of a cell, without those after a #: comments and layout are no answer."""
    return tuple(word for line in source.splitlines() for word in line.partition("#")[0].split())


def sets(source: str, question: Question) -> bool:
    """Does a cell seem to define what the question asks for? Only read, not run."""
    names = "|".join(map(re.escape, question.defines))
    put = rf"(?:{names})\s*(?:\.\w+\s*|:[^=\n]{{1,100}})?=(?!=)"
    pattern = rf"^(?:[ \t]*(?:async\s+)?(?:def|class)\s+(?:{names})\b|{put})"
    named = any(name in source for name in question.defines)
    return bool(named and re.search(pattern, source, re.MULTILINE))


def by_us(package: Package) -> Iterator[Question]:
    """The questions that no person marks."""
    return (question for question in package.questions if not question.manual)


def answers_in_words(source: str, question: str | None, section: str, package: Package) -> bool:
    """Is this cell something that a student wrote to a question which a person marks? It is the
    question's own cell, unless nothing was written there, or any cell of the student's below it."""
    explained = {one.id for one in package.questions if one.manual}
    if question is None:
        ours = not package.given or digest(source) in package.given
        return section in explained and not ours and bool(source.strip())
    stub = package.stubs.get(question, "").splitlines()
    written = [line for line in source.splitlines() if line.strip() and line not in stub]
    return question in explained and bool(written)


def tries(code: list[Cell], package: Package) -> bool:
    """Does a cell name anything that a question asks for?"""
    names = [re.escape(name) for question in package.questions for name in question.defines]
    asked = re.compile(rf"\b(?:{'|'.join(names)})\b")
    return bool(names) and any(asked.search(cell.source) for cell in code)


def as_notebook(data: bytes) -> dict:
    """JSON with a list of cells, in format 3 or 4."""
    if not data:
        raise unreadable("The file is empty: its upload broke off, or it was never saved.")
    if data.startswith((b"PK\3\4", b"\x1f\x8b")):
        raise unreadable(
            "This is an archive (zip or gzip) with the name of a notebook; unpack it, and hand in "
            "the notebook that is inside."
        )
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise unreadable(
            "The notebook is not saved as UTF-8; open it in Jupyter and save it from there."
        ) from None
    except (ValueError, RecursionError):
        raise unreadable("This is no notebook: it is not written as JSON.") from None
    if not isinstance(notebook, dict):
        raise unreadable("This is no notebook: it holds no cells.")
    sheets = notebook.get("worksheets")  # format 3
    if "cells" not in notebook and isinstance(sheets, list):
        sheets = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        notebook["cells"] = [cell for cells in sheets if isinstance(cells, list) for cell in cells]
    if not isinstance(notebook.get("cells"), list) or not notebook["cells"]:
        raise unreadable("This is no notebook: it holds no cells.")
    if len(notebook["cells"]) > MOST_CELLS:
        raise unreadable(f"The notebook has more than {MOST_CELLS} cells.")
    return notebook


def check_names(notebook: dict, package: Package) -> list[str]:
    """Is it the assignment and the variant of the package? Notes what it does not say."""
    about = as_dict(as_dict(notebook.get("metadata")).get("vitbook"))
    assignment, variant = about.get("assignment"), about.get("variant")
    if assignment not in (None, package.cases.assignment):
        raise NotebookError(
            "wrong-assignment",
            f"This notebook is of the assignment {quoted(str(assignment))}, "
            f"not of {package.cases.assignment}.",
        )
    if variant not in (None, package.cases.variant):
        raise NotebookError(
            "wrong-variant",
            f"This notebook is of the variant {quoted(str(variant))}; "
            f"this class has {package.cases.variant}.",
        )
    lost = [name for name, said in (("assignment", assignment), ("variant", variant)) if not said]
    return [f"the notebook does not say its {' and its '.join(lost)}"] if lost else []


def cells_of(notebook: dict) -> list[tuple[object, str, dict, str]]:
    """Kind, source, metadata and, in words, pictures of every cell that has a source."""
    found = []
    for cell in notebook["cells"]:
        cell = as_dict(cell)
        source = joined(cell.get("source", cell.get("input", "")))
        if source is not None:
            metadata, pictures = as_dict(cell.get("metadata")), in_words(cell.get("attachments"))
            found.append((cell.get("cell_type"), source, metadata, pictures))
    return found


def joined(text: object) -> str | None:
    """A text, which format 4 may keep as a list of lines; None if it is no text."""
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "".join(text)
    return text if isinstance(text, str) else None


def in_words(attachments: object) -> str:
    """Pictures that are pasted into a cell, a line each: another picture is another answer."""
    lines = []
    for name, kinds in list(as_dict(attachments).items())[:20]:
        data = "".join(joined(one) or "" for one in as_dict(kinds).values())
        lines.append(f"[picture {quoted(name)}, {digest(data)}]\n")
    return "".join(lines)


def question_of(
    source: str, metadata: dict, package: Package, first_line: re.Pattern
) -> str | None:
    """Which question a cell answers: by its metadata, else by its tag, else by its first line."""
    known = [question.id for question in package.questions]
    said = as_dict(metadata.get("vitbook")).get("question")
    if isinstance(said, str) and said in known:
        return said
    tags = metadata.get("tags")
    for question in known:
        if isinstance(tags, list) and {question, package.tags.get(question, question)} & {
            tag for tag in tags if isinstance(tag, str)
        }:
            return question
    return named(source, first_line, package)


def named(source: str, first_line: re.Pattern, package: Package) -> str | None:
    """The question that a cell's first line names."""
    first = next((line for line in source.splitlines() if line.strip()), "")
    if match := first_line.match(first):
        for question in (match[1].lower(), f"q{match[1].lower()}"):
            if question in {one.id for one in package.questions}:
                return question
    return None


def unreadable(detail: str) -> NotebookError:
    return NotebookError("unreadable", detail)


def as_dict(value: object) -> dict:
    return value if isinstance(value, dict) else {}
