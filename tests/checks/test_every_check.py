"""Every check passes right answers of every style, passes over stubs and names every mistake.

A check brings a right answer and its known mistakes along (see `vitcheck.trial.staged`), its page
the solution. Others stand in tables/, one module for each module of `vitcheck.exercises`.
"""

import importlib
import pkgutil

import pytest
import tables
from case import Case, hand_in, in_float64
from solved import solved

from vitcheck import CheckFailed, exercises

MODULES = [m.name for m in pkgutil.iter_modules(exercises.__path__)]
TABLES = [
    importlib.import_module(f"tables.{m.name}") for m in pkgutil.iter_modules(tables.__path__)
]
SOLVED = solved()
IN_TABLES = {case.check: case for table in TABLES for case in table.CASES}
CASES = {
    f"{module}-{name}": IN_TABLES.get(check) or Case(check)
    for module in MODULES
    for name, check in vars(importlib.import_module(f"vitcheck.exercises.{module}")).items()
    if name.startswith("check_")
}


def each(find):
    """(check, answer, ...) for each (name, answer, ...) that `find` yields from a case."""
    return [
        pytest.param(case.check, *row, id=f"{check}-{name}")
        for check, case in CASES.items()
        for name, *row in find(case)
    ]


def right_answers(case):
    own = [("right", case.check.right)] if case.check.right else []
    pages = [("the page's", answer) for answer in SOLVED[case.check]]
    return [*own, *pages, *case.also.items()]


def known_mistakes(case):
    return [(question[:60], answer, question) for question, answer in case.check.mistakes]


def wrong_answers(case):
    return [(name, *row) for name, row in case.wrong.items()]


def test_every_check_is_tried_with_a_right_answer_that_is_not_its_own():
    assert set(IN_TABLES) <= {case.check for case in CASES.values()}
    assert [name for name, case in CASES.items() if not SOLVED[case.check] and not case.also] == []


def test_every_check_is_tried_with_three_wrong_answers():
    few = [name for name, case in CASES.items() if len(case.check.mistakes) + len(case.wrong) < 3]
    assert few == []


@pytest.mark.parametrize("changed", [lambda answer: answer, in_float64], ids=["", "in float64"])
@pytest.mark.parametrize(("check", "answer"), each(right_answers))
def test_a_right_answer_passes(check, answer, changed, capsys):
    hand_in(check, changed(answer))
    assert capsys.readouterr().out.startswith("ok: ")


@pytest.mark.parametrize(("check", "answer"), each(lambda case: enumerate(case.stubs)))
def test_a_stub_is_not_answered_yet(check, answer, capsys):
    hand_in(check, answer)
    assert capsys.readouterr().out.startswith("not answered yet: ")


@pytest.mark.parametrize(("check", "answer", "question"), each(known_mistakes))
def test_a_known_mistake_is_met_by_its_own_question(check, answer, question):
    for _ in range(2):  # other inputs each time
        with pytest.raises(CheckFailed) as failure:
            hand_in(check, answer)
        assert failure.value.question == question


@pytest.mark.parametrize(("check", "answer", "words"), each(wrong_answers))
def test_another_wrong_answer_is_told_what_is_wrong(check, answer, words):
    with pytest.raises(CheckFailed) as failure:
        hand_in(check, answer)
    assert words in str(failure.value)
