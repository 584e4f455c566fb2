"""The whole command with the real marking, in the sandbox: from notebooks to grades."""

import csv
import json
import signal
import subprocess
import sys
import time
import zipfile

import pytest
import tiny

from gradebox import hosted


@pytest.fixture
def room(tmp_path, bubblewrap):
    """The tiny assignment's package, complete, and three students."""
    words = [
        {"id": one.id, "title": one.title, "points": one.points, "manual": one.manual}
        for one in tiny.assignment().questions
    ]
    plain = tiny.package(tmp_path / "plain.zip")
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(tmp_path / "package.zip", "w") as new:
        about = {**json.loads(old.read("package.json")), "questions": words}
        new.writestr("package.json", json.dumps(about))
        for name in ("cases.json", "cases.safetensors"):
            new.writestr(name, old.read(name))
    (tmp_path / "in").mkdir()
    blank = tiny.answers(q1="def windowed_mean(x, width):\n    return ...", q2="", q3="")
    for name, cells in (("right", None), ("blank", blank)):
        tiny.write(tmp_path / f"in/{name}.ipynb", tiny.notebook(cells))
    (tmp_path / "in/broken.ipynb").write_text("{")
    return tmp_path


def gradebox(room, *more, wait=True):
    command = [sys.executable, "-m", "gradebox", room / "in", "--assignment", room / "package.zip"]
    command += ["--out", room / "out", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if wait:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said
    return process


def rows(room):
    with open(room / "out/grades.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_right_blank_and_broken_notebooks_get_their_marks(room):
    said = gradebox(room, "--jobs", "2")
    found = rows(room)
    assert (found["right"]["status"], found["right"]["points"]) == ("ok", "10")
    assert (found["blank"]["status"], found["blank"]["points"]) == ("ok", "0")
    assert found["broken"]["status"] == "unreadable"
    assert "1 answer without points by hand" in said  # the blank one explains nothing
    assert "A window forgets" in (room / "out/manual.csv").read_text("utf-8-sig")
    page = (room / "out/feedback/blank.html").read_text()
    assert "Hidden tests: 0 of 2 passed." in page
    assert "marked already: 3 of 3" in gradebox(room)


def test_the_autograder_of_gradescope_gives_the_same_points(room):
    results = room / "results.json"
    (room / "one").mkdir()
    (room / "one/answer.ipynb").write_bytes((room / "in/right.ipynb").read_bytes())
    assert hosted.main([str(room / "one"), str(room / "package.zip"), str(results)]) == 0
    found = json.loads(results.read_text())
    assert sum(one["score"] for one in found["tests"]) == 10
    (room / "one/notes.txt").write_text("read me")
    (room / "one/answer.ipynb").unlink()
    assert hosted.main([str(room / "one"), str(room / "package.zip"), str(results)]) == 0
    assert "notes.txt" in json.loads(results.read_text())["output"]


@pytest.mark.deep
def test_killed_while_students_code_runs_it_leaves_no_process_and_goes_on(room):
    endless = tiny.answers(q1="import time\ntime.sleep(60)")
    tiny.write(room / "in/zz.ipynb", tiny.notebook(endless))
    process = gradebox(room, "--jobs", "1", wait=False)
    marks, deadline = room / "out/work/marks", time.monotonic() + 300
    while len(list(marks.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)  # the fourth has begun
    inside = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path: path.stat().st_mtime_ns for path in marks.glob("*.json")}
    assert len(done) == 3
    assert inside
    deadline = time.monotonic() + 30
    while any(map(alive, inside)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in inside if alive(pid)]
    assert "marked already: 3 of 4" in gradebox(room, "--seconds", "5")
    assert all(path.stat().st_mtime_ns == when for path, when in done.items())


def children(pid):
    """All processes below one."""
    said = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    parents = dict(map(int, line.split()) for line in said.splitlines())
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
