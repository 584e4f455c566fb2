"""A hundred notebooks of each assignment, marked in the sandbox on two cores; killed in the
middle and started again. Prints seconds for each notebook, and the memory."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from classroom import roster_csv

from tools.assignment.marks import without_marks
from tools.assignment.notebooks import answer_source, first_line, student_notebook
from tools.assignment.package import write_package
from tools.assignment.prove import draw_assignment
from tools.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
MASTERS = sorted((ROOT / "assignments").glob("a*.md"))
KINDS = ("right", "blank", "mutant", "mutant", "broken", "other", "copied")


class Class:
    """A drawn assignment, its package, and what students hand in."""

    def __init__(self, master, folder):
        key = b"a secret of the tests, and of nobody else"
        self.drawn = draw_assignment(master, key, "0.1.0")
        self.package = folder / "package.gradebox.zip"
        write_package(self.drawn, self.package)
        self.questions = [q for q in self.drawn.master.questions if not q.manual]
        self.mutants = [(q, without_marks(one.code)) for q in self.questions for one in q.mutants]

    def notebook(self, mine, instead=None, blank=False):
        """The student's notebook with all answers; `instead`: question -> another source."""
        notebook = student_notebook(self.drawn, read_settings(ROOT))
        for cell in notebook.cells:
            name = cell.metadata.get("vitbook", {}).get("question")
            for question in self.questions:
                if question.name == name and not blank:
                    code = (instead or {}).get(name)
                    own = f"{first_line(question)}\n{code}" if code else None
                    cell.source = own or answer_source(question, solved=True)
        notebook.cells.append(nbformat.v4.new_markdown_cell(mine))
        return nbformat.writes(notebook)

    def write(self, folder, size):
        """`size` notebooks; returns student -> questions that lose points, nothing for no marks."""
        folder.mkdir()
        wanted = {}
        for n in range(size):
            name, kind = f"student{n:03d}", KINDS[n % len(KINDS)]
            everything, lost, text = {q.name for q in self.questions}, set(), ""
            if kind == "broken":
                text, lost = f"{{ {name}", None
            elif kind == "other":
                text = self.notebook(name).replace(self.drawn.master.name, "a9-other")
                lost = None
            elif kind == "mutant":
                question, code = self.mutants[n % len(self.mutants)]
                text, lost = self.notebook(name, {question.name: code}), {question.name}
            elif kind == "blank":
                text, lost = self.notebook(name, blank=True), everything
            else:
                text = self.notebook("the same" if kind == "copied" else name)
            (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
            wanted[name] = lost
        return wanted


def command(room, out, *more):
    found = [
        sys.executable,
        "-m",
        "gradebox",
        room / "in",
        "--assignment",
        room / "package.gradebox.zip",
    ]
    return [*found, "--out", room / out, "--jobs", "2", "--roster", room / "class.csv", *more]


def marks(room, out):
    return list((room / out / "work/marks").glob("*.json"))


@pytest.mark.deep
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("master", MASTERS, ids=lambda path: path.stem)
def test_a_hundred_notebooks_killed_in_the_middle_get_the_marks_that_are_due(
    master, tmp_path, bubblewrap
):
    course = Class(master, tmp_path)
    wanted = course.write(tmp_path / "in", 100)
    roster_csv(tmp_path / "class.csv", [*wanted, "absent"])
    with subprocess.Popen(command(tmp_path, "out"), stderr=subprocess.DEVNULL) as process:
        while len(marks(tmp_path, "out")) < 30 and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in marks(tmp_path, "out")}
    assert 30 <= len(before) < 60
    subprocess.run(command(tmp_path, "out"), check=True, stderr=subprocess.DEVNULL)
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    found = (tmp_path / "out/grades.csv").read_bytes()
    check(course, wanted, found.decode())

    began = time.monotonic()
    subprocess.run(command(tmp_path, "calm"), check=True, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    assert (tmp_path / "calm/grades.csv").read_bytes() == found
    results = [json.loads(path.read_text()) for path in marks(tmp_path, "calm")]
    ran = [one for one in results if one["status"] == "ok"]
    memory = max(one["memory_mb"] for one in ran)
    own = sorted(one["seconds"] for one in ran)
    print(
        f"{master.stem}: {len(results)} notebooks, {len(ran)} of them run: {seconds:.0f} s by the "
        f"clock, at most {2 * seconds / len(ran):.1f} s of a core each (by their own clock median "
        f"{own[len(own) // 2]:.1f} s, longest {own[-1]:.1f} s); {memory:.0f} MB in a worker"
    )


def check(course, wanted, text):
    """Every student has the points that are due, and loses them in the right question."""
    possible = {q.name: q.points for q in course.questions}
    found = {row["student"]: row for row in csv.DictReader(text.splitlines())}
    assert found.pop("absent")["status"] == "missing"
    assert set(found) == set(wanted)
    for name, lost in wanted.items():
        row = found[name]
        if lost is None:
            assert row["status"] in {"unreadable", "wrong-assignment"}, (name, row)
            continue
        got = {question: float(row[question]) for question in possible}
        less = {question for question, most in possible.items() if got[question] < most}
        assert (row["status"], less) == ("ok", lost), (name, row)
        if len(lost) == len(possible):
            assert not any(got.values()), (name, row)
