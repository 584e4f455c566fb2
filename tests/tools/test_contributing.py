"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the repository.

What the text says decides where a block goes, so a recipe can be rewritten without a change here:

    ... `src/vitbook/shift_mixer.py`:                      the next block becomes this file
    In `_toc.yml`, above `  - caption: Classroom`:         it is put there (above or below)
    Save the script of [text](file.md#part) as `path`.     the first script of that file
    ```bash                                                is run, with what stands above it

In `make test` every block is put where it belongs, and the commands of QUICK are run.
"""

import os
import re
import shlex
import subprocess
import sys

import pytest
from copies import ROOT, WITHOUT_TYPES, copied, known, mypy

from tools.check_prose import check
from website.pages.source import read_book

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf8")
BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<kind>\w*)\n(?P<body>.*?)^ *(?P=fence)$", re.M | re.S
)
FILE = re.compile(r"`([\w.-]+/[\w./-]+\.\w+)`:$")
PLACE = re.compile(r"In `([\w./-]+)`, (above|below) `([^`]+)`:$")
SCRIPT = re.compile(r"the script of \[[^\]]*\]\(([^)#]+)[^)]*\) as `([^`]+)`")


def code_of(block):
    """A block without the indent of its fence."""
    return re.sub(rf"^{block['indent']}", "", block["body"], flags=re.MULTILINE)


def steps():
    """What the recipes do, in their order: (run, the command), (write, the text, its path), or
    (above or below, the text, the path, the line there)."""
    before = 0
    for block in BLOCK.finditer(TEXT):
        words, before, code = TEXT[before : block.start()], block.end(), code_of(block)
        for file, path in SCRIPT.findall(" ".join(words.split())):
            linked = BLOCK.finditer((ROOT / file).read_text("utf8"))
            yield "write", code_of(next(one for one in linked if one["kind"] == "python")), path
        paragraph = " ".join(words.strip().split("\n\n")[-1].split("\n"))
        if block["kind"] == "bash":
            yield from (("run", line) for line in code.splitlines())
        elif place := PLACE.search(paragraph):
            yield place[2], code, place[1], place[3]
        elif path := FILE.search(paragraph):
            yield "write", code, path[1]


STEPS = list(steps())
COMMANDS = [text for do, text, *_ in STEPS if do == "run"]
QUICK = [text for text in COMMANDS if re.search(r"^cp|-k padding$|shift-mixer", text)]
LONG = [text for text in COMMANDS if text not in QUICK]


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


def followed(root, commands):
    """All recipes, followed in the order of the text: the copy, and what became of each command."""
    outcomes = {}
    copied(root)
    for do, text, *where in STEPS:
        if do == "run":
            outcomes |= {text: run(root, text)} if text in commands else {}
        elif do == "write":
            assert not (root / where[0]).exists(), f"{where[0]} is there already"
            (root / where[0]).write_text(text)
        else:
            path, anchor = where
            old = (root / path).read_text("utf8")
            line = re.search(rf"^.*{re.escape(anchor)}.*\n", old, re.MULTILINE)
            assert line, f"{path} has no line {anchor!r}"
            at = line.start() if do == "above" else line.end()
            (root / path).write_text(old[:at] + text + old[at:])
    return root, outcomes


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    return followed(tmp_path_factory.mktemp("recipes"), COMMANDS)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return followed(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "tools/README.md"])
def test_the_files_that_a_text_leads_to_are_there(quick, name):
    text = BLOCK.sub("", (ROOT / name).read_text("utf8"))
    folders = "book|src|website|tools|tests|experiments|assignments"
    there = [ROOT / name / ".." / path for path in re.findall(r"\]\(([\w./-]+\.\w+)[#)]", text)]
    there += [quick[0] / path for path in re.findall(rf"`((?:{folders})/[\w/.]*)`", text)]
    lost = [path for path in map(os.path.normpath, there) if not os.path.exists(path)]
    assert [path for path in lost if not path.endswith("tests/package/test_shift_mixer.py")] == []


def test_the_example_of_the_readme_runs():
    text, names = (ROOT / "README.md").read_text("utf8"), {}
    exec(next(block["body"] for block in BLOCK.finditer(text) if block["kind"] == "python"), names)
    assert names["maps"].shape == (12, 1, 3, 197, 197)


@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_does_what_the_text_says(quick, command):
    done = quick[1][command]
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("command", LONG)
def test_a_command_does_what_the_text_says(recipes, command):
    done = recipes[1][command]
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_new_pages_keep_the_rules(quick):
    assert [str(one) for one in check(read_book(quick[0]))] == []


NOTEBOOK = """
from pathlib import Path
from website.notebooks.notebook import Exporter
from website.notebooks.roles import PageLinks
from website.pages.myst import read_page
from website.pages.settings import read_settings

page = read_page(Path("book/attention/padding.md"))
(block,) = [one for one in page.blocks if getattr(one, "name", "") == "recall"]
links = PageLinks(read_settings(Path()), None, "attention/padding", {})
print(Exporter(page, links).markdown(block))
"""


@pytest.mark.deep
def test_the_new_pages_meet_the_check_and_show_the_box(recipes):
    root, _ = recipes
    [ran] = root.glob("_build/.jupyter_cache/executed/*/base.ipynb")
    said = re.findall(r'"(not answered yet|ok: )', ran.read_text("utf8"))
    assert said == ["not answered yet", "ok: "]
    page = (root / "_build/preview/padding/html/attention/padding.html").read_text("utf8")
    box = r'<div class="recall admonition">\s*<p class="admonition-title">A mean</p>\s*<p>All its'
    assert re.search(box, page)
    done = run(root, f".venv/bin/python -c {shlex.quote(NOTEBOOK)}")
    quoted = "> **A mean**\n>\n> All its weights are equal, and their sum is one.\n"
    assert done.stdout == quoted, done.stderr


@pytest.mark.parametrize("words", ["check", "format --check"])
def test_ruff_has_nothing_to_say_of_the_new_files(quick, words):
    theirs = [where[0] for do, _, *where in STEPS if do == "write" and where[0].endswith(".py")]
    done = run(quick[0], f".venv/bin/python -m ruff {words} {' '.join(theirs)}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.deep
def test_mypy_has_nothing_to_say_of_them_and_much_of_what_is_wrong(recipes):
    """A line with an error in each file but theirs: mypy names all that it reads, and no other."""
    root, _ = recipes
    for name in known("*.py"):
        with (root / name).open("a") as file:
            file.write("planted: int = never_defined\n")
    done = mypy(root)
    seen = dict(re.findall(r"^(\S+?):\d+: error: (.*)$", done.stdout, re.MULTILINE))
    assert {name for name in seen if "never_defined" not in seen[name]} == set(), done.stdout
    unseen = set(known("*.py")) - set(seen)
    assert {name.partition("/")[0] for name in unseen} == set(WITHOUT_TYPES), sorted(unseen)[:20]
