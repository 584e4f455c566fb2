"""The proof of the notebooks: what it reports, and that its stand-in for Colab is what it says."""

import os
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import colab_standin as standin
from tools import run_notebooks
from tools.run_notebooks import (
    install_as_a_reader_would,
    kernel_manager,
    led_to,
    run_imports,
    run_notebook,
    run_script,
    served,
)
from website.pages.settings import read_settings

COLLECT = "from vitbook.book.checks import collect\ncollect()"
SET_UP = (
    "from vitcheck.notebook import set_up\nset_up()\n"
    "from vitcheck.exercises.scaled_dot_product import check_scale"
)
RAN = "open('ran.txt', 'w').write('on')"
HELD = "FAILED nb.ipynb, {}\nThis did not hold on this machine: x > {}; found 58.3 > {}."
# its cells, the solution that stands below the first, what is reported
PROOFS = {
    "good": (["x = 1", "assert x == 2"], "x = 2", []),
    "a solution fails": (
        ["x = 1", "y = 2"], "assert x == 2",
        ["FAILED nb.ipynb, cell 2, a solution\n", "AssertionError"],
    ),
    "a solution is wrong, and all runs on": (
        [SET_UP, RAN], "check_scale(lambda d, var_q, var_k: 1 / d)",
        ["FAILED nb.ipynb, cell 2, a solution\nmy_scale, "],
    ),
    "a cell fails": (
        ["x = 1", "x / 0"], "", ["FAILED nb.ipynb, cell 2\n", "x / 0", "ZeroDivisionError"]
    ),
    "checks do not hold, and all runs on": (
        [COLLECT + "\nx = 58.3", "assert x > 60", RAN], "assert x > 59",
        [HELD.format("cell 2, a solution", 59, 59) + "\n" + HELD.format("cell 3", 60, 60)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sources", "solution", "report"), PROOFS.values(), ids=PROOFS)
def test_the_proof_names_what_fails_in_a_notebook_or_its_solution(
    tmp_path, sources, solution, report
):
    """In this environment's Python, as the proof does it in the stand-in."""
    made = [new_code_cell(source) for source in sources]
    if solution:
        made.insert(1, new_code_cell(solution, metadata={"tags": ["solution"]}))
    notebook = new_notebook(cells=made)
    found = run_notebook(notebook, "nb", Path(sys.executable), tmp_path, dict(os.environ)) or ""
    assert found.startswith(report[0] if report else "")
    assert all(words in found for words in report)
    assert bool(found) == bool(report)
    assert bool([*tmp_path.rglob("ran.txt")]) == (RAN in sources)


def test_notebooks_that_start_side_by_side_write_their_kernels_descriptions_apart(tmp_path):
    managers = [kernel_manager(Path(sys.executable), tmp_path) for _ in range(2)]
    first, second = (manager.kernel_spec.resource_dir for manager in managers)
    assert first != second
    assert all(Path(sys.executable).samefile(m.kernel_spec.argv[0]) for m in managers)


def test_a_second_proof_waits_until_the_first_has_left_the_environment(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(standin, "make_environment", lambda root: root / "python")
    monkeypatch.setattr(standin, "uninstall", lambda python: said.append("left"))

    def second():
        with standin.environment(tmp_path):
            said.append("second")

    other = threading.Thread(target=second)
    with standin.environment(tmp_path) as python:
        assert python == tmp_path / "python"
        other.start()
        other.join(0.3)
        said.append("first")
    other.join()
    assert said == ["first", "left", "second", "left"]


def test_the_proof_of_a_script_shows_its_traceback(tmp_path):
    python = Path(sys.executable)
    assert run_script("x = 1", "good", python, tmp_path, {}) is None
    report = run_script("1 / 0", "bad", python, tmp_path, {})
    assert report.startswith("FAILED bad.py\n")
    assert "ZeroDivisionError" in report


def test_what_a_notebook_or_its_solution_imports_or_loads_must_be_there(tmp_path):
    def report(*sources, solution="import os"):
        solved = new_code_cell(solution, metadata={"tags": ["solution"]})
        made = [TITLE, new_code_cell(INSTALL), *map(new_code_cell, sources), solved]
        notebooks = {"a": new_notebook(cells=[TITLE, TITLE]), "b": new_notebook(cells=made)}
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return run_imports(notebooks, Path(sys.executable), tmp_path, env) or ""

    for name in ("vitbook/__init__.py", "vitbook/book/__init__.py", "vitbook/book/records.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("load_record = {'digits': 1}.__getitem__")
    assert report("import json\n1 / 0", "%time x\nload_record('digits')") == ""
    assert "FAILED ['b'], its" in report("if True:\n    from json import gone")
    assert "No module named 'gone'" in report("1", solution="import gone")
    assert "KeyError: 'pairs'" in report("load_record('pairs')")


INSTALL = "import importlib.metadata\nimportlib.metadata.distributions(name='os')"
TITLE = new_markdown_cell("# 1. Sums")


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        ({"torch==2", "vitbook @ https://x/vitbook.whl"}, None),
        ({"torch==2"}, "added []"),
        ({"torch==2", "vitbook==1", "timm==1"}, "added ['timm==1', 'vitbook==1']"),
        ({"torch==3", "vitbook==1"}, "removed ['torch==2']"),
    ],
)
def test_the_install_cell_may_add_our_package_and_nothing_else(monkeypatch, after, complaint):
    states = iter([{"torch==2"}, after])
    monkeypatch.setattr(standin, "freeze", lambda python: next(states))
    monkeypatch.setattr(run_notebooks, "run_notebook", lambda *arguments: None)
    notebooks = {"a": new_notebook(cells=[TITLE, new_code_cell(INSTALL)])}
    found = install_as_a_reader_would(notebooks, Path("python"), Path(), {})
    assert found is None if complaint is None else complaint in found


def test_notebooks_with_different_install_cells_are_refused():
    cells = [new_code_cell(INSTALL), new_code_cell(INSTALL + " ")]
    notebooks = {str(at): new_notebook(cells=[TITLE, cell]) for at, cell in enumerate(cells)}
    found = install_as_a_reader_would(notebooks, Path("python"), Path(), {})
    assert "do not share one install cell" in found


def test_the_package_comes_from_the_site_served_here(tmp_path):
    root = Path(__file__).parents[2]
    settings = read_settings(root)
    cell = f'package = "{settings.wheel_url}"'
    notebooks = {"a": new_notebook(cells=[TITLE, new_code_cell(cell)])}
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / settings.wheel).write_text("wheel")
    with served(tmp_path) as address:
        here = led_to(address, notebooks, settings)["a"].cells[1].source.split('"')[1]
        assert here.startswith(address)
        assert urllib.request.urlopen(here).read() == b"wheel"
    assert notebooks["a"].cells[1].source == cell


def test_the_child_gets_no_settings_of_this_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("JUPYTER_PATH", "elsewhere")
    env = standin.child_environment(Path(sys.executable), tmp_path)
    assert not {"PYTHONPATH", "JUPYTER_PATH"} & set(env)
    assert env["OMP_NUM_THREADS"] == "1"
