"""The students' notebooks of this build, solved, where only their first cell installed anything."""

import tempfile
from pathlib import Path

import nbformat
import pytest

from tools import colab_standin as standin
from tools.run_notebooks import install_as_a_reader_would, led_to, run_notebook, served
from website.assignments.notebooks import answer_source
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
SETTINGS = read_settings(ROOT)
EVERYTHING_PASSES = """
import contextlib, io, re

said = io.StringIO()
with contextlib.redirect_stdout(said):
    check.all()
counts = re.findall(r"(\\d+) of (\\d+) public", said.getvalue())
assert counts and all(passed == of for passed, of in counts), said.getvalue()
"""


@pytest.mark.site
@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_solved_in_colab_every_public_check_passes(public):
    notebook = nbformat.read(HTML / "notebooks" / f"{public.master.name}.ipynb", as_version=4)
    for question in public.master.questions:
        [cell] = [c for c in notebook.cells if question.name in c.metadata.get("tags", [])]
        cell.source = answer_source(question, solved=True)
    notebook.cells.append(nbformat.v4.new_code_cell(EVERYTHING_PASSES))
    with (
        standin.environment(ROOT) as python,
        tempfile.TemporaryDirectory() as folder,
        served(HTML) as address,
    ):
        scratch = Path(folder)
        env = standin.child_environment(python, scratch)
        here = led_to(address, {"solved": notebook}, SETTINGS)
        assert install_as_a_reader_would(here, python, scratch, env) is None
        assert run_notebook(here["solved"], "solved", python, scratch, env) is None
