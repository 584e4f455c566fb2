"""A small class for the tests of the grader's outer part: a package, notebooks, and a marking that
runs no code. All names, numbers and exports here are invented."""

from __future__ import annotations

import csv
import json
import os
import time
import zipfile
from pathlib import Path

from gradebox.result import CaseResult, QuestionResult, Result
from gradebox.run import Marker

from gradebox import cli

TRIES = "images that are <not> square"  # the name of a hidden case, which a student may read
SECRET = "hidden-input-4711"  # must reach no student
STUB = "# Question {n}\ndef answer{n}(x):\n    return ...  # your code here\n"
RIGHT = "# Question {n}\ndef answer{n}(x):\n    shifted = x - x.max()\n    return shifted.exp()\n"
MUTANT = "# Question {n}\ndef answer{n}(x):\n    return x.exp() / 2  # wrong\n"
POINTS = {"q1": 10.0, "q2": 20.0, "q3": 5.0}
WORDS = "Attention looks where the words agree."


def make_package(path: Path, edition: int = 1) -> Path:
    """A package with two questions and one that a person marks; `edition` changes its bytes."""
    questions = [
        {"id": id, "title": f"Task {id}", "points": points, "manual": id == "q3"}
        for id, points in POINTS.items()
    ]
    questions[2]["rubric"] = "5: says why; 2: says what"
    stubs = {f"q{n}": STUB.format(n=n) for n in (1, 2)}
    about = {"assignment": "a9-test", "variant": "k3f9", "name": "A small assignment"}
    about |= {"questions": questions, "stubs": stubs, "edition": edition}
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("package.json", json.dumps(about))
    return path


def notebook(q1: str = RIGHT, q2: str = RIGHT, q3: str = WORDS, assignment="a9-test") -> bytes:
    """A notebook with three answers."""
    cells = []
    for id, source in (("q1", q1), ("q2", q2), ("q3", q3)):
        kind = "markdown" if id == "q3" else "code"
        cell = {"cell_type": kind, "metadata": {"vitbook": {"question": id}}, "source": source}
        cells.append(cell | ({} if kind == "markdown" else {"outputs": []}))
    about = {"vitbook": {"assignment": assignment, "variant": "k3f9"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4}).encode()


def fake_marker(options):
    """In the place of `gradebox.cli.sandboxed`. Three phases; GRADEBOX_FAKE_ORDER gets a line when
    one begins and when it ends."""

    def go_on(path, questions, so_far):
        phase = so_far["phase"] if so_far else 0
        note("ORDER", f"begins {phase} {path.stem}")
        if phase < 2:
            time.sleep(float(os.environ.get("GRADEBOX_FAKE_SECONDS", "0")) / 4)
            found = {"phase": phase + 1}
        else:
            found = fake_mark(path, options.assignment, questions)
        note("ORDER", f"ends {phase} {path.stem}")
        return found

    return Marker(go_on, phases=3)


def grade(room, *more, source="in", package="package.zip", out="out", marker=fake_marker):
    """Run the command in a folder with a package and submissions."""
    words = [room / source, "--assignment", room / package, "--out", room / out, *more]
    return cli.main([str(word) for word in words], marker=marker)


def rows(room):
    """What is in the table of grades, by student."""
    with open(room / "out/grades.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def mark_by_hand(room):
    """All that a person has to mark gets its 5 points."""
    sheet = room / "out/manual.csv"
    sheet.write_text(sheet.read_text("utf-8-sig").replace(",q3,5,,", ",q3,5,5,"), "utf-8")


def note(where: str, line: str) -> None:
    if log := os.environ.get(f"GRADEBOX_FAKE_{where}"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def fake_mark(path: Path, package: Path, questions=None) -> Result:
    """Marks by looking at the text; GRADEBOX_FAKE_LOG gets a line for each call."""
    note("LOG", f"{path.stem} {','.join(questions or ['all'])}")
    time.sleep(float(os.environ.get("GRADEBOX_FAKE_SECONDS", "0")))
    with zipfile.ZipFile(package) as opened:
        edition = json.loads(opened.read("package.json"))["edition"]
    nothing = {"assignment": "a9-test", "variant": "k3f9", "points": 0.0, "possible": 30.0}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        answers = {cell["metadata"]["vitbook"]["question"]: cell for cell in read["cells"]}
        assignment = read["metadata"]["vitbook"]["assignment"]
    except (ValueError, KeyError, TypeError):
        return Result(status="unreadable", detail="This file is no notebook.", **nothing)
    if assignment != "a9-test":
        detail = "This notebook belongs to another assignment."
        return Result(status="wrong-assignment", detail=detail, **nothing)
    if "machine fails" in json.dumps(read):
        raise OSError("no space left on device")
    marked = []
    for id, possible in POINTS.items():
        source, about = answers[id]["source"], (id, f"Task {id}")
        if questions and id not in questions:
            marked.append(QuestionResult(*about, 0.0, possible, status="not-marked"))
        elif id == "q3":
            points, status = (None, "manual") if source.strip() else (0.0, "missing")
            by_hand = {"status": status, "manual": True, "answer": source}
            marked.append(QuestionResult(*about, points, possible, **by_hand))
        else:
            marked.append(_question(id, source, possible, edition))
    points = sum(one.points or 0.0 for one in marked)
    return Result(**{**nothing, "points": points}, status="ok", questions=marked)


def _question(id: str, source: str, possible: float, edition: int) -> QuestionResult:
    half = possible / 2
    right = "shifted" in source
    # the second edition of the package forgives a wrong q2
    hidden = right or (edition == 2 and id == "q2" and "wrong" in source)
    public = right or "wrong" in source
    said = "" if public else f"got {source[-200:]}"
    cases = [
        CaseResult(f"{id}-1", True, public, half if public else 0.0, half, said),
        CaseResult(f"{id}-2-{SECRET}", False, hidden, half if hidden else 0.0, half, SECRET, TRIES),
    ]
    points = sum(case.points for case in cases)
    status = "untouched" if source == STUB.format(n=id[1]) else "ok"
    return QuestionResult(id, f"Task {id}", points, possible, status, cases=cases, answer=source)


def write_class(folder: Path, size: int = 100) -> dict[str, str]:
    """A folder with that many students: right, blank, wrong, broken, copied, odd; who is what."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {}
    for n in range(size):
        name = f"student{n:03d}"
        kinds[name] = ("right", "blank", "mutant", "broken", "other", "copied", "mixed")[n % 7]
        (folder / f"{name}.ipynb").write_bytes(handed_in(kinds[name], f"# {name}\n"))
    return kinds


def handed_in(kind: str, mine: str) -> bytes:
    """A notebook of that kind; `mine` makes it different from all others."""
    right, wrong = ([source.format(n=n) for n in (1, 2)] for source in (RIGHT, MUTANT))
    if kind == "broken":
        return b"{ this is no notebook " + mine.encode()
    if kind == "other":
        return notebook(mine, assignment="a1-other")
    if kind == "blank":
        return notebook(STUB.format(n=1), STUB.format(n=2), mine)
    if kind == "copied":
        return notebook(*right, "the same text")
    if kind == "mixed":
        return notebook(right[0], wrong[1] + mine)
    return notebook(*(right if kind == "right" else wrong), mine)


def roster_csv(path: Path, names: list[str], extensions: dict[str, str] | None = None) -> Path:
    lines = ["id,name,email,extension"]
    for name in names:
        lines.append(f"{name},{name.title()},{name}@example.edu,{(extensions or {}).get(name, '')}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
