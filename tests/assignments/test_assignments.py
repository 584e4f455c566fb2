"""Every assignment, proven, and what is made from it."""

import json
import re
import zipfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from torch import Tensor

from vitcheck.cases import from_parts, to_text
from website.assignments.foreign import nbgrader_notebook, otter_notebook
from website.assignments.marks import stub_of, without_marks
from website.assignments.notebooks import answer_source, student_notebook
from website.assignments.page import pages, public_master
from website.assignments.prove import draw_assignment
from website.assignments.similar import code_of_page, corpus, likest
from website.assignments.verify import keys, table
from website.assignments.write import write_all
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = read_settings(ROOT)
MOST_ALIKE = 0.5
WRITTEN = {".ipynb", ".solutions.ipynb", ".otter.ipynb", ".nbgrader.ipynb", ".gradebox.zip"}
WRITTEN |= {".rubrics.md", "README.txt"}


def sources(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def run(notebook):
    """Run the code cells as a kernel would, but for the one that installs; gives the names."""
    names = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and "%pip" not in cell.source:
            exec(compile(cell.source, cell.id, "exec"), names)
    return names


def test_an_assignment_is_an_evening_of_questions_of_all_kinds_and_proven(drawn):
    master, who = drawn.master, [row.who for row in drawn.rows]
    asked = [question for question in master.questions if not question.manual]
    assert 60 <= master.minutes <= 120
    assert 6 <= len(master.questions) <= 10
    assert master.points == 100
    assert {question.difficulty for question in master.questions} == {1, 2, 3}
    assert 1 <= len(master.questions) - len(asked) <= 2
    numbers = range(1, len(master.questions) + 1)
    assert [question.name for question in master.questions] == [f"q{one}" for one in numbers]
    assert who.count("solution") == who.count("blank") == len(asked)
    assert sum(name.startswith("mutant") for name in who) >= 8
    assert all(len(question.mutants) >= 3 for question in asked)
    assert all(question.alternatives for question in asked)
    assert "blank" in table(drawn)


def test_the_public_checks_name_most_mistakes(drawn):
    named, all_of_them = 0, 0
    for question in drawn.master.questions:
        public = [case for case in drawn.cases[question.name].cases if case.public]
        told = {mistake.question for case in public for mistake in case.mistakes}
        asked = [mutant.asks for mutant in question.mutants]
        assert len(told) >= len(asked) / 2, question.name
        named, all_of_them = named + len(told), all_of_them + len(asked)
    assert named >= 0.75 * all_of_them


def sizes(case):
    """Name -> whole number: of arguments, of pairs such as a grid, of the axes of tensors."""
    found, made = {}, dict(case.make.kwargs) if case.make else {}
    if type(size := made.get("image_size")) is int:
        made["image_size"] = (size, size)
    for name, value in [*enumerate(case.args), *case.kwargs.items(), *made.items()]:
        if isinstance(value, Tensor):
            found |= {(name, axis - value.ndim): size for axis, size in enumerate(value.shape)}
        elif type(value) is int:
            found[name, ""] = value
        elif isinstance(value, tuple | list) and all(type(part) is int for part in value):
            found |= {(name, f"[{place}]"): part for place, part in enumerate(value[:2])}
    return found


ASKED_FOR = {(1, -3)}  # the clinic of assignment 3 has images of one channel


@pytest.mark.parametrize("number", [0, 1])
def test_no_size_is_always_the_same_or_the_same_multiple_of_another(draws, number):
    tied = []
    for question in draws(number).cases.questions:
        calls = [sizes(case) for case in question.cases if case.name != "start_values"]
        names = sorted(set().union(*calls) - ASKED_FOR, key=str)
        for one in names:
            values = [call[one] for call in calls if one in call]
            if len(values) > 1 and len(set(values)) == 1:
                tied.append(f"{question.id}: {one} is {values[0]} in each case")
        for one, other in combinations(names, 2):
            pairs = {(call[one], call[other]) for call in calls if {one, other} <= set(call)}
            axes = isinstance(one[1], int) or isinstance(other[1], int)  # may have to be equal
            ratios = {a / b if b else None for a, b in pairs}
            if len(pairs) > 1 and len(ratios) == 1 and not (axes and ratios == {1}):
                tied.append(f"{question.id}: {one} and {other} are tied: {sorted(pairs)}")
    assert not tied, "\n".join(tied)


SHORT = {"a1_attention", "a2_block"}  # of the others the deep tests compare the mistakes, too


def test_the_same_secret_draws_the_same_and_another_secret_something_else(draws, master_path):
    public, ours = draws(0), draws(1)
    whole = master_path.stem in SHORT
    again = draws(1, again=True, mistakes=whole).cases
    assert to_text(again) == to_text(ours.cases if whole else without_mistakes(ours.cases))
    assert public.cases.variant != ours.cases.variant
    one, two = (
        {str(case.args) for question in drawn.questions for case in question.cases}
        for drawn in (public.cases, ours.cases)
    )
    assert len(one & two) < len(one) / 2


def without_mistakes(cases):
    questions = (
        replace(one, cases=tuple(replace(case, mistakes=()) for case in one.cases))
        for one in cases.questions
    )
    return replace(cases, questions=tuple(questions))


def longest_line(question):
    """The longest line of the solution that is not given."""
    given = [] if question.manual else stub_of(question.solution).splitlines()
    lines = set(without_marks(question.solution).splitlines()) - set(given)
    return max(lines, key=len).strip()


def public_counts(text):
    return re.findall(r"^q\d+: (\d+) of (\d+) public checks pass", text, re.M)


def test_the_students_notebook_holds_no_answers_runs_blank_and_passes_solved(drawn, capsys):
    notebook = student_notebook(drawn, SETTINGS)
    names, text = run(notebook), sources(notebook)
    said = capsys.readouterr().out
    assert not re.search(r"^ok", said, re.M)
    assert {passed for passed, _ in public_counts(said)} == {"0"}
    assert SETTINGS.wheel_url in text
    assert notebook.metadata.vitbook == {
        "assignment": drawn.master.name,
        "variant": drawn.cases.variant,
        "release": "0.1.0",
    }
    for number, question in enumerate(drawn.master.questions, 1):
        assert longest_line(question) not in text
        shown = names["check"].cases[question.name]
        assert all(case.public for case in shown.cases)
        assert shown.rubric is None
        [cell] = [c for c in notebook.cells if question.name in c.metadata.get("tags", [])]
        assert cell.metadata.vitbook == {"question": question.name}
        assert cell.cell_type == ("markdown" if question.manual else "code")
        assert cell.source == answer_source(question, solved=False)
        code, words = f"# Question {number}: ", f"**Your answer to question {number}**"
        assert cell.source.startswith(words if question.manual else code)
        cell.source = answer_source(question, solved=True)
    run(notebook)
    counts = public_counts(capsys.readouterr().out)
    assert counts
    assert all(passed == of for passed, of in counts)


def test_no_answer_is_in_the_book_or_in_the_package(drawn, places):
    for question in drawn.master.questions:
        if question.manual:
            continue
        for code in (without_marks(question.solution), *question.alternatives.values()):
            share, where = likest(code, places)
            assert share < MOST_ALIKE, f"{question.name}: {where}"


@pytest.fixture(scope="module")
def places():
    return corpus(ROOT)


def test_a_copied_answer_is_found_whatever_its_names(places):
    copied = (ROOT / "src/vitbook/layers/positions.py").read_text()
    code = copied[copied.index("def rotate_pairs") : copied.index("def resample_positions")]
    code = re.sub(r'""".*?"""', '"""Other words."""', code, flags=re.S)
    code = re.sub(r"\b(a|b|turned|rotate_pairs)\b", r"my_\1", code)
    page = (ROOT / "book/attention/weighted_average.md").read_text()
    cells = (code for code in code_of_page(page) if "def " in code and "..." not in code)
    cell = max(cells, key=len).replace("weights", "shares")
    for mine, where in ((code, "rotate_pairs"), (cell, "weighted_average.md")):
        share, found = likest(mine, places)
        assert share > 0.9
        assert where in found


def test_everything_is_written_into_one_folder_the_graders_package_too(drawn, tmp_path):
    def written():
        return {
            path.name: path.read_bytes() for path in write_all(drawn, SETTINGS, tmp_path).iterdir()
        }

    before = written()
    assert {name.removeprefix(drawn.name) for name in before} >= WRITTEN
    assert b"NOT TAMPER-PROOF" in before["README.txt"]
    assert written() == before
    assert [path.name for path in tmp_path.iterdir()] == [drawn.name]
    with zipfile.ZipFile(tmp_path / drawn.name / f"{drawn.name}.gradebox.zip") as archive:
        about = json.loads(archive.read("package.json"))
        cases = from_parts(archive.read("cases.json"), archive.read("cases.safetensors"))
    assert to_text(cases) == to_text(drawn.cases)
    assert sum(question["points"] for question in about["questions"]) == about["points"] == 100
    for question in drawn.master.questions:
        name, cell = question.name, about["cells"][question.name]
        assert cell["id"] == f"answer-{name}"
        assert (name in about["reference"]) is not question.manual
        assert about["stubs"][name].startswith(cell["first_line"])


def test_otters_notebook_has_its_marks_in_order_and_its_tests_pass(drawn):
    notebook = otter_notebook(drawn)
    raw = [c.source.partition("\n")[0] for c in notebook.cells if c.cell_type == "raw"]
    assert raw[0] == "# ASSIGNMENT CONFIG"
    kinds = ("QUESTION", "SOLUTION", "TESTS")
    assert set(raw[1:]) == {f"# {edge} {kind}" for edge in ("BEGIN", "END") for kind in kinds}
    names, last = {}, None
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.source.startswith('""" # BEGIN TEST CONFIG'):
            last = cell.source.rpartition("\n")[2]
            assert repr(eval(last, names)) == cell.outputs[0].data["text/plain"] == "'right'"
        else:
            exec(cell.source, names)
    assert last is not None


def test_nbgraders_notebook_has_points_locks_and_hidden_tests(drawn):
    notebook = nbgrader_notebook(drawn)
    about = [c.metadata.nbgrader for c in notebook.cells if "nbgrader" in c.metadata]
    assert sum(cell.get("points", 0) for cell in about) == 100
    assert len({cell.grade_id for cell in about}) == len(about)
    text = sources(notebook)
    assert text.count("### BEGIN SOLUTION") == text.count("### END SOLUTION") > 5
    assert text.count("### BEGIN HIDDEN TESTS") == text.count("### END HIDDEN TESTS") > 5
    names = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(cell.source, names)


@pytest.mark.deep
def test_many_draws_hold_and_differ(master_path, draws):
    found = [draw_assignment(master_path, key, "0.1.0") for key in keys(25)]
    assert to_text(found[1].cases) == to_text(draws(1).cases)
    assert len({drawn.cases.variant for drawn in found}) == 26
    assert len({str(drawn.master.questions) for drawn in found}) > 20


def test_the_pages_of_the_book_are_those_of_the_masters():
    for path, text in pages(ROOT).items():
        assert path.read_text() == text, "run: python -m website.assignments.page"


@pytest.mark.deep
def test_the_public_variant_is_proven_as_the_page_shows_it(master_path):
    assert draw_assignment(master_path, keys(1)[0], "0.1.0").master == public_master(master_path)


def test_page_and_notebook_show_the_same_variant(master_path, draws):
    assert public_master(master_path) == draws(0).master
