"""Every check passes right answers of every style, passes over stubs and names planted mistakes.

The answers stand in tables/, one module for each module of `vitcheck`.
"""

import importlib
import pkgutil

import pytest
import tables
from case import in_float64

import vitcheck
from vitcheck import CheckFailed

ENGINE = {"trial", "cases", "checker", "values", "reading", "before_handing_in"}
MODULES = [m.name for m in pkgutil.iter_modules(vitcheck.__path__) if m.name not in ENGINE]
TABLES = {
    m.name: importlib.import_module(f"tables.{m.name}")
    for m in pkgutil.iter_modules(tables.__path__)
}
CASES = [case for table in TABLES.values() for case in table.CASES]


def named(case):
    return f"{case.check.__module__.removeprefix('vitcheck.')}-{case.check.__name__}"


def each(find):
    """(case, answer, ...) for each that `find` yields from a case, with readable ids."""
    rows = [(case, *row) for case in CASES for row in find(case)]
    return [pytest.param(case, *row[1:], id=f"{named(case)}-{row[0]}") for case, *row in rows]


@pytest.mark.parametrize("module", MODULES)
def test_every_check_has_a_case_with_three_mistakes(module):
    loaded = importlib.import_module(f"vitcheck.{module}")
    checks = {name for name in vars(loaded) if name.startswith("check_")}
    proven = {case.check.__name__: case for case in TABLES[module].CASES}
    assert checks == set(proven)
    assert [name for name, case in proven.items() if len(case.mistakes) < 3] == []


@pytest.mark.parametrize(
    ("case", "answer"), each(lambda case: [("right", case.right), *case.also.items()])
)
def test_a_right_answer_passes(case, answer, capsys):
    case.run(answer)
    assert capsys.readouterr().out.startswith("ok: ")


@pytest.mark.parametrize(
    ("case", "answer"), each(lambda case: [("right", case.right), *case.also.items()])
)
def test_a_right_answer_in_float64_passes(case, answer, capsys):
    case.run(in_float64(answer))
    assert capsys.readouterr().out.startswith("ok: ")


@pytest.mark.parametrize(("case", "answer"), each(lambda case: enumerate(case.stubs)))
def test_a_stub_is_not_answered_yet(case, answer, capsys):
    case.run(answer)
    assert capsys.readouterr().out.startswith("not answered yet: ")


@pytest.mark.parametrize(
    ("case", "answer", "words"),
    each(lambda case: [(name, *row) for name, row in case.mistakes.items()]),
)
def test_a_mistake_is_named(case, answer, words):
    with pytest.raises(CheckFailed) as failure:
        case.run(answer)
    assert words in str(failure.value)
