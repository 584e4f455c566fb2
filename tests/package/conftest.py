"""What every test of the package needs: a seed, and one body for the tables of bad input."""

import re
from functools import partial

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


def check_refused(call, error, words):
    """The call raises the error, with these words (or this pattern)."""
    with pytest.raises(error) as refusal:
        call()
    said = str(refusal.value)
    assert words in said or re.search(words, said)


@pytest.fixture
def refused():
    return check_refused


def pytest_pycollect_makeitem(collector, name, obj):
    """Each row (call, error, words) of a module's table BAD_INPUT is a test.

    Where calls take something, a test of the module asks for `bad_input`, one row at a time.
    """
    body = "test_bad_input_is_named"
    if name != "BAD_INPUT" or hasattr(collector.obj, body):
        return None
    make = partial(pytest.Function.from_parent, collector)
    return [make(name=f"{body}[{row[-1]}]", callobj=partial(check_refused, *row)) for row in obj]


def pytest_generate_tests(metafunc):
    if "bad_input" in metafunc.fixturenames:
        rows = metafunc.module.BAD_INPUT
        metafunc.parametrize("bad_input", rows, ids=[row[-1] for row in rows])
