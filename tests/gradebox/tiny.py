"""The grader's tests have an assignment of their own: small, quick, and nobody's homework."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import torch
from gradebox.package import digest

from vitcheck.cases import Assignment, Case, Make, Mistake, Question, to_parts

SET_UP = "import torch\nfrom torch import nn\nSCALE = 2.0"
SOLUTIONS = {
    "q1": """# Question 1: a mean over windows
def windowed_mean(x, width):
    return torch.stack([x[i : i + width].mean(0) for i in range(len(x) - width + 1)])
""",
    "q2": """# Question 2: a layer
class Smooth(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.width, self.proj = width, nn.Linear(dim, dim)

    def forward(self, x):
        return SCALE * windowed_mean(self.proj(x), self.width)
""",
    "q3": """# Question 3: how many windows?
count = len(windowed_mean(torch.zeros(9, 1), 4))
""",
}
STUBS = {
    "q1": "# Question 1\ndef windowed_mean(x, width):\n    return ...  # yours\n",
    "q2": "# Question 2: a layer\nclass Smooth(nn.Module):\n    ...\n",
    "q3": "# Question 3: how many windows?\ncount = ...\n",
}
CHECKS = ('check("q1")', 'check("q2")', 'check("q3")')
ASKED = "## Question 4: explain\n\nWhat does a window forget?"
PLACEHOLDER = "**Your answer to question 4**\n\n*Write here, in whole sentences.*"
EXPLAIN = "# Question 4: explain\nA window forgets what lies outside of it."


def windowed_mean(x, width):
    return x.unfold(0, width, 1).mean(-1)


def package(path: Path, rubric: str = "names the window") -> Path:
    """Write the grader's package."""
    words, tensors = to_parts(assignment(rubric))
    about = {
        "assignment": "tiny",
        "variant": "v1",
        "setup": [SET_UP],
        "reference": SOLUTIONS,
        "cells": {question: {"tag": question} for question in SOLUTIONS},
        "stubs": {**STUBS, "q4": PLACEHOLDER},
        "given": [digest(text) for text in (SET_UP, ASKED, *CHECKS)],
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("package.json", json.dumps(about))
        archive.writestr("cases.json", words)
        archive.writestr("cases.safetensors", tensors)
    return path


def assignment(rubric: str = "names the window") -> Assignment:
    draw = torch.Generator().manual_seed(7)

    def mean_case(number: int, public: bool) -> Case:
        x = torch.randn(6 + number, 3, generator=draw)
        return Case(
            id=f"q1-{number}",
            stage="mean",
            name="windowed_mean",
            want=windowed_mean(x, 3),
            points=1,
            public=public,
            args=(x, 3),
            mistakes=(Mistake("is it a mean?", 3 * windowed_mean(x, 3)),),
        )

    def layer_case(number: int, public: bool) -> Case:
        weight, bias = torch.randn(3, 3, generator=draw), torch.randn(3, generator=draw)
        x = torch.randn(5, 3, generator=draw)
        make = Make("Smooth", {"dim": 3, "width": 2}, {"proj.weight": weight, "proj.bias": bias})
        want = 2 * windowed_mean(x @ weight.T + bias, 2)
        return Case(f"q2-{number}", "layer", "forward", want, 1, public, make=make, args=(x,))

    kinds = [(1, True), (2, False), (3, False)]
    q1 = tuple(mean_case(*kind) for kind in kinds)
    q2 = tuple(layer_case(*kind) for kind in kinds)
    q3 = (Case("q3-1", "value", "count", 6, 1, is_value=True),)
    return Assignment(
        "tiny",
        "v1",
        "0.1.0",
        (
            Question("q1", "a mean", 3, 5, 1, "average", ("windowed_mean",), cases=q1),
            Question("q2", "a layer", 6, 5, 2, "build", ("Smooth",), cases=q2),
            Question("q3", "a number", 1, 1, 1, "count", ("count",), cases=q3),
            Question("q4", "explain", 2, 5, 1, "say", manual=True, rubric=rubric),
        ),
    )


def cell(source: str, question: str | None = None, kind: str = "code") -> dict:
    metadata = {"vitbook": {"question": question}, "tags": [question]} if question else {}
    return {"cell_type": kind, "metadata": metadata, "source": source}


def notebook(cells: list[dict] | None = None, **about: object) -> dict:
    """The notebook of a student; without ``cells`` one with all the right answers."""
    if cells is None:
        cells = [cell(SET_UP), *answers(), cell(EXPLAIN, "q4", "markdown")]
    names = {"assignment": "tiny", "variant": "v1", "release": "0.1.0", **about}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"vitbook": names}, "cells": cells}


def answers(**instead: str) -> list[dict]:
    """The three answers' cells; ``q1="..."`` puts another answer there."""
    return [cell({**SOLUTIONS, **instead}[question], question) for question in SOLUTIONS]


def write(path: Path, contents: object) -> Path:
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents), "utf8")
    return path
