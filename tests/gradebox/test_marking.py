"""From one notebook to its marks."""

import json
import re
import zipfile
from dataclasses import replace

import pytest
import tiny
from gradebox.inside.worker import NOT_HERE
from gradebox.marking import mark
from gradebox.notebook import Answers, Cell
from gradebox.package import load_package
from gradebox.process import LostError
from gradebox.result import Result
from gradebox.sandbox import Limits
from tiny import SOLUTIONS, STUBS, answers, cell, notebook, write

from gradebox import marking, runs
from vitcheck.cases import Case, Question


@pytest.fixture
def marked(tmp_path, package, bubblewrap):
    """Mark a notebook made of these cells."""

    def run(cells=None, **options):
        path = write(tmp_path / "submission.ipynb", notebook(cells))
        return mark(path, package, sandbox=bubblewrap, **options)

    return run


def points(result):
    return {question.id: question.points for question in result.questions}


ALL = {"q1": 3, "q2": 6, "q3": 1, "q4": 0}  # nothing was explained


def test_right_answers_get_all_points_in_both_sandboxes(tmp_path, package, sandbox):
    result = mark(write(tmp_path / "a.ipynb", notebook()), package, sandbox=sandbox)
    assert (result.status, result.points, result.possible) == ("ok", 10, 10)
    assert result.manual_possible == 2
    assert result.restarts == 0
    assert "forgets" in result.questions[3].message
    assert Result.from_json(result.to_json()) == result


def test_a_mistake_costs_its_points_once(marked):
    wrong = "def windowed_mean(x, width):\n    return x.unfold(0, width, 1).sum(-1)"
    result = marked(answers(q1=wrong))
    assert points(result) == {**ALL, "q1": 0}
    first, hidden, _ = result.questions[0].cases
    assert first.message == "is it a mean?"
    assert hidden.message is None


PART = "x[i : i + width]"
CALL = "windowed_mean(self.proj(x), self.width)"
MEAN = f"{PART}.mean(0)"
ONE = SOLUTIONS["q1"].split("\n", 1)[1]  # without the line that says what it answers
BY_MEAN = SOLUTIONS["q1"].replace(MEAN, f"mean({PART})")
A_MEAN = cell("def mean(x):\n    return x.mean(0)")
FOREVER = "while True:\n    pass"
STUB, REST = cell(STUBS["q1"], "q1"), answers()[1:]
OTHER_TYPE = SOLUTIONS["q1"].replace("(x, width):", "(x, width):\n    x = x.double()", 1)
LATER = "windowed_mean = lambda x, width: x\nfor windowed_mean in range(3):\n    pass"
CELLS = {  # and the questions that have no points, or these
    "a helper in a cell of its own": [A_MEAN, *answers(q1=BY_MEAN)],
    "a helper of an earlier answer": (
        [
            cell(SOLUTIONS["q1"] + "\ndef twice(x):\n    return 2 * x", "q1"),
            cell(SOLUTIONS["q2"].replace(f"SCALE * {CALL}", f"twice({CALL})"), "q2"),
        ],
        {"q3": 0},
    ),
    "a cell that was split": [cell("# Question 1: a mean\nimport torch", "q1"), cell(ONE), *REST],
    "a deleted cell": (answers()[:2], {"q3": 0}),
    "training of the student's own": [*answers()[:1], cell(FOREVER), *REST],
    "another attempt below: the last one counts": (
        [*answers(), cell("def windowed_mean(x, width):\n    return None")],
        {"q1": 0},
    ),
    "training in the answer's cell": answers(q1=f"{SOLUTIONS['q1']}\n{FOREVER}"),
    "magics": answers(
        q1="%matplotlib inline\n!pip install einops\nfiles = !ls\n" + SOLUTIONS["q1"],
        q2="%%time\n" + SOLUTIONS["q2"] + "\nnn.Linear?",
        q3="from google.colab import drive\ndrive.mount('/content/drive')\n" + SOLUTIONS["q3"],
    ),
    "the answer below the stub that was left": [
        cell("# Question 1: a mean over windows\ndef windowed_mean(x, width):\n    ...", "q1"),
        cell(ONE),
        *REST,
    ],
    "answers in cells of one's own, the given ones deleted": [
        cell(item["source"].split("\n", 1)[1]) for item in answers()
    ],
    "an answer that is timed": answers(q3="%time count = 6"),
    "a helper without def": [cell("mean = lambda x: x.mean(0)"), *answers(q1=BY_MEAN)],
    "a helper at the end of the notebook": [*answers(q1=BY_MEAN, q3="count = 6"), A_MEAN],
    "a wrong answer that is changed at the end": (
        [
            *answers(q1="def windowed_mean(x, width):\n    return x"),
            cell("def windowed_mean(x, width):\n    return 2 * x"),
        ],
        {"q1": 0},
    ),
    "no Python": (answers(q2="class Smooth(nn.Module)\n    pass"), {"q2": 0}),
    "an endless answer": (
        answers(q1="def windowed_mean(x, width):\n    while True:\n        pass"),
        {"q1": 0},
    ),
    "an answer for some inputs only": (
        answers(q1=ONE.replace("    return", "    if len(x) == 8:\n        exit()\n    return")),
        {"q1": 2},
    ),
    "an answer above the stub": [cell(ONE), STUB, *REST],
    "the stub pasted once more": [*answers()[:1], cell(STUBS["q1"]), *REST],
    "an answer that is run as a text": [cell(f"exec({ONE!r})"), STUB, *REST],
    # a student's class is replaced by the right one; a method set on it later would spoil that
    "a right answer that a cell changes": (
        [
            *answers(q1="def windowed_mean(x, width):\n    return x\nwindowed_mean.note = 1"),
            cell(LATER),
        ],
        {"q1": 0},
    ),
    "what only one's own earlier answer has": answers(
        q1="def windowed_mean(x, width, scale=1.0):\n"
        "    return scale * x.unfold(0, width, 1).mean(-1)",
        q2=SOLUTIONS["q2"].replace(f"SCALE * {CALL}", f"{CALL[:-1]}, scale=SCALE)"),
    ),
    "another type, in what uses it": answers(
        q1=OTHER_TYPE,
        q2=SOLUTIONS["q2"].replace(CALL, "self.proj(windowed_mean(x, self.width))"),
    ),
}


def test_a_wrong_answer_beside_the_stub_is_not_called_as_handed_out(marked):
    wrong = cell("mine = windowed_mean = lambda x, width: x")
    found = marked([wrong, STUB, *REST]).questions[0]
    assert (found.points, found.status) == (0, "ok")


def test_questions_that_were_left_as_handed_out_are_called_so(marked):
    result = marked([cell(STUBS[id], id) for id in STUBS])
    assert {one.status for one in result.questions} == {"untouched", "missing"}
    assert result.points == 0
    half = marked([*answers()[:1], cell(STUBS["q2"], "q2"), cell("count = 7")])
    assert [one.status for one in half.questions] == ["ok", "untouched", "ok", "missing"]


@pytest.mark.parametrize(
    "name",  # all calls of the one wait until they are stopped; so do those of the attacks
    [pytest.param(n, marks=pytest.mark.deep if n == "an endless answer" else ()) for n in CELLS],
)
def test_notebooks_as_students_hand_them_in(marked, name):
    cells, less = CELLS[name] if isinstance(CELLS[name], tuple) else (CELLS[name], {})
    result = marked(cells, limits=Limits(call_s=1, cell_s=1.5, lost_calls=1))
    assert result.status == "ok"
    assert points(result) == {**ALL, **less}


def test_the_question_in_words_is_not_taken_for_its_answer(marked):
    asked = cell("## Question 4: explain\nWhat does a window forget?", kind="markdown")
    for metadata in ("q4", None):  # an answer that has lost its metadata is found as well
        mine = cell("**Your answer to question 4**\n\nThe rest.", metadata, "markdown")
        result = marked([*answers(), asked, mine])
        assert result.questions[3].answer == mine["source"]
        assert "windowed_mean" in result.questions[0].answer


def test_one_question_can_be_marked_again(marked):
    result = marked(questions=["q2"])
    assert points(result) == {**ALL, "q1": 0, "q3": 0, "q4": None}
    statuses = ["not-marked", "ok", "not-marked", "manual"]
    assert [question.status for question in result.questions] == statuses


def test_no_word_that_a_student_reads_comes_from_the_run_with_hidden_inputs(marked):
    spy = """
def windowed_mean(x, width):
    torch.seen = [*getattr(torch, "seen", []), x.tolist()]
    raise ValueError(f"I saw {len(torch.seen)}")
"""
    result = marked(answers(q1=spy, q3="count = 6"))
    assert result.questions[0].cases[0].message == 'your notebook said "ValueError: I saw 1"'
    assert [case.message for case in result.questions[0].cases[1:]] == [None, None]


def test_an_answer_that_makes_up_for_an_earlier_mistake_counts_with_right_ones_and_is_told(marked):
    swapped = SOLUTIONS["q1"].replace("(x, width)", "(width, x)")
    also = SOLUTIONS["q2"].replace("(self.proj(x), self.width)", "(self.width, self.proj(x))")
    result = marked(answers(q1=swapped, q2=also, q3="count = 6"))
    assert points(result) == {**ALL, "q1": 0, "q2": 0}
    assert "right with your own earlier answers" in result.questions[1].cases[0].message
    assert "right with your own earlier answers" in result.questions[1].hint


# How an answer can tell whose earlier answer it works with.
TELLS = {
    "where its code stands": "windowed_mean.__code__.co_filename == '<given>'",
    "what it gives": "torch.is_tensor(windowed_mean(torch.zeros(3, 1), 2))",
    "what its source calls": "'stack' in windowed_mean.__code__.co_names",
    "that it takes another argument": "windowed_mean.__code__.co_argcount == 2",
}
TWO_GUESSES = """
class Smooth(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.width, self.proj = width, nn.Linear(dim, dim)

    def forward(self, x):
        given = {tells}
        return (SCALE if given is {right} else 3.0) * self.proj(x).unfold(0, self.width, 1).mean(-1)
"""


@pytest.mark.parametrize("tells", TELLS)
def test_of_two_answers_that_know_whose_earlier_answer_they_work_with_one_is_paid(marked, tells):
    """One guess for the run with the student's own earlier answer, one for that with a right one;
    of two such notebooks, which is right only in one of the runs, one gets the points."""
    wrong = "def windowed_mean(x, width, more=0):\n    return 0.5"
    paid = [
        points(marked(answers(q1=wrong, q2=TWO_GUESSES.format(tells=TELLS[tells], right=right))))
        for right in (True, False)
    ]
    assert [one["q2"] for one in paid] == [6, 0]


def test_a_call_that_was_late_once_is_made_again(marked):
    slow = "calls = []\n" + SOLUTIONS["q1"].replace(
        "    return",
        "    calls.append(1)\n    while len(calls) == 1:\n        pass\n    return",
    )
    assert points(marked(answers(q1=slow, q3="count = 6"), limits=Limits(call_s=1))) == ALL


def test_a_verdict_that_differs_from_the_first_runs_is_repeated(marked, monkeypatch):
    """As where the machine and not the answer is at fault: the first of the two tries says no."""
    asked, tried = [], marking.tries

    def unlucky(session, questions, *more):
        asked.append([question.id for question in questions])
        return tried(session, questions, *more) if len(asked) > 1 else {}

    monkeypatch.setattr(marking, "tries", unlucky)
    assert points(marked()) == {**ALL, "q4": None}
    assert len(asked) == 2


def test_a_training_without_an_end_takes_its_seconds_once_in_each_run(marked):
    result = marked([*answers(), cell(FOREVER)], limits=Limits(cell_s=2, total_s=5))
    assert points(result) == ALL
    assert len(result.stopped) == 1


@pytest.mark.parametrize("right", [True, False])
def test_what_a_stopped_cell_was_good_for_is_there_when_it_matters(marked, right):
    """A training that is stopped, and an answer that needs more of it than a moment gives."""
    training = "import time\ncount, end = 0, time.process_time() + 1.2\nwhile True:\n"
    training += f"    count = {6 if right else 5} if time.process_time() > end else 0"
    found = points(marked([*answers(q3="count = 0"), cell(training)], limits=Limits(cell_s=2)))
    assert found == {**ALL, "q3": 1 if right else 0}


TWO_MODES = """
import time
late = False
if True:
    time.sleep(2.6)  # a cell has 2 s: in a hurry of the clock, else as many of the processor
    late = True
def windowed_mean(x, width):
    right = len(x) == 7 or late is {right_when_late}
    return x.unfold(0, width, 1).mean(-1) + (0 if right else 1)
"""


OF_ITS_OWN = SOLUTIONS["q2"].replace(CALL, "self.proj(x).unfold(0, self.width, 1).mean(-1)")


TWICE = pytest.param(SOLUTIONS["q2"], marks=pytest.mark.deep)


@pytest.mark.parametrize("q2", [OF_ITS_OWN, TWICE], ids=["once", "twice"])
def test_of_two_answers_of_which_one_needs_a_statement_that_is_stopped_one_is_paid(marked, q2):
    """In the public case, of length 7, both are right; so the first run is made twice only where a
    public case of question 2 needs another."""
    paid = []
    for right in (True, False):
        mine = answers(q1=TWO_MODES.format(right_when_late=right), q2=q2)
        paid.append(points(marked(mine, limits=Limits(cell_s=2)))["q1"])
    assert paid == [3, 1]


def test_a_set_up_that_fails_is_nobodys_mistake(tmp_path, package, bubblewrap):
    broken = replace(package, set_up=["import nothing_of_this_name"])
    result = mark(write(tmp_path / "a.ipynb", notebook()), broken, sandbox=bubblewrap)
    assert result.status == "crashed"
    assert "nothing_of_this_name" in result.detail


def test_an_explanation_in_a_cell_of_ones_own_is_found(marked):
    given = cell(tiny.ASKED, kind="markdown")
    untouched = cell(tiny.PLACEHOLDER, "q4", "markdown")

    def explained(*cells):
        return marked([*answers(), *cells]).questions[3]

    mine = cell("Everything that lies outside.", kind="markdown")
    found = explained(given, untouched, mine)
    assert (found.status, found.points, found.answer) == ("manual", None, mine["source"])
    end = cell("## Before you hand in", kind="markdown")
    source = cell("My source: Ada.", kind="markdown")
    assert explained(given, untouched, end, source).status == "missing"
    edited = cell(tiny.ASKED + "\n\nWhat lies outside.", kind="markdown")
    assert "What lies outside." in explained(edited, untouched).answer
    for text in (tiny.PLACEHOLDER, "**Your answer to question 4**", ""):  # nobody has to mark it
        found = explained(given, cell(text, "q4", "markdown"))
        assert (found.status, found.points, found.answer) == ("missing", 0, "")
    for kind in ("code", "raw"):  # what its cell became
        found = explained(cell(tiny.EXPLAIN, "q4", kind))
        assert (found.status, found.answer) == ("manual", tiny.EXPLAIN)


def test_what_stopped_is_said_to_the_student(marked):
    cells = [cell("data = open('numbers.csv')"), *answers(), cell(FOREVER)]
    result = marked(cells, limits=Limits(cell_s=1))
    assert result.points == 10
    assert "numbers.csv" in result.stopped[0]
    assert "FileNotFoundError" in result.stopped[0] or "PermissionError" in result.stopped[0]
    assert "because a cell has 1 s by the clock" in result.stopped[1]


SPEAKS = {
    "an error": 'raise ValueError("nothing; total 100, confirmed by the instructor")',
    "its first line": '# q9: 8 of 8 points"; total: 100\n1 / 0',
    "quotes of all kinds": "# \u201d \u00bb \uff02 \u300d\nraise ValueError('\u201d; total: 100')",
    "other quotes": "# \u275e \u05f4 \U0001f677\nraise ValueError('\u02dd \u02ee \u030b')",
    "modifiers": "# \u02c8\u02c8 \u02be\nraise ValueError('\u02bb\u02bd \u1cd3 x\u0315')",
    "accents of Greek": "# \u1fbf\u1fbf \u0384\nraise ValueError('\u1fbd\u1fbd \u1ffe\u1ffe')",
    "two single quotes": "# '' '\u2019 \u02bc` \nraise ValueError('\u2032\u2032. 10 of 10')",
    "semicolons": "# \ufe54 \u061b\nraise ValueError('x\u037e y')",
    "the name of an error": 'class Confirmed(Exception):\n    pass\n\nraise Confirmed("100;" * 99)',
}


@pytest.mark.parametrize("source", SPEAKS.values(), ids=SPEAKS)
def test_a_cell_that_stops_cannot_speak_as_the_grader(marked, source):
    (said,) = marked([*answers(), cell(source)]).stopped
    assert re.fullmatch(r'the cell "[^";]*" said "[^";]*"', said)
    assert said.isascii()
    assert "''" not in said
    assert len(said) < 250


# What works at home and is not possible where notebooks are marked.
REFUSED = {
    "asyncio": "import asyncio\nasyncio.run(asyncio.sleep(0))",
    "a socket": "import socket\nsocket.socketpair()",
    "the network": "from urllib.request import urlopen\nurlopen('http://example.org')",
    "a program": "import subprocess\nsubprocess.run(['ls'])",
    "processes": "import multiprocessing\nmultiprocessing.Pool(2)",
    "a loader's processes": "list(torch.utils.data.DataLoader([1, 2], num_workers=2))",
    "a file to read": "open('numbers.csv')",
    "a file to write": "torch.save(torch.zeros(3), 'weights.pt')",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_what_the_sandbox_refuses_is_called_so(marked, source):
    answer = "def windowed_mean(x, width):\n    " + source.replace("\n", "\n    ")
    result = marked([*answers(q1=answer), cell(source)])
    assert result.questions[0].cases[0].message.endswith(f'{NOT_HERE}"')
    assert "(when marked: no other files, " in result.stopped[-1]


def test_of_a_cell_that_waits_the_other_statements_are_run(marked):
    waits = "import asyncio\nawait asyncio.sleep(0)\n" + SOLUTIONS["q1"]
    result = marked(answers(q1=waits))
    assert points(result) == ALL
    assert "line 2: SyntaxError: 'await' outside function" in result.stopped[0]


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "import vitcheck.cases as vc\nvc._changed = vc.changed = lambda *a, **k: False",
        "import gradebox.inside.worker as w\nw.changed = lambda *a: False\nw.CHANGED = ''",
    ],
)
def test_an_input_changed_in_place_is_seen_outside_of_the_students_process(marked, patch):
    in_place = ONE.replace("    return", "    x += 0.5\n    x = x - 0.5\n    return")
    result = marked(answers(q1=f"{in_place}\n{patch}", q3="count = 6"))
    assert points(result)["q1"] == 0
    assert "changed in place" in result.questions[0].cases[0].message


def test_cases_share_a_questions_points_by_their_weights():
    cases = tuple(Case(f"c{n}", "stage", "answer", None, n, True) for n in (1, 2))
    question = Question("q", "Task", 10, 5, 1, "say", ("answer",), cases=cases)
    now = marking.Progress(own={"q": runs.Tried({"c1": True, "c2": False})})
    found = marking.judged(question, now, marked=True)
    assert (found.points, found.cases[1].possible) == (3.333333, 20 / 3)


class Slow:
    """A session in which each cell takes all its seconds, and no call returns."""

    limits = Limits(cell_s=4, run_s=5, lost_calls=2)

    def __init__(self):
        self.asked, self.calls = [], 0

    def spent(self):
        return sum(self.asked)

    def cell(self, source, seconds, **_):
        self.asked.append(seconds)
        return None, []

    def call(self, case):
        self.calls += 1
        raise LostError("it ended the process")


def test_when_all_cells_together_have_had_their_time_each_has_a_second():
    session = Slow()
    cells = [Cell("", None) for _ in range(4)]
    runs.run_notebook(session, Answers(cells, {}, []), runs.Heard())
    assert session.asked == [4, 1, 1, 1]


def test_after_so_many_lost_calls_the_others_are_given_up():
    session, case = Slow(), Case("c", "stage", "answer", None, 1)
    said = [verdict.message for _, verdict, _ in runs.verdicts(session, [case] * 4)]
    assert session.calls == 2
    assert ["not called: 2 calls" in words for words in said] == [False, False, True, True]


def test_a_mistake_that_only_hidden_cases_show_is_named_by_the_assignments_own_sentence(marked):
    thrice = "    if len(x) > 7:\n        return 3 * x.unfold(0, width, 1).mean(-1)\n    return"
    found = marked(answers(q1=ONE.replace("    return", thrice), q3="count = 6")).questions[0]
    assert found.cases[0].passed
    assert found.hint == "is it a mean?"
    assert [case.name for case in found.cases] == ["mean"] * 3
    spy = ONE.replace("    return", "    raise ValueError(str(x))\n    return")
    for cells in (answers(q1=spy), None):
        assert marked(cells).questions[0].hint == ""


FORGED = {  # an error's name, which is its whole text; for which length of the input it is raised
    "the grader's word for right": ("passed", 7),
    "what stands on the page": ("Hidden tests: 5 of 5 passed. 16 of 16 points.", 7),
    "a known mistake's question": ("is it a mean?", 8),
}


@pytest.mark.parametrize("name", FORGED)
def test_an_error_is_never_taken_for_the_graders_own_words(marked, name):
    error, length = FORGED[name]
    raises = f"        raise type({error!r}, (Exception,), {{}})"
    forges = f"    if len(x) == {length}:\n{raises}\n    return"
    answer = SOLUTIONS["q1"].replace("    return", forges)
    found = marked(answers(q1=answer, q3="count = 6")).questions[0]
    assert [case.passed for case in found.cases] == [n != length for n in (7, 8, 9)]
    said = f'your notebook said "{error}"'
    assert found.cases[0].message == (said if length == 7 else "passed")
    assert found.hint == ""


SILENT = {
    "the first step of an optimizer, which takes seconds": [
        cell("import sys\nfor name in ('torch._dynamo', 'torch.optim'):\n    sys.modules[name]")
    ],
    "the notebook's own checks, not run again": [
        cell('from vitcheck import Checker\n\ncheck = Checker("tiny", "no data")'),
        cell("check.all()"),
    ],
}


@pytest.mark.parametrize("cells", SILENT.values(), ids=SILENT)
def test_what_stops_no_cell(marked, cells):
    assert marked([*answers(), *cells]).stopped == []


@pytest.mark.parametrize("about", [{"assignment": None}, {"cells": ["q1"]}, {"setup": None}])
def test_a_package_that_lacks_a_part_is_named(tmp_path, about):
    path = tiny.package(tmp_path / "tiny.gradebox.zip")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    kept = {**json.loads(parts["package.json"]), **about}
    parts["package.json"] = json.dumps({k: v for k, v in kept.items() if v is not None}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match=r"tiny.gradebox.zip is no assignment's package"):
        load_package(path)
