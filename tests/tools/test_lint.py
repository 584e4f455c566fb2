"""`make lint` finds nothing and reads every file."""

import re
import subprocess
import sys

import pytest
from copies import ROOT, clean, copied, known, memory_of_mypy

FOREIGN = ("website/theme/static/vendor", "website/theme/vendor")  # scripts of others


def test_make_lint_finds_nothing():
    command = ["make", "--no-print-directory", "-o", "install", "lint", f"VENV={sys.prefix}"]
    with memory_of_mypy():
        done = subprocess.run(command, cwd=ROOT, env=clean(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for passed in ("All checks passed!", "already formatted", "Success: no issues", "0 errors"):
        assert passed in done.stdout


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A copy in which every script ends in a line of which every tool complains.

    mypy complains of it in test_contributing.py, where it reads a copy in any case.
    """
    root = copied(tmp_path_factory.mktemp("planted"))
    lines = {"*.py": "planted: int  = never_defined\n", "*.js": "never_defined.planted( );\n"}
    for pattern, line in lines.items():
        for name in known(pattern):
            with (root / name).open("a") as file:
                file.write(line)
    return root


RUFF, CONCISE = [sys.executable, "-m", "ruff"], ["--output-format", "concise", "."]
SEES = [  # a command, what it says of a file, the files that are ours
    ([*RUFF, "check", *CONCISE], r"^(\S+\.py):\d+:\d+: F821 ", "*.py"),
    ([*RUFF, "format", "--check", *CONCISE], r"^(\S+\.py):.*unformatted", "*.py"),
    (
        [f"{sys.prefix}/bin/oxlint", "--format", "unix"],
        r"^(\S+\.js):\d+:\d+: .never_defined. is not defined",
        "*.js",
    ),
    ([f"{sys.prefix}/bin/oxfmt", "--check", "**/*.js"], r"^(\S+\.js) \(", "*.js"),
]


@pytest.mark.parametrize(
    ("command", "pattern", "ours"), SEES, ids=["check", "format", "oxlint", "oxfmt"]
)
def test_each_tool_sees_an_error_in_any_file(planted, command, pattern, ours):
    done = subprocess.run(command, cwd=planted, env=clean(), capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    seen = set(re.findall(pattern, done.stdout, re.MULTILINE))
    assert {name for name in known(ours) if not name.startswith(FOREIGN)} - seen == set()
