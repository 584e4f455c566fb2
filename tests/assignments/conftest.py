"""Drawn assignments, each drawn once for all tests that look at it."""

import sys
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/gradebox"))

from website.assignments import prove
from website.assignments.prove import draw_assignment
from website.assignments.verify import keys

ROOT = Path(__file__).resolve().parents[2]
MASTERS = sorted((ROOT / "assignments").glob("a*.md"))


def unproven(mistakes):
    """Draws hold whatever comes: `make verify-assignments` and the deep tests prove many. What the
    mutants give is most of the work of a draw, and few tests look at it."""
    nothing = {"_rows": lambda proof, right: (), "complaints": lambda proof: ()}
    if not mistakes:
        nothing["_with_mistakes"] = lambda proof, case: case
    return mock.patch.multiple(prove._Proof, **nothing)


@cache
def draw(path, number, again=False, mistakes=False):
    """A drawn assignment; the first from a secret, drawn once, is proven and has its mistakes."""
    with nullcontext() if number == 1 and not again else unproven(mistakes):
        return draw_assignment(path, keys(number + 1)[number], "0.1.0")


@pytest.fixture(params=MASTERS, ids=lambda path: path.stem)
def public(request):
    """The public variant of each assignment."""
    return draw(request.param, 0)


@pytest.fixture(params=MASTERS, ids=lambda path: path.stem)
def drawn(request):
    """Each assignment, drawn from a secret."""
    return draw(request.param, 1)


@pytest.fixture(params=MASTERS, ids=lambda path: path.stem)
def master_path(request):
    return request.param


@pytest.fixture
def draws(master_path):
    """Number -> the draw of this number: 0 is the public one, the others are from secrets."""
    return partial(draw, master_path)
