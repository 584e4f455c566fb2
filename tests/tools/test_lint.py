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
FOREIGN = {"website/theme/static/vendor", "website/theme/vendor"}  # scripts of others
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


def complained_of(root, command, pattern):
    done = subprocess.run(command, cwd=root, env=clean(), capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return set(re.findall(pattern, done.stdout, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["check", "--output-format", "concise"], r"^(\S+\.py):\d+:\d+: F821 "),
        (["format", "--check", "--output-format", "concise"], r"^(\S+\.py):.*unformatted"),
    ],
    ids=["check", "format"],
)
def test_ruff_sees_an_error_in_any_file(planted, words, pattern):
    seen = complained_of(planted, [sys.executable, "-m", "ruff", *words, "."], pattern)
    assert set(known("*.py")) - seen == set()


def test_oxlint_sees_an_error_in_any_script(planted):
    command = [f"{sys.prefix}/bin/oxlint", "--format", "unix"]
    seen = complained_of(planted, command, r"^(\S+\.js):\d+:\d+: .never_defined. is not defined")
    ours = {name for name in known("*.js") if not name.startswith(tuple(FOREIGN))}
    assert ours - seen == set()


def test_oxfmt_sees_any_script_that_is_out_of_order(planted):
    seen = complained_of(
        planted, [f"{sys.prefix}/bin/oxfmt", "--check", "**/*.js"], r"^(\S+\.js) \("
    )
    ours = {name for name in known("*.js") if not name.startswith(tuple(FOREIGN))}
    assert ours - seen == set()


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
