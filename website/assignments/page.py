"""The book's page of an assignment: its public variant, without answers.

    python -m website.assignments.page      write book/classroom/ from assignments/ (then commit it)

The pages are committed, so that the book can be built without drawing anything; a test compares
them with their masters. No version stands in them: buttons lead to the notebook of the release.
"""

import sys
from pathlib import Path

from website.assignments.draw import PUBLIC, Secret
from website.assignments.marks import stub_of
from website.assignments.master import Master, Question
from website.assignments.notebooks import heading
from website.assignments.reader import read_master, read_name
from website.pages.contents import CHAPTER_AND_NAME
from website.pages.number import DEFINED, NUMBER
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = """\
---
notebook: {name}
---

<!-- Made by python -m website.assignments.page from assignments/{source}: change that file. -->
{typed}
# {title}

{count} questions, {points:g} points, about {minutes} minutes. Before this: {chapters}.

This is the public variant of the assignment, for everybody. The buttons above open it as a
notebook, which checks your answers as you go. The solutions are not on this site: in a copy of the
repository, `make assignment A={number}` writes them beside the notebook. If your course hands out a
notebook of its own, use that one: some layouts, orders and numbers in it are others.

{introduction}

```python
{setup}
```

{questions}
"""


LIST = """\
# Assignments

<!-- Made by python -m website.assignments.page from assignments/: change the masters there. -->

Each assignment asks for variants of what the chapters build: functions, classes and numbers, and
one or two answers in words. Nothing has to be looked at. Every question names its points, its
minutes and its difficulty. {{doc}}`The page for students <students>` says how to work on one.

| assignment | after | questions | minutes |
|---|---|---|---|
{rows}

What they are for:

{goals}
"""


def page_of(path: Path) -> str:
    """The text of the page."""
    master = public_master(path)
    questions = "\n\n".join(_question(question) for question in master.questions)
    introduction = "\n\n".join(master.introduction)
    return PAGE.format(
        name=master.name,
        source=path.name,
        typed=_typed_numbers(f"{introduction}\n{questions}"),
        title=master.title,
        count=len(master.questions),
        points=master.points,
        minutes=master.minutes,
        chapters=_chapters(master),
        number=path.stem[1:].partition("_")[0],
        introduction=introduction,
        setup="\n\n".join(master.setup),
        questions=questions,
    )


def _chapters(master: Master) -> str:
    return ", ".join(f"{{chapter}}`{CHAPTER_AND_NAME} <{one}>`" for one in master.chapters)


def _question(question: Question) -> str:
    parts = [heading(question), *question.prompt]
    if not question.manual:
        parts.append(f"```python\n{stub_of(question.solution).strip()}\n```")
    return "\n\n".join(parts)


def _typed_numbers(text: str) -> str:
    """The comment that the book's rules ask for: numbers that no cell computes."""
    found = {match["number"] for match in NUMBER.finditer(text) if not match["before"]} - DEFINED
    return f"\n% typed numbers: {', '.join(sorted(found))}\n" if found else ""


def list_of(masters: dict[Path, Master]) -> str:
    """The text of the page that lists all assignments, with what each one is about."""
    rows = [
        f"| {{doc}}`{path.stem}` | {_chapters(master)} "
        f"| {len(master.questions)} | {master.minutes} |"
        for path, master in masters.items()
    ]
    goals = [
        f"**{master.title}**\n\n" + "\n".join(f"- {q.objective}" for q in master.questions)
        for master in masters.values()
    ]
    return LIST.format(rows="\n".join(rows), goals="\n\n".join(goals))


def pages(root: Path) -> dict[Path, str]:
    """Where each page belongs, and what it should hold."""
    folder, paths = root / "book" / "classroom", sorted((root / "assignments").glob("a*.md"))
    found = {folder / path.name: page_of(path) for path in paths}
    listed = list_of({path: public_master(path) for path in paths})
    return {folder / "assignments.md": listed, **found}


def public_master(path: Path) -> Master:
    """The questions of the public variant, unproven."""
    return read_master(path, Secret(PUBLIC, read_name(path)).draw("variant 0"))


def main() -> int:
    for path, text in pages(read_settings(ROOT).root).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
