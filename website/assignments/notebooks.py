"""The notebook of a drawn assignment, for students and with the solutions."""

import hashlib
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitcheck.cases import Assignment, to_text
from website.assignments.marks import stub_of, without_marks
from website.assignments.master import Question
from website.assignments.prove import Drawn
from website.notebooks.notebook import bootstrap, folded_cell
from website.pages.contents import chapter_called, places_of
from website.pages.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
DATA = """\
# @title The checks: run this cell; there is nothing to read in it
from vitcheck import Checker

check = Checker("{name}", """


def number_of(question: Question) -> int:
    """The number in a question's name: "q3" is question 3."""
    return int(question.name.lstrip("q"))


def first_line(question: Question) -> str:
    """By which an answer's cell is known when its metadata are lost."""
    number = number_of(question)
    if question.manual:
        return f"**Your answer to question {number}**"
    return f"# Question {number}: {question.title}"


def answer_source(question: Question, *, solved: bool) -> str:
    """What stands in the answer's cell: the stub, or the solution."""
    line = first_line(question)
    if question.manual:
        text = question.solution.strip() if solved else "*Write here, in whole sentences.*"
        return f"{line}\n\n{text}"
    code = without_marks(question.solution) if solved else stub_of(question.solution)
    return f"{line}\n{code.strip()}"


def student_notebook(drawn: Drawn, settings: Settings) -> nbformat.NotebookNode:
    """What is handed out."""
    return _notebook(drawn, settings, solved=False)


def solution_notebook(drawn: Drawn, settings: Settings) -> nbformat.NotebookNode:
    """The same with the answers, and with the hidden cases among the checks. For instructors."""
    return _notebook(drawn, settings, solved=True)


def _notebook(drawn: Drawn, settings: Settings, *, solved: bool) -> nbformat.NotebookNode:
    master = drawn.master
    cases = drawn.cases if solved else public(drawn.cases)
    cells = [
        new_markdown_cell(f"# {master.title}\n\n{_about(drawn, solved)}"),
        folded_cell(bootstrap(settings).rstrip()),
        new_markdown_cell("\n\n".join(master.introduction)),
        *(new_code_cell(source) for source in master.setup),
        _data_cell(master.name, cases),
    ]
    for question in master.questions:
        cells.append(new_markdown_cell("\n\n".join([heading(question), *question.prompt])))
        cells.append(_answer_cell(question, answer_source(question, solved=solved)))
        if not question.manual:
            cells.append(new_code_cell(f'check("{question.name}")'))
    cells += [
        new_markdown_cell(
            "## Before you hand in\n\nRestart the kernel and run all cells, from the first to the "
            "last. The next cell counts the public checks that pass; marks are given for other "
            "inputs, too. Save, and hand in this one notebook."
        ),
        new_code_cell("check.all()"),
    ]
    return finished(cells, drawn)


def _about(drawn: Drawn, solved: bool) -> str:
    master = drawn.master
    places = places_of(ROOT)
    pages = [chapter_called(chapter, places) or chapter for chapter in master.chapters]
    chapters = ", ".join(places[page].number if page in places else page for page in pages)
    lines = [
        f"{len(master.questions)} questions, {master.points:g} points, about {master.minutes} "
        f"minutes, on chapters {chapters}. Variant {drawn.cases.variant}.",
        "Run the next cell first. Write each answer into the cell that begins with the question's "
        "number, below that line. Names and arguments stay as they are given, and your code leaves "
        "its inputs as they were. You may add cells.",
    ]
    if solved:
        lines.insert(0, "**With solutions and hidden checks: not for students.**")
    return "\n\n".join(lines)


def heading(question: Question) -> str:
    """A question's title and what it asks for: points, minutes, difficulty, objective."""
    number = number_of(question)
    kind = "Read by a person. " if question.manual else ""
    return (
        f"## Question {number}: {question.title}\n\n"
        f"*{question.points:g} points, {question.minutes} minutes, difficulty "
        f"{question.difficulty} of 3. {kind}{question.objective}*"
    )


def public(cases: Assignment) -> Assignment:
    """Only what a student may see."""
    shown = cases.only(lambda case: case.public)
    return replace(shown, questions=tuple(replace(q, rubric=None) for q in shown.questions))


def _data_cell(name: str, cases: Assignment) -> nbformat.NotebookNode:
    text = to_text(cases)
    lines = [text[at : at + 100] for at in range(0, len(text), 100)]
    body = "\n".join(['"""', *lines, '""")'])
    cell = new_code_cell(DATA.format(name=name) + body)
    cell.metadata.update(jupyter={"source_hidden": True}, cellView="form", tags=["hide-input"])
    return cell


def _answer_cell(question: Question, source: str) -> nbformat.NotebookNode:
    cell = new_markdown_cell(source) if question.manual else new_code_cell(source)
    cell.metadata.update(vitbook={"question": question.name}, tags=[question.name])
    cell.id = cell_id(question)
    return cell


def cell_id(question: Question) -> str:
    return f"answer-{question.name}"


def finished(cells: list, drawn: Drawn) -> nbformat.NotebookNode:
    """A notebook with lasting ids, and with assignment, variant and release in its metadata."""
    for at, cell in enumerate(cells):
        if not cell.id.startswith("answer-"):
            whole = f"{drawn.master.name}\0{at}\0{cell.source}"
            cell.id = hashlib.sha256(whole.encode()).hexdigest()[:12]
    cases = drawn.cases
    about = {"assignment": cases.assignment, "variant": cases.variant, "release": cases.release}
    notebook = new_notebook(cells=cells, metadata={**KERNEL, "vitbook": about})
    nbformat.validate(notebook)
    return notebook
