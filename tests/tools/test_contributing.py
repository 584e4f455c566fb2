"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the repository.

What the text says decides where a block goes, so a recipe can be rewritten without a change here:

    ... `src/vitbook/shift_mixer.py`:                      the next block becomes this file
    In `_toc.yml`, above `  - caption: Classroom`:         it is put there (above, below,
    In `book/index.md`, at the end of the table:           in the place of, at the end of the table)
    Save the script of [text](file.md#part) as `path`.     the first script of that file
    ```bash                                                is run, with what stands above it

"It names ...: `1 exercises`." after a command is the output that the command is held to.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

import pytest
from copies import ROOT, copied, mypy

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf8")
BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<kind>\w*)\n(?P<body>.*?)^ *(?P=fence)$", re.M | re.S
)
FILE = re.compile(r"`([\w.-]+/[\w./-]+\.\w+)`")
PLACE = re.compile(
    r"In `(?P<path>[\w./-]+)`, (?P<how>above|below|in the place of|at the end of the table)"
    r"(?: `(?P<anchor>[^`]+)`)?:$"
)
SCRIPT = re.compile(r"the script of \[[^\]]*\]\((?P<file>[^)#]+)[^)]*\) as `(?P<path>[^`]+)`")
TARGET = re.compile(r"`(?:make) ([a-z-]+)")


@dataclass(frozen=True)
class Step:
    """One thing that a recipe does."""

    section: str
    do: str  # "write", "put" or "run"
    text: str
    path: str = ""
    how: str = ""
    anchor: str = ""


def sections(text):
    """(heading, what stands below it); a heading inside a block is none."""
    spans = [match.span() for match in BLOCK.finditer(text)]
    heads = [
        match
        for match in re.finditer(r"^## (.+)$", text, re.MULTILINE)
        if not any(start <= match.start() < end for start, end in spans)
    ]
    ends = [match.start() for match in heads[1:]] + [len(text)]
    return [(m[1], text[m.end() : end]) for m, end in zip(heads, ends, strict=True)]


def steps(text):
    """What the recipes do, in their order."""
    for section, body in sections(text):
        before = 0
        for block in BLOCK.finditer(body):
            words = body[before : block.start()]
            yield from scripts(section, words)
            code = code_of(block)
            paragraph = " ".join(words.strip().split("\n\n")[-1].split("\n"))
            if block["kind"] == "bash":
                for line in code.splitlines():
                    yield Step(section, "run", line)
            elif place := PLACE.search(paragraph):
                yield Step(section, "put", code, place["path"], place["how"], place["anchor"] or "")
            elif paragraph.endswith(":") and (paths := FILE.findall(paragraph)):
                yield Step(section, "write", code, paths[-1])
            before = block.end()
        yield from scripts(section, body[before:])


def scripts(section, words):
    for match in SCRIPT.finditer(" ".join(words.split())):
        linked = (ROOT / match["file"]).read_text("utf8")
        script = next(block for block in BLOCK.finditer(linked) if block["kind"] == "python")
        yield Step(section, "write", code_of(script), match["path"])


def code_of(block):
    """A block without the indent of its fence."""
    return re.sub(rf"^{block['indent']}", "", block["body"], flags=re.MULTILINE)


STEPS = list(steps(TEXT))
COMMANDS = [step for step in STEPS if step.do == "run"]
SAVED = [step.path for step in STEPS if step.do == "write" and step.path.endswith(".py")]


def put(root, step):
    path = root / step.path
    text = path.read_text("utf8")
    if step.how == "at the end of the table":
        table = re.search(r"^```\{list-table\}\n.*?(?=^```$)", text, re.MULTILINE | re.DOTALL)
        path.write_text(text[: table.end()] + step.text + text[table.end() :])
        return
    line = re.search(rf"^.*{re.escape(step.anchor)}.*\n", text, re.MULTILINE)
    assert line, f"{step.path} has no line {step.anchor!r}"
    new = {"above": step.text + line[0], "below": line[0] + step.text, "in the place of": step.text}
    path.write_text(text[: line.start()] + new[step.how] + text[line.end() :])


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
        if step.do == "write":
            assert not (root / step.path).exists(), f"{step.path} is there already"
            (root / step.path).write_text(step.text)
        elif step.do == "put":
            put(root, step)
        else:
            outcomes[step.text] = run(root, step.text)
    return root, outcomes


@pytest.fixture(scope="module")
def followed(recipes):
    """The copy, with every file of every recipe."""
    return recipes[0]


def said_after(command):
    """The output that the sentence after a command promises: "It names ...: `this` and `that`."."""
    after = TEXT.partition(f"{command.text}\n```\n\n")[2]
    names = re.match(r"It names [^:]*:([^.]*)\.", after)
    return re.findall(r"`([^`]+)`", names[1]) if names else []


def test_the_recipes_write_files_and_run_commands():
    assert len(TEXT.splitlines()) <= 250
    assert max(len(line) for line in TEXT.splitlines()) <= 100
    recipes = {step.section for step in STEPS}
    named = set(re.findall(r"\]\(#([a-z-]+)\)", TEXT.partition("\n## ")[0]))
    assert named == {recipe.lower().replace(" ", "-") for recipe in recipes}
    assert len(recipes) >= 6
    assert {step.section for step in COMMANDS} >= recipes - {"A page in depth"}


def test_what_make_is_asked_for_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE))
    assert set(TARGET.findall(TEXT)) - targets == set()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "tools/README.md"])
def test_the_files_that_a_text_leads_to_are_there(followed, name):
    text = BLOCK.sub("", (ROOT / name).read_text("utf8"))
    for path in re.findall(r"\]\(([\w./-]+\.\w+)[#)]", text):
        assert ((ROOT / name).parent / path).is_file(), path
    for path in re.findall(r"`((?:book|src|tools|tests|experiments|assignments)/[\w/.]*)`", text):
        assert (followed / path).exists() or path == "tests/package/test_shift_mixer.py", path


def test_the_readme_shows_the_folders_and_its_example_runs(followed):
    text = (ROOT / "README.md").read_text("utf8")
    package = re.search(r"^\| `src/vitbook/` \|.*$", text, re.MULTILINE)[0]
    for folder in re.findall(r"`(\w+)/`", package):
        assert (ROOT / "src/vitbook" / folder).is_dir(), folder
    code = next(block["body"] for block in BLOCK.finditer(text) if block["kind"] == "python")
    done = run(followed, shlex.join([".venv/bin/python", "-c", f"{code}\nprint(*maps.shape)"]))
    assert done.stdout.split() == ["12", "1", "3", "197", "197"], done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda step: step.text)
def test_a_command_does_what_the_text_says(recipes, command):
    done = recipes[1][command.text]
    wanted = said_after(command)
    for words in wanted:
        assert words in done.stdout + done.stderr
    if wanted:  # what it lacks, and nothing else
        assert len((done.stdout + done.stderr).splitlines()) == len(wanted)
    else:
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_cells_of_the_new_page_run_and_its_solution_passes_the_check(followed):
    [page] = [step.text.split()[-1] for step in COMMANDS if re.match(r"cp .* book/", step.text)]
    code = (
        "import sys; from tools.book_rules.source import read_chapter; from pathlib import Path\n"
        "names = {}\n"
        "for cell in read_chapter('page', Path(sys.argv[1])).cells:\n"
        "    exec(cell.text, names)\n"
    )
    done = run(followed, shlex.join([".venv/bin/python", "-c", code, page]))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^not answered yet", done.stdout, re.MULTILINE)
    assert re.search(r"^ok: ", done.stdout, re.MULTILINE)


def test_the_rules_find_nothing_but_what_the_text_names(followed):
    done = run(followed, ".venv/bin/python -m tools.check_prose")
    found = (done.stdout + done.stderr).splitlines()
    assert all("/padding.md" in line for line in found), found


@pytest.mark.parametrize("path", SAVED)
def test_ruff_has_nothing_to_say(followed, path):
    for words in ("check", "format --check"):
        done = run(followed, f".venv/bin/python -m ruff {words} {path}")
        assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_has_nothing_to_say(followed):
    """Of all that `make lint` reads; and it is heard where something is wrong."""
    done = mypy(followed)
    assert done.returncode == 0, done.stdout + done.stderr
    [module] = [path for path in SAVED if path.startswith("src/vitbook/")]
    for path in (module, "experiments/clinic.py"):  # a tool imports this one
        with (followed / path).open("a") as file:
            file.write("wrong: int = 'a word'\n")
    done = mypy(followed)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {line.partition(":")[0] for line in done.stdout.splitlines()[:-1]} == {
        module,
        "experiments/clinic.py",
    }
