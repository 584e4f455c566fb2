"""What every test of the package needs: a seed, and one body for the tables of bad input."""

import re

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def pytest_generate_tests(metafunc):
    """A test that takes `bad_input` runs once for each row of its module's table BAD_INPUT.

    A row is (call, error, words): the call raises the error, whose message has the words.
    """
    if "bad_input" in metafunc.fixturenames:
        rows = metafunc.module.BAD_INPUT
        metafunc.parametrize("bad_input", rows, ids=[row[-1] for row in rows])


@pytest.fixture
def refused():
    """`refused(call, error, words)`: the call raises it, with these words (or this pattern)."""

    def check(call, error, words):
        with pytest.raises(error) as refusal:
            call()
        said = str(refusal.value)
        assert words in said or re.search(words, said)

    return check
