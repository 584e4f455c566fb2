"""The instructor's guide does what it says: its master is made and marked, its commands exist."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from classroom import grade, rows
from gradebox.reading import MOST_BYTES
from gradebox.roster import read_late
from gradebox.sandbox import HELP, NAMES, THREADS, Limits

from gradebox import cli, hosted
from website.assignments.draw import write_key
from website.assignments.prove import draw_assignment
from website.assignments.reader import MOST_PUBLIC
from website.assignments.write import write_all
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "book/classroom/instructors.md").read_text("utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that the example, copied as the guide says, gives."""
    room = tmp_path_factory.mktemp("own")
    assert "`assignments/example.md`" in GUIDE
    shutil.copy(ROOT / "assignments/example.md", room / "my_master.md")
    write_key(room / "course.key")
    drawn = draw_assignment(room / "my_master.md", (room / "course.key").read_bytes(), "0.1.0")
    return write_all(drawn, read_settings(ROOT), room / "out")


def test_the_guides_own_master_becomes_all_the_files_that_the_guide_names(made):
    names = {path.name.removeprefix(made.name) for path in made.iterdir()}
    told = set(re.findall(r"`NAME(\.[\w.]+)`", GUIDE))
    assert {".ipynb", ".gradebox.zip", ".solutions.ipynb", ".rubrics.md"} <= told
    assert told <= names


def test_its_solution_gets_all_points_and_the_blank_notebook_none(made, tmp_path, bubblewrap):
    (tmp_path / "in").mkdir()
    for name, kind in (("solution", ".solutions"), ("blank", "")):
        shutil.copy(made / f"{made.name}{kind}.ipynb", tmp_path / f"in/{name}.ipynb")
    package = made / f"{made.name}.gradebox.zip"
    assert grade(tmp_path, package=package, marker=cli.sandboxed) == 0
    totals = {name: row["total"] for name, row in rows(tmp_path).items()}
    assert totals == {"solution": "10", "blank": "0"}


def test_the_autograder_of_gradescope_gives_the_same_points(made, tmp_path, bubblewrap):
    package, answer = made / f"{made.name}.gradebox.zip", tmp_path / "in/answer.ipynb"
    answer.parent.mkdir()
    shutil.copy(made / f"{made.name}.solutions.ipynb", answer)

    def found():
        given = (answer.parent, package, tmp_path / "results.json")
        assert hosted.main([str(path) for path in given]) == 0
        return json.loads((tmp_path / "results.json").read_text())

    assert sum(one["score"] for one in found()["tests"]) == 10
    answer.rename(answer.with_name("notes.txt"))
    assert "notes.txt" in found()["output"]


def test_every_command_of_the_guide_has_only_options_that_there_are():
    commands = re.findall(r"^\.venv/bin/gradebox ((?:.*\\\n)*.*)$", GUIDE, re.MULTILINE)
    assert len(commands) >= 3
    for typed in commands:
        cli.parser().parse_args(shlex.split(typed.replace("\\\n", " ")))
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE))
    known = {name for action in cli.parser()._actions for name in action.option_strings}
    assert {"--roster", "--late", "--keep", "--question", "--shard", "--unsafe"} <= options
    assert options - known == {"--new-key", "--list", "--find"}  # of two tools
    (words,) = re.findall(r"`(--due [^`]*--late [^`]*)`", GUIDE)
    lateness = cli.parser().parse_args(shlex.split(words))
    read_late(lateness.late, lateness.due)


def test_what_is_promised_of_the_sandbox_is_what_the_grader_says_of_it():
    promised = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    assert "Linux 5.13" in promised
    assert "Linux 5.13" in HELP
    assert {"bubblewrap", "landlock", "unsafe"} == set(NAMES)
    assert "In bubblewrap, or behind Landlock and seccomp" in promised
    assert "at most a tenth of the points" in promised
    assert MOST_PUBLIC == 0.1
    for path in re.findall(r"`([\w.]+/[\w./]+)`", promised):
        assert (ROOT / path).exists(), path


def test_the_limits_in_the_guide_are_those_of_the_grader():
    limits = Limits()
    gigabytes = f"{limits.memory_mb / 1024:g} GB of memory beyond what torch takes"
    for words in (
        f"{limits.call_s:g} s for a call, {limits.cell_s:g} s for a cell, {limits.run_s:g} s",
        f"* - {limits.total_s / 60:g} minutes in all",
        f"{gigabytes}, and {THREADS} threads",
        f"* - {MOST_BYTES / 1e6:g} MB for the file",
    ):
        assert words in GUIDE
