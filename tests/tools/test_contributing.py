"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the repository.

What the text says decides where a block goes, so a recipe can be rewritten without a change here:

    ... `src/vitbook/shift_mixer.py`:                      the next block becomes this file
    In `_toc.yml`, above `  - caption: Classroom`:         it is put there (above or below)
    Save the script of [text](file.md#part) as `path`.     the first script of that file
    ```bash                                                is run, with what stands above it

"It names ...: `1 exercises`." after a command is the output that the command is held to.
"""

import os
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import pytest
from copies import ROOT, WITHOUT_TYPES, copied, known, mypy

from tools.check_prose import check
from website.pages.source import read_book

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf8")
BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<kind>\w*)\n(?P<body>.*?)^ *(?P=fence)$", re.M | re.S
)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
FILE = re.compile(r"`([\w.-]+/[\w./-]+\.\w+)`:$")
PLACE = re.compile(r"In `(?P<path>[\w./-]+)`, (?P<how>above|below) `(?P<anchor>[^`]+)`:$")
SCRIPT = re.compile(r"the script of \[[^\]]*\]\((?P<file>[^)#]+)[^)]*\) as `(?P<path>[^`]+)`")


class Step(NamedTuple):
    """One thing that a recipe does: a file is written, lines are put somewhere, a command runs."""

    recipe: str
    do: str
    text: str
    path: str = ""
    how: str = ""
    anchor: str = ""


def code_of(block):
    """A block without the indent of its fence."""
    return re.sub(rf"^{block['indent']}", "", block["body"], flags=re.MULTILINE)


def steps(text):
    """What the recipes do, in their order."""
    recipe, before = "", 0
    for block in [*BLOCK.finditer(text), None]:
        words = text[before : block.start() if block else None]
        recipe = [recipe, *HEADING.findall(words)][-1]
        before = block.end() if block else None
        for script in SCRIPT.finditer(" ".join(words.split())):
            linked = BLOCK.finditer((ROOT / script["file"]).read_text("utf8"))
            code = next(block for block in linked if block["kind"] == "python")
            yield Step(recipe, "write", code_of(code), script["path"])
        if block is None:
            return
        code = code_of(block)
        paragraph = " ".join(words.strip().split("\n\n")[-1].split("\n"))
        if block["kind"] == "bash":
            yield from (Step(recipe, "run", line) for line in code.splitlines())
        elif place := PLACE.search(paragraph):
            yield Step(recipe, "put", code, *place.group("path", "how", "anchor"))
        elif path := FILE.search(paragraph):
            yield Step(recipe, "write", code, path[1])


STEPS = list(steps(TEXT))
COMMANDS = [step for step in STEPS if step.do == "run"]
WRITTEN = [step.path for step in STEPS if step.do == "write"]


def run(root, command):
    """A command of the text, with this Python and the copy's own packages."""
    words = shlex.split(command, comments=True)
    if words[0] == ".venv/bin/python":
        words[0] = sys.executable
    if words[0] == "make":
        words[1:1] = ["-o", "install", f"PY={sys.executable}"]
    packages = os.pathsep.join(str(root / name) for name in ("src", "src/gradebox", "."))
    settings = {"PYTHONPATH": packages, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    environment = {**os.environ, **settings}
    return subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    """All recipes, followed in the order of the text: the copy, and what became of each command."""
    root, outcomes = copied(tmp_path_factory.mktemp("recipes")), {}
    for step in STEPS:
        path = root / step.path
        if step.do == "run":
            outcomes[step.text] = run(root, step.text)
        elif step.do == "write":
            assert not path.exists(), f"{step.path} is there already"
            path.write_text(step.text)
        else:
            old = path.read_text("utf8")
            line = re.search(rf"^.*{re.escape(step.anchor)}.*\n", old, re.MULTILINE)
            assert line, f"{step.path} has no line {step.anchor!r}"
            at = line.start() if step.how == "above" else line.end()
            path.write_text(old[:at] + step.text + old[at:])
    return root, outcomes


@pytest.fixture(scope="module")
def followed(recipes):
    """The copy, with every file of every recipe."""
    return recipes[0]


def test_the_recipes_write_files_and_run_commands():
    assert len(TEXT.splitlines()) <= 250
    assert max(len(line) for line in TEXT.splitlines()) <= 100
    recipes = {step.recipe for step in STEPS}
    named = set(re.findall(r"\]\(#([a-z-]+)\)", TEXT.partition("\n## ")[0]))
    assert named == {recipe.lower().replace(" ", "-") for recipe in recipes}
    assert len(recipes) >= 6
    assert {step.recipe for step in COMMANDS} >= recipes - {"A page in depth"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", TEXT)) - targets == set()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "tools/README.md"])
def test_the_files_that_a_text_leads_to_are_there(followed, name):
    text = BLOCK.sub("", (ROOT / name).read_text("utf8"))
    for path in re.findall(r"\]\(([\w./-]+\.\w+)[#)]", text):
        assert ((ROOT / name).parent / path).is_file(), path
    for path in re.findall(
        r"`((?:book|src|website|tools|tests|experiments|assignments)/[\w/.]*)`", text
    ):
        assert (followed / path).exists() or path == "tests/package/test_shift_mixer.py", path


def test_the_readme_shows_the_folders_and_its_example_runs():
    text = (ROOT / "README.md").read_text("utf8")
    package = re.search(r"^\| `src/vitbook/` \|.*$", text, re.MULTILINE)[0]
    for folder in re.findall(r"`(\w+)/`", package):
        assert (ROOT / "src/vitbook" / folder).is_dir(), folder
    names = {}
    exec(next(block["body"] for block in BLOCK.finditer(text) if block["kind"] == "python"), names)
    assert names["maps"].shape == (12, 1, 3, 197, 197)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda step: step.text)
def test_a_command_does_what_the_text_says(recipes, command):
    """All of it where the text promises an output, and else without an error."""
    done = recipes[1][command.text]
    said = done.stdout + done.stderr
    after = TEXT.partition(f"{command.text}\n```\n\n")[2]
    if names := re.match(r"It names [^:]*:([^.]*)\.", after):
        promised = re.findall(r"`([^`]+)`", names[1])
        assert all(words in said for words in promised)
        assert len(said.splitlines()) == len(promised)
    else:
        assert done.returncode == 0, said


def test_the_stub_and_the_solution_of_the_new_page_have_met_its_check(followed):
    [run] = followed.glob("_build/.jupyter_cache/executed/*/base.ipynb")
    said = re.findall(r'"(not answered yet|ok: )', run.read_text("utf8"))
    assert said == ["not answered yet", "ok: "]


NOTEBOOK = """
from pathlib import Path
from website.notebooks.notebook import Exporter
from website.notebooks.roles import PageLinks
from website.pages.myst import read_page
from website.pages.settings import read_settings

page = read_page(Path("book/attention/padding.md"))
(block,) = [one for one in page.blocks if getattr(one, "name", "") == "recall"]
print(Exporter(page, PageLinks(read_settings(Path()), None, "attention/padding")).markdown(block))
"""


def test_the_directive_is_a_box_on_the_page_and_on_paper_and_a_quote_in_the_notebook(followed):
    page = (followed / "_build/preview/padding/html/attention/padding.html").read_text("utf8")
    box = r'<div class="recall admonition">\s*<p class="admonition-title">A mean</p>\s*<p>All its'
    assert re.search(box, page)
    assert ".admonition:not(" in (followed / "website/theme/static/print/print.css").read_text(
        "utf8"
    )
    done = run(followed, f".venv/bin/python -c {shlex.quote(NOTEBOOK)}")
    assert done.stdout == "> **A mean**\n>\n> All its weights are equal, and their sum is one.\n", (
        done
    )


def test_the_rules_find_nothing_but_what_the_text_names(followed):
    found = list(map(str, check(read_book(followed))))
    assert found
    assert all("/padding.md" in line for line in found), found


def test_make_lint_has_nothing_to_say_of_them_and_much_of_what_is_wrong(followed):
    """A line with an error in each file but theirs: mypy names all that it reads, and no other."""
    theirs = [path for path in WRITTEN if path.endswith(".py")]
    for words in ("check", "format --check"):
        done = run(followed, f".venv/bin/python -m ruff {words} {' '.join(theirs)}")
        assert done.returncode == 0, done.stdout + done.stderr
    for name in known("*.py"):
        with (followed / name).open("a") as file:
            file.write("planted: int = never_defined\n")
    done = mypy(followed)
    seen = dict(re.findall(r"^(\S+?):\d+: error: (.*)$", done.stdout, re.MULTILINE))
    assert {name for name in seen if "never_defined" not in seen[name]} == set(), done.stdout
    unseen = set(known("*.py")) - set(seen)
    assert {name.partition("/")[0] for name in unseen} == set(WITHOUT_TYPES), sorted(unseen)[:20]
