"""From one notebook to its marks."""

from dataclasses import replace

import pytest
import tiny
from gradebox.marking import mark
from gradebox.result import Result
from gradebox.sandbox import Limits
from tiny import SOLUTIONS, answers, cell, notebook, write


@pytest.fixture
def marked(tmp_path, package, bubblewrap):
    """Mark a notebook made of these cells."""

    def run(cells=None, **options):
        path = write(tmp_path / "submission.ipynb", notebook(cells))
        return mark(path, package, sandbox=bubblewrap, **options)

    return run


def points(result):
    return {question.id: question.points for question in result.questions}


ALL = {"q1": 3, "q2": 6, "q3": 1, "q4": None}


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
LEAVES_AT_8 = "    if len(x) == 8:\n        exit()\n    return"
CELLS = {
    "a helper in a cell of its own": (
        [
            cell("def mean(x):\n    return x.mean(0)"),
            cell(
                SOLUTIONS["q1"].replace("x[i : i + width].mean(0)", "mean(x[i : i + width])"), "q1"
            ),
            *answers()[1:],
        ],
        ALL,
    ),
    "a helper of an earlier answer": (
        [
            cell(SOLUTIONS["q1"] + "\ndef twice(x):\n    return 2 * x", "q1"),
            cell(SOLUTIONS["q2"].replace(f"SCALE * {CALL}", f"twice({CALL})"), "q2"),
        ],
        {**ALL, "q3": 0},
    ),
    "a cell that was split": (
        [
            cell("# Question 1: a mean\nimport torch", "q1"),
            cell(SOLUTIONS["q1"].split("\n", 1)[1]),
            *answers()[1:],
        ],
        ALL,
    ),
    "cells without metadata": ([cell(item["source"]) for item in answers()], ALL),
    "a deleted cell": (answers()[:2], {**ALL, "q3": 0}),
    "training of the student's own": (
        [*answers()[:1], cell("while True:\n    pass"), *answers()[1:]],
        ALL,
    ),
    "an older attempt below": (
        [*answers(), cell("def windowed_mean(x, width):\n    return None")],
        ALL,
    ),
    "training in the answer's cell": (
        answers(q1=SOLUTIONS["q1"] + "\nwhile True:\n    pass"),
        ALL,
    ),
    "lines that fail": (
        answers(q1="show(torch.zeros(3))\n" + SOLUTIONS["q1"] + "\nprint(not_there)"),
        ALL,
    ),
    "magics": (
        answers(
            q1="%matplotlib inline\n!pip install einops\nfiles = !ls\n" + SOLUTIONS["q1"],
            q2="%%time\n" + SOLUTIONS["q2"] + "\nnn.Linear?",
            q3="from google.colab import drive\ndrive.mount('/content/drive')\n" + SOLUTIONS["q3"],
        ),
        ALL,
    ),
    "no Python": (answers(q2="class Smooth(nn.Module)\n    pass"), {**ALL, "q2": 0}),
    "an endless answer": (
        answers(q1="def windowed_mean(x, width):\n    while True:\n        pass"),
        {**ALL, "q1": 0},
    ),
    "an answer for some inputs only": (
        answers(
            q1=SOLUTIONS["q1"].replace(
                "    return", "    if len(x) == 8:\n        exit()\n    return"
            )
        ),
        {**ALL, "q1": 2},
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_notebooks_as_students_hand_them_in(marked, name):
    cells, expected = CELLS[name]
    result = marked(cells, limits=Limits(call_s=1, cell_s=1.5, lost_calls=1))
    assert result.status == "ok"
    assert points(result) == {**expected, "q4": None}


def test_the_question_in_words_is_not_taken_for_its_answer(marked):
    asked = cell("## Question 4: explain\nWhat does a window forget?", kind="markdown")
    for metadata in ("q4", None):  # an answer that has lost its metadata is found as well
        mine = cell("**Your answer to question 4**\n\nThe rest.", metadata, "markdown")
        result = marked([*answers(), asked, mine])
        assert result.questions[3].answer == mine["source"]
        assert "windowed_mean" in result.questions[0].answer


def test_one_question_can_be_marked_again(marked):
    result = marked(questions=["q2"])
    assert points(result) == {**ALL, "q1": 0, "q3": 0}
    assert [question.status for question in result.questions] == [
        "not-marked",
        "ok",
        "not-marked",
        "manual",
    ]


def test_no_word_that_a_student_reads_comes_from_the_run_with_hidden_inputs(marked):
    spy = """
def windowed_mean(x, width):
    torch.seen = [*getattr(torch, "seen", []), x.tolist()]
    raise ValueError(f"I saw {len(torch.seen)}")
"""
    result = marked(answers(q1=spy))
    assert result.questions[0].cases[0].message == "ValueError: I saw 1"
    assert [case.message for case in result.questions[0].cases[1:]] == [None, None]


def test_an_answer_that_only_fits_the_own_mistake_says_so(marked):
    swapped = SOLUTIONS["q1"].replace("(x, width)", "(width, x)")
    also = SOLUTIONS["q2"].replace("(self.proj(x), self.width)", "(self.width, self.proj(x))")
    result = marked(answers(q1=swapped, q2=also))
    assert points(result) == {**ALL, "q1": 0, "q2": 0}
    assert "your own earlier answers" in result.questions[1].cases[0].message


def test_a_set_up_that_fails_is_nobodys_mistake(tmp_path, package, bubblewrap):
    broken = replace(package, set_up=["import nothing_of_this_name"])
    result = mark(write(tmp_path / "a.ipynb", notebook()), broken, sandbox=bubblewrap)
    assert result.status == "crashed"
    assert "nothing_of_this_name" in result.detail


def test_the_tiny_assignment_is_what_it_says():
    assert {question.id for question in tiny.assignment().questions} == {"q1", "q2", "q3", "q4"}
