"""`make lint` finds nothing, reads every file, and stays as strict as it is.

Whoever wants an exception, from a rule, for a library or for a file, writes it down here, with its
reason: that is a change that somebody reads.
"""

import json
import re
import subprocess
import sys
import tomllib

import pytest
from copies import ROOT, clean, copied, known, memory_of_mypy

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]
RUFF, MYPY = SETTINGS["ruff"], SETTINGS["mypy"]
OXLINT = json.loads((ROOT / ".oxlintrc.json").read_text("utf8"))
IN_FORMULAS = "X, Q, K, V and W_Q are the field's names"
SIGNS = "Greek letters and signs of mathematics stand there on purpose"
SILENT = "has no types of its own"

NOT_FORMATTED = {"book/**/*.md": "pages: their cells are laid out for the reader"}
RULES_OFF = {
    "N802": IN_FORMULAS,
    "N803": IN_FORMULAS,
    "N806": IN_FORMULAS,
    "N812": "F is what everybody calls torch.nn.functional",
    "RUF001": SIGNS,
    "RUF002": SIGNS,
    "RUF003": SIGNS,
    "PT011": "a ValueError is told by its words where they matter",
}
RULES_ON = {"E", "F", "I", "B", "UP", "SIM", "RUF", "PT", "C4", "N"}
STRICT = {"disallow_untyped_defs", "check_untyped_defs", "warn_redundant_casts"}
STRICT |= {"warn_unused_ignores"}
# (module, setting of mypy that is weaker for it): why
UNTYPED = "docutils jupyter_book jupyter_cache jupytext myst_nb pybtex pygments quickjs scipy"
UNTYPED += " sklearn sphinx_exercise torchvision tqdm yaml"
WEAKER = {
    ("bs4.*", "follow_imports"): "an attribute may be a list of words to it; ours are strings",
    ("vitcheck.*", "disallow_untyped_defs"): "an answer may be anything",
    ("experiments.*", "disable_error_code"): "they get parts of models by name",
} | {(f"{name}.*", "ignore_missing_imports"): SILENT for name in UNTYPED.split()}
FOREIGN = {"website/theme/static/vendor", "website/theme/vendor"}  # scripts of others
OXLINT_SKIPS = {*FOREIGN, "_build", ".venv*"}
OXLINT_OFF = {"block-scoped-var", "no-shadow", "unicorn/consistent-function-scoping"}
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


def test_no_exception_is_without_a_reason():
    assert set(RUFF["extend-exclude"]) == set(NOT_FORMATTED)
    assert RUFF.keys() == {"line-length", "target-version", "extend-exclude", "lint"}
    assert RUFF["line-length"] == 100
    assert RUFF["lint"].keys() == {"select", "ignore"}
    assert set(RUFF["lint"]["ignore"]) == set(RULES_OFF)
    assert set(RUFF["lint"]["select"]) >= RULES_ON
    assert {name for name in STRICT if MYPY.get(name) is True} == STRICT
    places = {"files", "mypy_path", "python_version", "cache_dir"}
    assert MYPY.keys() == {*STRICT, *places, "overrides"}
    weaker = {
        (module, setting)
        for override in MYPY["overrides"]
        for module in override["module"]
        for setting, value in override.items()
        if setting != "module" and not (setting in STRICT and value is True)
    }
    assert weaker == set(WEAKER)
    assert {rule for rule, level in OXLINT["rules"].items() if level != "error"} == OXLINT_OFF
    assert set(OXLINT["ignorePatterns"]) == OXLINT_SKIPS
    assert OXLINT["categories"] == {"correctness": "error", "suspicious": "error"}


@pytest.mark.parametrize("mark", MOST_IN_LINES)
def test_exceptions_in_lines_grow_no_more(mark):
    found = [
        f"{name}:{number}"
        for name in known("*.py")
        for number, line in enumerate((ROOT / name).read_text("utf8").splitlines(), 1)
        if re.search(mark, line)
    ]
    assert len(found) <= MOST_IN_LINES[mark], found


def test_no_file_takes_itself_out():
    whole = re.compile(r"^#\s*(ruff: noqa|flake8: noqa|mypy: |type: ignore|fmt: off)", re.MULTILINE)
    assert [name for name in known("*.py") if whole.search((ROOT / name).read_text("utf8"))] == []
