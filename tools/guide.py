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

{notebooks} invented students handed in assignment 1 on {date}: {kinds}. With `--jobs {jobs}` on
{machine} they were marked in **{minutes:g} minutes**: {median_seconds:g} s for the median notebook,
{longest_seconds:g} s for the slowest, {memory_mb} MB in the largest process. (PyTorch {torch}. The
slow ones hold a training without an end.) The first of each kind in `grades.csv`, some columns of
it:

{rows}

And the page that {shown} gets, with one wrong answer:

```{{figure}} feedback.png
:name: fig-teach-feedback
:alt: A feedback page. {alt}
:width: 640px

The upper part of a feedback page: points for each question, then what the checks said.
```
"""
ATTACKS = """\
% Made by python -m tools.guide from attacks.json: run make attacks instead of editing.

The project's own tests try **{total} attacks** on the grader; `make attacks` repeats them on your
machine and prints each one. Every attack reaches its goal with a plain grader that runs the
notebook in its own process. The third column says how many fail as soon as the answer runs in a
process of its own and is compared outside of it; the fourth, how many it takes the sandbox to stop.

{rows}

{published}
"""


def marked_class(found: dict) -> str:
    """The measured class."""
    names = list(found["rows"][0])
    rows = table(names, ([shortened(row[name]) for name in names] for row in found["rows"]))
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kinds"].items())
    return CLASS.format(**{**found, "rows": rows, "kinds": kinds})


def table(names: list[str], rows: Iterable[list[object]]) -> str:
    """A table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def shortened(text: str) -> str:
    """A cell of a table: what would break it is quoted, what is long is cut."""
    text = text.replace("|", "\\|").replace("`", "'").replace('"', "'")
    return text if len(text) <= 90 else f"{text[:87]}..."


def read(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text("utf8"))


MADE = {"marked_class": marked_class}


def main() -> int:
    for name, words in MADE.items():
        (FOLDER / f"{name}.md").write_text(words(read(name)), "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
