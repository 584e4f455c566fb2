"""A class of invented students, marked for real: what the instructors' guide shows of it.

    python -m tools.marked_class            300 notebooks of assignment 1 (make marked-class)
    python -m tools.marked_class --size 40

The notebooks are right, blank, wrong in ways that the assignment expects, unreadable, of another
assignment, copied, written into cells of one's own, or hold a training that does not end. They are
marked by the command that an instructor types. Written are book/classroom/marked_class.json (time,
memory, an excerpt of grades.csv) and the picture of one student's page.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

from tools import guide
from tools.assignment.marks import without_marks
from tools.assignment.master import Question
from tools.assignment.notebooks import answer_source, first_line, student_notebook
from tools.assignment.package import write_package
from tools.assignment.prove import draw_assignment
from tools.browser import FLAGS, find_chromium
from tools.settings import read_settings
from vitbook.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ROOT / "book" / "classroom"
KEY = b"the class of the instructors' guide: its answers are no secret"
KINDS: tuple[str, ...] = ("right", "mutant", "own cells", "mutant", "blank", "right", "copied")
KINDS += ("mutant", "training", "right", "mutant", "broken", "right", "mutant", "other", "mutant")
KINDS += ("right", "copied")
COLUMNS = ("student", "status", "points", "total", "notes")
ENDLESS = "loss = 0.0\nwhile True:  # a training that nobody waits for\n    loss += 1e-9"


class Class:
    """A drawn assignment, its package, and what students hand in."""

    def __init__(self, master: Path, folder: Path, key: bytes = KEY) -> None:
        self.drawn = draw_assignment(master, key, read_settings(ROOT).version)
        self.package = folder / "package.gradebox.zip"
        write_package(self.drawn, self.package)
        self.questions = [q for q in self.drawn.master.questions if not q.manual]
        self.mutants = [(q, without_marks(one.code)) for q in self.questions for one in q.mutants]

    def notebook(
        self,
        mine: str,
        instead: dict[str, str] | None = None,
        blank: bool = False,
        below: bool = False,
    ) -> str:
        """A student's notebook with all answers.

        Args:
            mine: A text cell that makes it different from all others.
            instead: Question -> another source.
            blank: As it was handed out.
            below: The stubs stay, and each answer stands in a new cell below.
        """
        notebook = student_notebook(self.drawn, read_settings(ROOT))
        cells = []
        for cell in notebook.cells:
            cells.append(cell)
            for question in () if blank else self.drawn.master.questions:
                if question.name == cell.metadata.get("vitbook", {}).get("question"):
                    source = self.answer(question, instead or {})
                    if below and not question.manual:
                        cells.append(nbformat.v4.new_code_cell(source.split("\n", 1)[1]))
                    else:
                        cell.source = source
        notebook.cells = [*cells, nbformat.v4.new_markdown_cell(mine, id="mine")]
        return nbformat.writes(notebook)

    def answer(self, question: Question, instead: dict[str, str]) -> str:
        if code := instead.get(question.name):
            return f"{first_line(question)}\n{code}"
        return answer_source(question, solved=True)

    def write(self, folder: Path, size: int) -> dict[str, set[str] | None]:
        """``size`` notebooks; student -> the questions that lose points, None where there are no
        marks."""
        folder.mkdir()
        wanted: dict[str, set[str] | None] = {}
        everything = {question.name for question in self.questions}
        for n in range(size):
            name, kind = f"student{n:03d}", KINDS[n % len(KINDS)]
            lost: set[str] | None = set()
            if kind == "broken":
                text, lost = f"{{ {name}", None
            elif kind == "other":
                text = self.notebook(name).replace(self.drawn.master.name, "a9-other")
                lost = None
            elif kind == "mutant":
                question, code = self.mutants[n % len(self.mutants)]
                text, lost = self.notebook(name, {question.name: code}), {question.name}
            elif kind == "training":
                first = answer_source(self.questions[0], solved=True).split("\n", 1)[1]
                slow = {self.questions[0].name: f"{first}\n{ENDLESS}\n# of {name}"}
                text = self.notebook(name, slow)
            elif kind == "blank":
                text, lost = self.notebook(name, blank=True), everything
            else:
                own = "the same" if kind == "copied" else name
                text = self.notebook(own, below=kind == "own cells")
            (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
            wanted[name] = lost
        return wanted


def command(course: Class, submissions: Path, out: Path, jobs: int) -> list[str]:
    """What an instructor types."""
    words = [sys.executable, "-m", "gradebox", submissions, "--assignment", course.package]
    return [*map(str, words), "--out", str(out), "--jobs", str(jobs)]


def marked(course: Class, folder: Path, size: int, jobs: int = 2) -> dict[str, Any]:
    """Write, mark and measure a class."""
    wanted = course.write(folder / "in", size)
    began = time.monotonic()
    subprocess.run(command(course, folder / "in", folder / "out", jobs), check=True)
    minutes = (time.monotonic() - began) / 60
    results = [json.loads(p.read_text("utf8")) for p in (folder / "out/work/marks").glob("*.json")]
    ran = sorted(one["seconds"] for one in results if one["status"] == "ok")
    return {
        "assignment": course.drawn.master.name,
        "notebooks": size,
        "kinds": dict(Counter(KINDS[n % len(KINDS)] for n in range(size))),
        "jobs": jobs,
        "minutes": round(minutes, 1),
        "median_seconds": round(ran[len(ran) // 2], 1),
        "longest_seconds": round(ran[-1], 1),
        "memory_mb": round(max(one["memory_mb"] for one in results)),
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), shared with other work",
        "torch": version("torch"),
        "rows": excerpt(folder / "out" / "grades.csv"),
        **shown(course, folder / "out", wanted),
    }


def shown(course: Class, out: Path, wanted: dict[str, set[str] | None]) -> dict[str, str]:
    """The student whose page is shown, the first with a wrong answer to the first question, and
    what that page says of it."""
    first = course.questions[0].name
    student = next(name for name, lost in wanted.items() if lost == {first})
    about = json.loads((out / "students" / f"{student}.json").read_text("utf8"))
    question = about["result"]["questions"][0]
    said = next(case["message"] for case in question["cases"] if not case["passed"])
    points = f"{question['points']:g} of {question['possible']:g} points"
    alt = f"{question['title']}, {points}: {said or question['hint']}"
    return {"shown": student, "alt": alt}


def excerpt(grades: Path) -> list[dict[str, str]]:
    """The first student of each kind, in the columns that say most."""
    with open(grades, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first = [rows[KINDS.index(kind)] for kind in dict.fromkeys(KINDS)]
    return [{name: row[name] for name in COLUMNS} for row in first]


def picture(page: Path, path: Path) -> None:
    """A student's page, as a browser shows it, with a frame."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        view = browser.new_page(viewport={"width": 640, "height": 800}, device_scale_factor=1.5)
        view.goto(page.resolve().as_uri())
        view.screenshot(path=path)
        browser.close()
    ImageOps.expand(Image.open(path), border=2, fill="#8a8f98").save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=300, help="notebooks")
    size = parser.parse_args().size
    if size < len(KINDS):
        raise SystemExit(f"--size must be at least {len(KINDS)}, one of each kind; got {size}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        course = Class(ROOT / "assignments" / "a1_attention.md", folder)
        found = marked(course, folder, size)
        picture(folder / "out/feedback" / f"{found['shown']}.html", SHOWN / "feedback.png")
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    write_atomically(SHOWN / "marked_class.json", text.encode())
    guide.main()
    print({key: value for key, value in found.items() if key != "rows"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
