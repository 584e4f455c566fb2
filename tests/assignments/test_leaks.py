"""No answer is where students could find it; a planted one is found."""

import html
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from website.assignments.leaks import known_traces, leaks, members
from website.assignments.marks import without_marks
from website.assignments.page import public_master

ROOT = Path(__file__).resolve().parents[2]
KNOWN = known_traces(ROOT)
MASTER = public_master(ROOT / "assignments" / "a1_attention.md")
ANSWER = without_marks(MASTER.questions[4].solution)


def cells(*sources):
    found = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


PLANTED = {
    "page.html": f"<pre><span>{html.escape(ANSWER)}</span></pre>",
    "colours.html": "<pre>" + "".join(f"<b>{html.escape(c)}</b>" for c in ANSWER) + "</pre>",
    "notebook.ipynb": cells("x = 1", ANSWER),
    "script.py": ANSWER.replace("    ", "  "),
    "_sources/a1.md": (ROOT / "assignments" / "a1_attention.md").read_text(),
    "marks.txt": "# BEGIN SOLUTION",
    "words.txt": MASTER.questions[-1].solution.replace("\n", " "),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_answer_is_found(tmp_path, name):
    (tmp_path / "site" / name).parent.mkdir(parents=True)
    (tmp_path / "site" / name).write_text(PLANTED[name])
    assert name in leaks(tmp_path / "site", KNOWN)[0]


@pytest.mark.parametrize("kind", ["x.zip", "x.whl", "x.tar.gz"])
def test_a_planted_answer_is_found_in_an_archive_within_a_folder(tmp_path, kind):
    inner = tmp_path / "answer.py"
    inner.write_text(ANSWER)
    (tmp_path / "site").mkdir()
    if kind.endswith("gz"):
        with tarfile.open(tmp_path / "site" / kind, "w:gz") as archive:
            archive.add(inner, "src/answer.py")
    else:
        with zipfile.ZipFile(tmp_path / "site" / kind, "w") as archive:
            archive.write(inner, "src/answer.py")
    assert any("answer to a1-attention q5" in line for line in leaks(tmp_path / "site", KNOWN))


@pytest.mark.parametrize("name", ["gradebox/mark.py", "assignments/a1.md", "a1.solutions.ipynb"])
def test_a_file_of_instructors_is_found_by_its_name(tmp_path, name):
    (tmp_path / "site" / name).parent.mkdir(parents=True)
    (tmp_path / "site" / name).write_text(cells())
    assert "belongs to instructors" in leaks(tmp_path / "site", KNOWN)[0]


def test_every_answer_leaves_a_trace():
    masters = map(public_master, (ROOT / "assignments").glob("a*.md"))
    asked = {
        f"{master.name} {question.name}" for master in masters for question in master.questions
    }
    assert asked <= set(KNOWN.values())


def test_the_sources_of_the_book_hold_no_answer():
    assert leaks(ROOT / "book", KNOWN) == []


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_the_package_holds_no_answer_and_nothing_of_the_grader(tmp_path, kind):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = tmp_path.iterdir()
    assert any("vitcheck/cases.py" in name for name, _ in members(built))
    assert leaks(built, KNOWN) == []


@pytest.mark.site
def test_the_site_holds_no_answer_which_is_all_that_is_published():
    assert leaks(ROOT / "_build" / "html", KNOWN) == []
