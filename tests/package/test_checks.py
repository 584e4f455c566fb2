"""Assertions of a page's cells: each says what it found, and the cell runs on."""

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from vitbook.book.checks import Checks, install, sentence


class Page:
    """Runs cells; keeps what failed and what was compared."""

    def __init__(self):
        self.failures, self.compared = [], []
        self.shell = InteractiveShell()
        install(self.shell, Checks(self.note, self.compared.append))

    def note(self, line, source, found):
        self.failures.append((line, source, found))

    def run(self, cell):
        result = self.shell.run_cell(cell)
        return result.error_before_exec or result.error_in_exec


@pytest.fixture
def page():
    return Page()


FAILING = [
    ("assert 1 < x < 3", "1 < x < 3", ["x < 3: 3.2 < 3"]),
    ("assert x > 3 and x > 4", "x > 3 and x > 4", ["x > 4: 3.2 > 4"]),
    ("assert x == 3, 'three?'", "x == 3", ["x == 3: 3.2 == 3", "three?"]),
    ("for k in range(2):\n    assert k < 1", "k < 1", ["k < 1: 1 < 1"]),
    ("assert all([x > t for t in (1, 5)])", "all([x > t for t in (1, 5)])", ["x > t: 3.2 > 5"]),
    (
        "import torch\nassert (torch.arange(3.) < 2).all()",
        "(torch.arange(3.0) < 2).all()",
        ["torch.arange(3.0) < 2: an array (3,) from 0 to 2 < 2"],
    ),
    (
        "import numpy as np\nnp.testing.assert_array_less(1, 0, verbose=False)",
        "np.testing.assert_array_less(1, 0, verbose=False)",
        None,
    ),
    ("assert not x", "not x", []),
]


@pytest.mark.parametrize(("cell", "source", "found"), FAILING)
def test_a_check_that_does_not_hold_says_what_it_found_and_the_cell_runs_on(
    page, cell, source, found
):
    assert page.run(f"x = 3.2\n{cell}\ndone = 1") is None
    assert page.shell.user_ns["done"] == 1
    (line, said, values) = page.failures[0]
    assert len(page.failures) == 1
    assert said == source
    assert line == 2 + cell.count("\n")
    assert values == found if found is not None else "Arrays are not" in values[0]


def test_what_holds_says_nothing_and_gives_what_python_gives(page):
    assert page.run("assert 1 < 2 <= 2 != 3\nassert [1, 2] == [1, 2]\nassert 1 in (1, 2)") is None
    assert page.failures == []
    assert [(one.sign, one.left, one.right) for one in page.compared[:3]] == [
        ("<", 1, 2),
        ("<=", 2, 2),
        ("!=", 2, 3),
    ]


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("def inner():\n    assert 1 > 2\ninner()", AssertionError),
        ("assert undefined > 2", NameError),
        ("raise AssertionError('by hand')", AssertionError),
    ],
)
def test_all_else_ends_a_cell_as_ever(page, cell, error, capsys):
    assert isinstance(page.run(cell), error)
    assert page.failures == []


def test_many_false_comparisons_are_counted(page):
    page.run("assert [k for k in range(9) if k < 0]")
    assert page.failures[0][2][1:] == ["k < 0: 1 < 0", "k < 0: 2 < 0", "and 6 more"]


def test_the_sentence_names_check_and_values():
    words = sentence("x > 60", ["x > 60: 58.3 > 60"])
    assert words == "This did not hold on this machine: x > 60; found 58.3 > 60."
    words = sentence("1 < x < 3", ["x < 3: 3.2 < 3"])
    assert words == "This did not hold on this machine: 1 < x < 3; found x < 3: 3.2 < 3."


SCRIPT = """
from vitbook.book.checks import collect

collect()
for x in (70, 58.3):
    assert x > 60
print("not reached")
"""


def test_a_script_ends_with_the_sentence(tmp_path):
    (tmp_path / "a.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "a.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = "This did not hold on this machine: x > 60; found 58.3 > 60."
    assert done.stderr == f"{tmp_path / 'a.py'}, line 6: {words}\n"
    assert (done.returncode, done.stdout) == (1, "")
    (tmp_path / "a.py").write_text(SCRIPT.replace("assert", "1 / 0 #"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in done.stderr
