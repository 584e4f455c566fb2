"""What will not be there when a notebook is marked is said at home."""

import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from gradebox.sandbox import Limits
from nbclient import NotebookClient

from vitcheck.before_handing_in import CELL_SECONDS, RUN_SECONDS, THERE, warnings

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL"}

LOST = {
    "get_ipython().system('pip install pandas')": "a command of the machine",
    "get_ipython().run_cell_magic('bash', '', 'ls')": "a command of the machine",
    "import pandas as pd": "not there: pandas",
    "try:\n    import wandb\nexcept ImportError:\n    wandb = None": "not there: wandb",
    "text = open('notes.txt').read()": "reads a file",
    "x = np.load('x.npy')": "reads a file",
    "data = MNIST('data', download=True)": "needs a network",
    "model = ViT.from_pretrained('vit')": "needs a network",
    "def f():\n    return asyncio.run(g())": "needs a process or a socket",
    "subprocess.run(['ls'])": "needs a process or a socket",
    "x = await fetch()": "await outside of a function",
    "async with session:\n    x = 1": "await outside of a function",
    "all_of_it = [x async for x in stream]": "await outside of a function",
}
KEPT = [
    "import torch, math, os.path",
    "from torch import nn",
    "from . import mine",
    "get_ipython().run_cell_magic('time', '', 'x = 1')",
    "get_ipython().run_line_magic('matplotlib', 'inline')",
    "layer.load_state_dict(weights)",
    "data = MNIST('data', download=False)",
    "async def f():\n    await g()\n    return [x async for x in stream]",
    "def f(:",
    "",
]


@pytest.mark.parametrize("source", LOST)
def test_what_is_lost_is_named_with_its_reason(source):
    (line,) = warnings(["", source], {})
    assert LOST[source] in line


@pytest.mark.parametrize("source", KEPT)
def test_what_runs_everywhere_is_not_named(source):
    assert warnings(["", source], {1: CELL_SECONDS - 1}) == []


def test_what_takes_too_long_alone_or_together_is_named():
    (line,) = warnings(["", "train()\nmore()"], {1: 31.4})
    assert "train() ...  (the cell took 31 s)" in line
    assert warnings([], dict.fromkeys(range(6), 9.0)) == []
    (line,) = warnings([], dict.fromkeys(range(7), 9.0))
    assert line == "  the last cells  (all took 63 s, and have 60)"


def test_the_seconds_are_those_of_the_grader():
    assert (Limits().cell_s, Limits().run_s) == (CELL_SECONDS, RUN_SECONDS)


def test_what_the_package_needs_is_there():
    needed = tomllib.loads(PROJECT.read_text("utf8"))["project"]["dependencies"]
    names = [re.match(r"[\w-]+", line)[0] for line in needed]
    assert {IMPORTED_AS.get(name, name) for name in names} <= THERE


NOTEBOOK = """
from vitcheck import Checker
from vitcheck.cases import Assignment, Case, Question, to_text
case = Case("q1-1", "value", "answer", 3, 1, public=True, is_value=True)
question = Question("q1", "a number", 1, 1, 1, "count", ("answer",), cases=(case,))
check = Checker("a0", to_text(Assignment("a0", "v", "0", (question,))))
"""


@pytest.mark.slow
def test_a_running_notebook_says_after_the_questions_which_cells_will_not_run_there():
    hasty = "import vitcheck.before_handing_in as b\nb.CELL_SECONDS = 0.5"
    slow = "import time\ntime.sleep(0.8)  # train\nanswer = 3"
    sources = [NOTEBOOK, hasty, "!true", slow, "last = 1", "check.all()"]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    NotebookClient(notebook, timeout=120).execute()
    said = notebook.cells[-1].outputs[0].text.splitlines()
    assert said[0].startswith("q1: 1 of 1 public checks pass")
    assert "  !true  (a command of the machine)" in said
    assert said[-1] == "  import time ...  (the cell took 1 s)"
