"""Everything that is made from a drawn assignment, in one folder."""

import shutil
from pathlib import Path

import nbformat

from website.assignments.foreign import nbgrader_notebook, otter_notebook
from website.assignments.notebooks import solution_notebook, student_notebook
from website.assignments.package import write_package
from website.assignments.prove import Drawn
from website.pages.settings import Settings

README = """\
{title}, variant {variant}, made with {release}.

For students:
  {name}.ipynb                     hand out this notebook, and nothing else of this folder
  {wheel}
      beside it where there is no network: from the folder notebooks/ of the course's site

For you (these hold answers and hidden checks; keep them private):
  {name}.solutions.ipynb           the solutions; its checks are all checks
  {name}.gradebox.zip              for the grader:
      gradebox SUBMISSIONS --assignment {name}.gradebox.zip --out marks
      gradebox --gradescope-zip says how it serves Gradescope
  {name}.rubrics.md                what to look for in the questions that a person reads

For other systems. NOT TAMPER-PROOF: there, checks run in the process of the code they check, which
can change them. Two lines in a notebook of zeros are enough for full marks.
  {name}.otter.ipynb               a master:
      otter assign {name}.otter.ipynb dist
  {name}.nbgrader.ipynb            a source, to be put into source/{name}/:
      nbgrader generate_assignment {name}
"""


def write_all(drawn: Drawn, settings: Settings, out: Path) -> Path:
    """Write the folder of a drawn assignment; an older one of the same name is replaced."""
    folder, part = out / drawn.name, out / f".{drawn.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    notebooks = {
        "": student_notebook(drawn, settings),
        ".solutions": solution_notebook(drawn, settings),
        ".otter": otter_notebook(drawn),
        ".nbgrader": nbgrader_notebook(drawn),
    }
    for kind, notebook in notebooks.items():
        text = nbformat.writes(notebook) + "\n"
        (part / f"{drawn.name}{kind}.ipynb").write_text(text, encoding="utf-8")
    write_package(drawn, part / f"{drawn.name}.gradebox.zip")
    (part / f"{drawn.name}.rubrics.md").write_text(_rubrics(drawn), encoding="utf-8")
    about = {"title": drawn.master.title, "name": drawn.name, "variant": drawn.cases.variant}
    about |= {"release": settings.version, "wheel": settings.wheel}
    (part / "README.txt").write_text(README.format(**about), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return folder


def _rubrics(drawn: Drawn) -> str:
    parts = [f"# {drawn.master.title}: questions that a person reads"]
    for question in drawn.master.questions:
        if question.manual:
            parts.append(f"## {question.name}: {question.title} ({question.points:g} points)")
            parts += [*question.prompt, f"**Rubric**\n\n{question.rubric}"]
            parts.append(f"**An answer with all points**\n\n{question.solution.strip()}")
    return "\n\n".join(parts) + "\n"
