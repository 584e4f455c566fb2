"""What the instructors' guide shows of a marked class and of the attacks, as the page includes it.

python -m tools.guide      from book/classroom/*.json (make marked-class, make attacks)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "book" / "classroom"
CLASS = """\
% Made by python -m tools.guide from marked_class.json: run make marked-class instead of editing.

**Measured** on {date}: {notebooks} invented students handed in assignment 1. On {machine},
with `--jobs {jobs}` and PyTorch {torch}, all were marked in **{minutes:g} minutes**:
{median_seconds:g} s for the median notebook, {longest_seconds:g} s for the slowest, {memory_mb} MB
in the largest process. What they handed in, and of the first of each kind some columns of
`grades.csv`:

{rows}

And the page that {shown} gets, with one wrong answer:

```{{figure}} feedback.png
:name: fig-teach-feedback
:alt: A feedback page. {alt}
:width: 640px

The upper part of a feedback page: points for each question, then what the checks said.
```
"""
SAID = {
    "right": "right answers",
    "mutant": "one wrong answer",
    "own cells": "right, each in a new cell below its stub",
    "blank": "nothing changed",
    "copied": "right, and a copy",
    "training": "right, with a training that does not end",
    "broken": "no notebook",
    "other": "of another assignment",
}
ATTACKS = """\
% Made by python -m tools.guide from attacks.json: run make attacks instead of editing.

The project's own tests try **{total} attacks** on the grader; `make attacks` repeats them on your
machine and prints each one. Every attack reaches its goal with a plain grader that runs the
notebook in its own process. The column *own process* says how many fail as soon as each answer runs
in a process of its own, within limits, and what it returns is compared outside of that process.
*Order* says how many of the others fail because no notebook begins a phase before the whole class
has ended the last. The last two columns say how many of those that are left each sandbox stops.
With either, none is left.

{rows}

{published}
"""


def marked_class(found: dict) -> str:
    """The measured class."""
    names = list(found["rows"][0])
    rows = [
        [SAID[kind], str(count), *(shortened(row[name]) for name in names)]
        for (kind, count), row in zip(found["kinds"].items(), found["rows"], strict=True)
    ]
    return CLASS.format(**{**found, "rows": table(["handed in", "notebooks", *names], rows)})


def table(names: list[str], rows: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shortened(text: str) -> str:
    """A cell of a table: what would break it is quoted, what is long is cut."""
    text = text.replace("|", "\\|").replace("`", "'").replace('"', "'")
    return text if len(text) <= 90 else f"{text[:87]}..."


def read(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text("utf8"))


def attacks(found: dict) -> str:
    """What was tried, by goal, and what it took to stop it."""
    rows = []
    for goal in found["goals"]:
        alone, in_order = goal["stopped"]["process"], goal["stopped"]["order"]
        boxed = [str(goal["stopped"][name] - in_order) for name in ("bubblewrap", "landlock")]
        counts = [str(goal["attacks"]), str(alone), str(in_order - alone), *boxed]
        rows.append([goal["goal"], *counts])
    head = ["goal", "attacks", "own process", "order", "bubblewrap", "Landlock"]
    sources = [one["source"] for one in found["attacks"].values() if one["source"]]
    published = ", ".join(f"{{cite}}`{source}`" for source in sorted(set(sources)))
    words = f"{len(sources)} of them were published, against other graders: {published}."
    return ATTACKS.format(total=found["total"], rows=table(head, rows), published=words)


MADE = {"marked_class": marked_class, "attacks": attacks}


def main() -> int:
    for name, words in MADE.items():
        (FOLDER / f"{name}.md").write_text(words(read(name)), "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
