"""The public variant of an assignment as the files that the site offers, without solutions."""

from pathlib import Path

from website.assignments.draw import PUBLIC
from website.assignments.notebooks import student_notebook
from website.assignments.prove import draw_assignment
from website.notebooks.notebook import write_notebook, write_script
from website.pages.settings import Settings


def student_files(path: Path, settings: Settings) -> dict[str, str]:
    """File name -> content: the notebook and the same as a script."""
    drawn = draw_assignment(path, PUBLIC, settings.version)
    notebook = student_notebook(drawn, settings)
    name = drawn.master.name
    return {
        f"{name}.ipynb": write_notebook(notebook),
        f"{name}.py": write_script(notebook, settings),
    }
