"""A hundred notebooks of each assignment, marked in the sandbox on two cores; killed in the
middle and started again. Prints seconds for each notebook, and the memory."""

import csv
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from classroom import roster_csv

from tools import marked_class
from tools.marked_class import Class

ROOT = Path(__file__).resolve().parents[2]
MASTERS = sorted((ROOT / "assignments").glob("a*.md"))


def command(course, room, out):
    found = marked_class.command(course, room / "in", room / out, jobs=2)
    return [*found, "--roster", str(room / "class.csv")]


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
    with subprocess.Popen(command(course, tmp_path, "out"), stderr=subprocess.DEVNULL) as process:
        while len(marks(tmp_path, "out")) < 30 and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in marks(tmp_path, "out")}
    assert 30 <= len(before) < 60
    subprocess.run(command(course, tmp_path, "out"), check=True, stderr=subprocess.DEVNULL)
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    found = (tmp_path / "out/grades.csv").read_bytes()
    check(course, wanted, found.decode())

    began = time.monotonic()
    subprocess.run(command(course, tmp_path, "calm"), check=True, stderr=subprocess.DEVNULL)
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
