"""The package for the grader: points, cells, given code, reference answers and all cases."""

import json
import zipfile
from pathlib import Path

from gradebox.package import digest

from vitcheck.cases import to_parts
from website.assignments.marks import without_marks
from website.assignments.notebooks import answer_source, cell_id, first_line, student_notebook
from website.assignments.prove import Drawn
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
FORMAT = 1


def package_of(drawn: Drawn) -> dict:
    """What ``package.json`` holds; tensors and cases stand beside it."""
    master, cases = drawn.master, drawn.cases
    asked = [q for q in master.questions if not q.manual]
    handed_out = student_notebook(drawn, read_settings(ROOT)).cells
    keep = (
        *("id", "title", "points", "minutes", "difficulty", "objective"),
        *("defines", "manual", "rubric"),
    )
    return {
        "format": FORMAT,
        "assignment": cases.assignment,
        "name": master.title,
        "variant": cases.variant,
        "release": cases.release,
        "minutes": master.minutes,
        "points": master.points,
        "questions": [{key: getattr(q, key) for key in keep} for q in cases.questions],
        "setup": list(master.setup),
        "reference": {q.name: without_marks(q.solution).strip() for q in asked},
        "stubs": {q.name: answer_source(q, solved=False) for q in master.questions},
        "given": [digest(cell.source) for cell in handed_out if "vitbook" not in cell.metadata],
        "cells": {
            q.name: {
                "id": cell_id(q),
                "tag": q.name,
                "first_line": first_line(q),
                "kind": "markdown" if q.manual else "code",
            }
            for q in master.questions
        },
    }


def write_package(drawn: Drawn, path: Path) -> None:
    """Write the ``.gradebox.zip``; the same draw gives the same bytes."""
    words, tensors = to_parts(drawn.cases)
    about = json.dumps(package_of(drawn), indent=1).encode()
    members = {"package.json": about, "cases.json": words, "cases.safetensors": tensors}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
