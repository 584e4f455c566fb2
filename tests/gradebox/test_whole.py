"""The whole command with the real marking, in the sandbox: from notebooks to grades."""

import json
import subprocess
import sys
import zipfile

import pytest
import tiny
from classroom import rows

from gradebox import hosted


@pytest.fixture
def room(tmp_path, bubblewrap):
    """The tiny assignment's package, complete, and three students."""
    names = ("id", "title", "points", "manual")
    words = [{name: getattr(one, name) for name in names} for one in tiny.assignment().questions]
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


def gradebox(room, *more):
    command = [sys.executable, "-m", "gradebox", room / "in", "--assignment", room / "package.zip"]
    command += ["--out", room / "out", *more]
    return subprocess.check_output(command, stderr=subprocess.STDOUT, text=True, timeout=300)


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
