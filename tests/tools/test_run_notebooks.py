"""The proof of the notebooks: what it reports, and that its stand-in for Colab is what it says."""

import os
import subprocess
import sys
from pathlib import Path

import colab_standin as standin
import pytest
import run_notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from run_notebooks import Passed, install_as_a_reader_would, run_notebook, run_script


def run(tmp_path, *sources, solution=""):
    """Run cells in this environment's Python, as the proof does in the stand-in."""
    made = [new_code_cell(source) for source in sources]
    if solution:
        text = f"<details>\n\n```python\n{solution}\n```\n\n</details>"
        made.insert(1, new_markdown_cell(text, metadata={"tags": ["solution"]}))
    notebook = new_notebook(cells=made)
    return run_notebook(notebook, "nb", Path(sys.executable), tmp_path, dict(os.environ))


def test_the_proof_passes_a_good_notebook_and_names_a_failing_solution(tmp_path):
    assert run(tmp_path, "x = 1", "assert x == 1", solution="x = 2") is None
    report = run(tmp_path, "x = 1", "y = 2", solution="assert x == 2")
    assert report.startswith("FAILED nb.ipynb, a solution")
    assert "AssertionError" in report


def test_the_proof_names_the_failing_cell_and_shows_its_traceback(tmp_path):
    report = run(tmp_path, "x = 1", "x / 0")
    assert report.startswith("FAILED nb.ipynb, cell 2\n")
    assert "x / 0" in report
    assert "ZeroDivisionError" in report


def test_the_proof_of_a_script_shows_its_traceback(tmp_path):
    python = Path(sys.executable)
    assert run_script("x = 1", "good", python, tmp_path, {}) is None
    report = run_script("1 / 0", "bad", python, tmp_path, {})
    assert report.startswith("FAILED bad.py\n")
    assert "ZeroDivisionError" in report


INSTALL = "import importlib.util\nimportlib.util.find_spec('vitbook')"
TITLE = new_markdown_cell("# 1. Sums")


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        ({"torch==2", "vitbook @ git+https://x"}, None),
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


@pytest.fixture
def repository(tmp_path):
    """A repository with a committed, a new and an ignored file."""
    root = tmp_path / "root"
    for name in ("src/kept.py", "src/new.py", "data/ignored.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / ".gitignore").write_text("data/")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "src/kept.py"], cwd=root, check=True)
    return root


def test_the_release_holds_the_working_tree_without_ignored_files(repository, tmp_path):
    clone = standin.release_clone(repository, "v7", tmp_path / "clone")
    shown = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "v7"], cwd=clone, capture_output=True, text=True
    )
    assert shown.stdout.split() == [".gitignore", "src/kept.py", "src/new.py"]


def test_git_reads_the_release_from_the_clone_in_the_childs_environment(
    repository, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("JUPYTER_PATH", "elsewhere")
    clone = standin.release_clone(repository, "v7", tmp_path / "clone")
    address = "https://github.com/somebody/no-such-book"
    env = standin.child_environment(Path(sys.executable), tmp_path, {address: clone})
    listed = subprocess.run(
        ["git", "ls-remote", "--tags", address], env=env, capture_output=True, text=True
    )
    assert listed.stdout.strip().endswith("refs/tags/v7")
    assert not {"PYTHONPATH", "JUPYTER_PATH"} & set(env)
    assert env["OMP_NUM_THREADS"] == "1"


def test_what_passed_is_remembered_until_something_it_depends_on_changes(tmp_path):
    (tmp_path / "src").mkdir()
    python = tmp_path / ".venv-colab" / "bin" / "python"
    python.parent.mkdir(parents=True)
    notebook, other = (new_notebook(cells=[new_code_cell(text, id="a")]) for text in "xy")
    passed = Passed(tmp_path, python)
    assert not passed.has(("a", "ipynb"), notebook)
    passed.add(("a", "ipynb"), notebook)
    again = Passed(tmp_path, python)
    assert again.has(("a", "ipynb"), notebook)
    assert not again.has(("a", "py"), notebook)
    assert not again.has(("a", "ipynb"), other)
    (tmp_path / "src" / "part.py").write_text("x = 1")
    assert not Passed(tmp_path, python).has(("a", "ipynb"), notebook)
