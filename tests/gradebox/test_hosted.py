"""What goes to Gradescope and what comes back: points, words, and no hidden test. Nothing here was
run on Gradescope itself."""

import json
import subprocess
import sys
import zipfile

from classroom import MUTANT, fake_mark, make_package, notebook
from gradebox.assignment import read_assignment

from gradebox import cli, hosted


def made(tmp_path, data):
    path = tmp_path / "x.ipynb"
    path.write_bytes(data)
    package = make_package(tmp_path / "package.zip")
    return hosted.results(read_assignment(package), fake_mark(path, package))


def test_gradescope_gets_the_points_of_each_question(tmp_path):
    found = made(tmp_path, notebook(q2=MUTANT))
    assert [(one["score"], one["max_score"]) for one in found["tests"]] == [(10, 10.0), (10, 20.0)]
    assert "Marked by a person, later: Task q3." in found["output"]


def test_what_is_no_notebook_has_no_points_and_a_reason(tmp_path):
    found = made(tmp_path, b"{")
    assert found["score"] == 0
    assert "the notebook cannot be read. This file is no notebook." in found["output"]


def test_the_zip_holds_the_grader_the_package_and_scripts_that_start(tmp_path, capsys):
    package = make_package(tmp_path / "package.zip")
    path = tmp_path / "autograder.zip"
    assert cli.main(["--gradescope-zip", str(path), "--assignment", str(package)]) == 0
    assert "keep it private" in capsys.readouterr().out
    with zipfile.ZipFile(path) as opened:
        names = set(opened.namelist())
        opened.extractall(tmp_path / "source")
        assert opened.getinfo("run_autograder").external_attr >> 16 & 0o111
    wanted = {"setup.sh", "requirements.txt", "package.gradebox.zip", "packages/gradebox/cli.py"}
    assert wanted <= names
    assert not [name for name in names if "/recorded/" in name or "__pycache__" in name]
    for script in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", tmp_path / "source" / script], check=True)
    assert "torch==" in (tmp_path / "source/requirements.txt").read_text()
    assert "+" not in (tmp_path / "source/requirements.txt").read_text()


def test_without_a_package_there_is_no_zip(tmp_path, capsys):
    assert cli.main(["--gradescope-zip", str(tmp_path / "x.zip")]) == 2
    assert not (tmp_path / "x.zip").exists()
    assert "needs --assignment" in capsys.readouterr().err


def test_no_file_that_was_handed_in_stands_in_for_a_module(tmp_path):
    for folder in ("submission", "results"):
        (tmp_path / folder).mkdir()
    for name in ("json", "torch", "sitecustomize", "gradebox"):
        (tmp_path / f"submission/{name}.py").write_text("raise SystemExit('a file of a student')")
    script = (hosted.TEMPLATES / "gradescope_run_autograder").read_text()
    script = script.replace("/opt/gradebox/bin/python", sys.executable)
    script = script.replace("/autograder", str(tmp_path))
    subprocess.run(["bash", "-c", script], cwd=tmp_path / "submission", check=True)
    assert "no notebook" in json.loads((tmp_path / "results/results.json").read_text())["output"]
