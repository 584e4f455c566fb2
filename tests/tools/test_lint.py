"""`make lint` finds nothing, reads every file, and stays as strict as it is."""

import json
import re
import subprocess
import sys
import tomllib

import pytest
from copies import ROOT, clean, copied, known, memory_of_mypy

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]
RULES_ON = {"E", "F", "I", "B", "UP", "SIM", "RUF", "PT", "C4", "N"}
RULES_OFF = {"N802", "N803", "N806", "N812", "RUF001", "RUF002", "RUF003", "PT011"}
STRICT = {"disallow_untyped_defs", "check_untyped_defs", "warn_redundant_casts"}
STRICT |= {"warn_unused_ignores"}
FOREIGN = ("website/theme/static/vendor", "website/theme/vendor")  # scripts of others
# "noqa" and "type: ignore" in a line; fewer is better
MOST_IN_LINES = {r"# noqa: [A-Z]": 36, r"# type: ignore\[": 8}


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


def test_no_rule_goes_and_no_type_is_left_open():
    rules = SETTINGS["ruff"]["lint"]
    assert rules.keys() == {"select", "ignore"}
    assert (set(rules["select"]) >= RULES_ON, set(rules["ignore"])) == (True, RULES_OFF)
    assert all(SETTINGS["mypy"][name] is True for name in STRICT)
    categories = json.loads((ROOT / ".oxlintrc.json").read_text("utf8"))["categories"]
    assert categories == {"correctness": "error", "suspicious": "error"}


@pytest.mark.parametrize("mark", MOST_IN_LINES)
def test_exceptions_in_lines_grow_no_more(mark):
    found = [
        f"{name}:{number}"
        for name in known("*.py")
        for number, line in enumerate((ROOT / name).read_text("utf8").splitlines(), 1)
        if re.search(mark, line)
    ]
    assert len(found) <= MOST_IN_LINES[mark], found
