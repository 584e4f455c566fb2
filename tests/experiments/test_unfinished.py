"""Long experiments: finished runs survive a change of machine, none starts by surprise."""

import json
import subprocess

import pytest

from experiments import __main__ as program
from experiments.machinery import runner
from experiments.machinery.experiment import FOLDER, load_experiment
from experiments.machinery.fingerprint import digest, fingerprint
from experiments.machinery.worker import versions
from vitbook.book.records import load_record

SCRIPT = '''
"""A toy."""
from experiments.machinery.experiment import Experiment, Outcome
from experiments.machinery.long import LongExperiment

def run(condition, seed, log, scale):
    log(0.5)
    return Outcome({"size": 2.0})

EXPERIMENT = LongExperiment(
    what="A toy.", chosen_on="nothing", metrics={"size": "a number"},
    conditions=[{"a": 1}], seeds=[0, 1], run=run,
)
'''


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.delenv("VITBOOK_RUNS", raising=False)
    monkeypatch.setattr(runner, "UNFINISHED", tmp_path / "unfinished")
    monkeypatch.setattr(runner, "RUNS", tmp_path / "runs")
    return tmp_path


@pytest.fixture
def script(folders):
    path = folders / "toy.py"
    path.write_text(SCRIPT)
    return path


def folder_of(script, scale=1):
    return runner.runs_folder(str(script), fingerprint(script), scale)


def finish_one(script) -> None:
    """Leave the result of the first run as a worker does."""
    result = {"condition": {"a": 1}, "seed": 0, "settings": {}, "steps": 1, "losses": [0.5]}
    result["metrics"] = {"size": 7.0, "seconds": 1.0}
    result |= {"machine": {"device": "another"}, "versions": versions()}
    folder_of(script).mkdir(parents=True)
    (folder_of(script) / "0.json").write_text(json.dumps(result))


def test_results_of_a_long_experiment_lie_where_git_keeps_them(script, folders, monkeypatch):
    assert folder_of(script).parent == folders / "unfinished"
    assert folder_of(script).name == f"toy-{digest(fingerprint(script))}"
    assert folder_of(script, 0.1).parent == folders / "runs"  # a trial
    script.write_text(SCRIPT.replace("= LongExperiment(", "= Experiment("))
    assert folder_of(script).parent == folders / "runs"
    monkeypatch.setenv("VITBOOK_RUNS", str(folders / "elsewhere"))
    script.write_text(SCRIPT)
    assert folder_of(script).parent == folders / "elsewhere"


@pytest.mark.parametrize(
    ("name", "ignored"),
    [("0.json", False), ("4.safetensors", False), ("0.json.log", True), (".0.json.7.tmp", True)],
)
def test_git_keeps_results_and_weights_but_not_what_is_half_written(name, ignored):
    path = FOLDER / "unfinished" / "toy-0123" / name
    asked = subprocess.run(["git", "check-ignore", "-q", str(path)], cwd=FOLDER)
    assert asked.returncode == (0 if ignored else 1)


def test_another_machine_goes_on_and_the_results_go_once_they_are_recorded(script, folders):
    finish_one(script)
    program.main([str(script), "--folder", str(folders / "out")])
    record = load_record("toy", folders / "out")
    assert record.values("size", a=1).tolist() == [7.0, 2.0]  # the first was not run again
    assert len(record.machines) == 2
    assert not list((folders / "unfinished").iterdir())


def test_other_libraries_are_refused_before_the_first_run(script, folders):
    finish_one(script)
    path = folder_of(script) / "0.json"
    path.write_text(path.read_text().replace(versions()["torch"], "1.0"))
    with pytest.raises(SystemExit, match=r"0.json was made with .*1\.0"):
        program.main([str(script), "--folder", str(folders / "out")])
    assert len(list(folder_of(script).iterdir())) == 1


def test_only_a_long_experiment_that_was_begun_may_lack_its_record(script):
    with pytest.raises(ValueError, match="unfinished holds nothing of it"):
        runner.require_begun(str(script))
    folder_of(script).mkdir(parents=True)
    with pytest.raises(ValueError, match="unfinished holds nothing of it"):  # none is finished
        runner.require_begun(str(script))
    folder_of(script).rmdir()
    finish_one(script)
    runner.require_begun(str(script))
    before = digest(fingerprint(script))
    script.write_text(SCRIPT.replace("0.5", "0.25"))
    with pytest.raises(ValueError, match=f"holds {before} of it.*--verify .*toy.py. keeps"):
        runner.require_begun(str(script))
    script.write_text(SCRIPT.replace("= LongExperiment(", "= Experiment("))
    with pytest.raises(ValueError, match="has no record: record it, or declare"):
        runner.require_begun(str(script))


def verified(script, folders, capsys) -> tuple[int, str]:
    """What `--verify` returns and prints."""
    status = program.main(["--verify", str(script), "--folder", str(folders / "out")])
    return status, capsys.readouterr().out


def test_an_edit_that_changes_nothing_keeps_what_is_finished(script, folders, capsys):
    finish_one(script)
    old = folder_of(script)
    content = (old / "0.json").read_text()
    assert "1 finished results are of the present code" in verified(script, folders, capsys)[1]
    script.write_text(SCRIPT.replace("0.5", "0.25 + 0.25"))
    with pytest.raises(ValueError, match="has no record"):
        runner.require_begun(str(script))
    status, said = verified(script, folders, capsys)
    assert status == 0
    assert f"{old.name} is now {folder_of(script).name}" in said
    runner.require_begun(str(script))
    assert (folder_of(script) / "0.json").read_text() == content
    assert not old.exists()


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("log(0.5)", "log(0.50001)", "the replayed losses of 0 differ from step 1 on"),
        ("log(0.5)", "log(0.5); log(0.5)", "the replayed losses of 0 differ from step 2 on"),
        ("run=run", "run=run, steps=lambda c: 3", "0 took 1 steps, where now it takes 3"),
        ('[{"a": 1}]', '[{"a": 2}, {"a": 1}]', "nobody asks for 0 any more"),
    ],
)
def test_results_of_code_that_does_something_else_stay_where_they_are(
    script, folders, capsys, was, now, why
):
    finish_one(script)
    old = folder_of(script)
    script.write_text(SCRIPT.replace(was, now))
    status, said = verified(script, folders, capsys)
    assert status == 1
    assert f"STALE: the finished results in {old.name}: {why}" in said
    assert (old / "0.json").is_file()
    assert not folder_of(script).exists()


def test_the_shortest_of_the_finished_results_is_replayed(script, folders, capsys):
    finish_one(script)
    path = folder_of(script) / "0.json"
    longer = {**json.loads(path.read_text()), "seed": 1, "steps": 9, "losses": [7.0] * 9}
    (path.parent / "1.json").write_text(json.dumps(longer))
    script.write_text(SCRIPT.replace("0.5", "0.25 + 0.25"))
    assert verified(script, folders, capsys)[0] == 0
    assert len(list(folder_of(script).iterdir())) == 2


def test_what_was_never_begun_or_has_two_codes_is_not_verified(script, folders, capsys):
    status, said = verified(script, folders, capsys)
    assert (status, "neither a record nor finished results" in said) == (1, True)
    finish_one(script)
    script.write_text(SCRIPT.replace("0.5", "0.25 + 0.25"))
    finish_one(script)
    status, said = verified(script, folders, capsys)
    assert (status, "results of several codes" in said) == (1, True)


def test_a_long_experiment_starts_only_by_its_name(script, folders, monkeypatch, capsys):
    short = folders / "short.py"
    short.write_text(SCRIPT.replace("= LongExperiment(", "= Experiment("))
    monkeypatch.setattr(program, "all_names", lambda: [str(script), str(short)])
    recorded = []
    monkeypatch.setattr(program, "record", lambda name, *_: recorded.append(name))
    assert program.main(["--folder", str(folders / "out")]) == 0
    assert recorded == [str(short)]
    assert f"has to be named: make experiments NAME={script}" in capsys.readouterr().out
    program.main([str(script), "--folder", str(folders / "out")])
    assert recorded == [str(short), str(script)]


def test_each_unfinished_folder_belongs_to_a_long_experiment():
    for folder in (FOLDER / "unfinished").glob("*"):
        assert type(load_experiment(folder.name.rpartition("-")[0])).__name__ == "LongExperiment"
