"""The assignments through the grader itself: whole notebooks in, points out."""

from pathlib import Path

import nbformat
import pytest
from gradebox.marking import mark
from gradebox.package import load_package
from gradebox.sandbox import NoSandboxError, find_sandbox

from website.assignments.marks import without_marks
from website.assignments.notebooks import answer_source, first_line, student_notebook
from website.assignments.package import write_package
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = read_settings(ROOT)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sandbox(no_sandbox):
    try:
        return find_sandbox()
    except NoSandboxError as error:
        no_sandbox(str(error))


class Class:
    """Marks notebooks of one drawn assignment; `answers` replaces the solution of a question."""

    def __init__(self, drawn, folder, sandbox):
        self.drawn, self.folder, self.sandbox = drawn, folder, sandbox
        write_package(drawn, folder / "package.gradebox.zip")
        self.package = load_package(folder / "package.gradebox.zip")

    def points(self, answers, *, blank=False):
        """Question -> points, for a notebook with the solutions but for `answers`."""
        notebook = student_notebook(self.drawn, SETTINGS)
        for question in self.drawn.master.questions:
            [cell] = [c for c in notebook.cells if question.name in c.metadata.get("tags", [])]
            if question.name in answers:
                cell.source = f"{first_line(question)}\n{answers[question.name]}"
            elif not blank:
                cell.source = answer_source(question, solved=True)
        path = self.folder / "submission.ipynb"
        nbformat.write(notebook, path)
        result = mark(path, self.package, sandbox=self.sandbox)
        assert result.status == "ok", result.detail
        return {one.id: one.points for one in result.questions if not one.manual}

    @property
    def full(self):
        return {q.name: q.points for q in self.drawn.master.questions if not q.manual}


@pytest.fixture
def graded(drawn, tmp_path, sandbox):
    return Class(drawn, tmp_path, sandbox)


def test_the_solution_gets_all_points_and_the_blank_notebook_none(graded):
    assert graded.points({}) == graded.full
    assert set(graded.points({}, blank=True).values()) == {0}


def test_all_first_mutants_at_once_cost_points_in_every_question(graded):
    asked = [q for q in graded.drawn.master.questions if not q.manual]
    found = graded.points({q.name: without_marks(q.mutants[0].code) for q in asked})
    expected = {
        row.question: row.points
        for row in reversed(graded.drawn.rows)
        if row.who.startswith("mutant: ")
    }
    assert found == expected
    assert not [name for name, most in graded.full.items() if found[name] == most]


@pytest.mark.deep
def test_each_mutant_loses_points_in_its_own_question_and_no_other_right_answer_loses_any(graded):
    for question in graded.drawn.master.questions:
        for name, code in question.alternatives.items():
            assert graded.points({question.name: code}) == graded.full, name
        for mutant in question.mutants:
            found = graded.points({question.name: without_marks(mutant.code)})
            lost = {name for name, points in graded.full.items() if found[name] < points}
            assert lost == {question.name}, mutant.asks
