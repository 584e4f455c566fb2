"""Two recordings of one experiment: equal to the last digit, or it is said where they are not."""

import json
from pathlib import Path

import pytest
import torch

from experiments.__main__ import main
from experiments.machinery.compare import compare
from experiments.machinery.experiment import Experiment, Outcome, checksum
from experiments.machinery.files import half_precision, write_json
from experiments.machinery.recording import write_record

PLAIN, TURNED = {"model": "plain"}, {"model": "turned"}
EXPERIMENT = Experiment(
    what="A toy.",
    chosen_on="nothing",
    metrics={"size": "a number", "loss": "a curve", "angle": "of the turned one only"},
    conditions=[PLAIN, TURNED],
    seeds=range(3),
    run=lambda condition, seed, log, scale: Outcome({}),
    data=lambda: {"zeros": checksum(torch.zeros(2))},
    keep={"w": (PLAIN, 1)},
)


def recorded(folder: Path, seconds: float, shift: float = 0.0) -> Path:
    """Write a record of six runs; `shift` moves one weight."""
    results = []
    for condition, seed in EXPERIMENT.runs:
        metrics = {"size": 2.5 + seed, "loss": [3.0, 2.0, 1.0 / (seed + 1)], "seconds": seconds}
        if condition == TURNED:
            metrics["angle"] = 0.25
        one = {"condition": condition, "seed": seed, "metrics": metrics}
        results.append({**one, "losses": [], "machine": {"device": "test"}, "versions": {}})
    weights = {"w": half_precision({"a": torch.tensor([[1.0, 2.0, 3.0 + shift]])})}
    return write_record("toy", EXPERIMENT, results, weights, folder)


@pytest.fixture
def folders(tmp_path):
    kept, fresh = tmp_path / "kept", tmp_path / "fresh"
    recorded(kept, seconds=1.0)
    recorded(fresh, seconds=7.0)
    return kept, fresh


def test_equal_recordings_are_called_the_same_though_they_took_other_times(folders, capsys):
    kept, fresh = folders
    assert main(["toy", "--folder", str(kept), "--compare", str(fresh)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "toy: the same numbers",
        "  data          equal",
        "  runs          equal, 6",
        "  size          equal, 6 numbers",
        "  loss          equal, 18 numbers",
        "  angle         equal, 3 numbers",
        "  weights of w  equal, 3 numbers",
    ]


def move(metric, to):
    def change(record):
        record["runs"][3]["metrics"][metric] = to

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (move("size", 3.75), "size          differ by 0.25 at most, 6 numbers"),
        (move("loss", [3.0, 2.0, 0.5 + 1e-9]), "loss          differ by 1e-09 at most, 18 numbers"),
        (move("loss", [3.0, 2.0]), "loss          NOT COMPARABLE: another number of values"),
        (move("angle", None), "angle         NOT COMPARABLE: another number of values"),
        (lambda record: record["runs"].pop(), "runs          OTHER RUNS"),
        (lambda record: record["data"].clear(), "data          OTHER DATA"),
        (lambda record: record["weight_files"].clear(), "weights of w  NOT COMPARABLE"),
    ],
    ids=["number", "curve", "shorter curve", "absent", "run", "data", "weights"],
)
@pytest.mark.parametrize("which", [0, 1], ids=["kept", "fresh"])
def test_what_differs_is_named_on_whichever_side(folders, capsys, change, line, which):
    path = folders[which] / "toy.json"
    record = json.loads(path.read_text("utf-8"))
    change(record)
    write_json(path, record)
    same, lines = compare("toy", *folders)
    assert not same
    assert sum(found.startswith(line) for found in lines) == 1
    assert main(["--folder", str(folders[0]), "--compare", str(folders[1])]) == 1
    assert "toy: NOT THE SAME NUMBERS" in capsys.readouterr().out


def test_one_other_weight_is_seen(folders):
    recorded(folders[1], seconds=1.0, shift=0.5)
    same, lines = compare("toy", *folders)
    assert not same
    assert lines[-1] == "weights of w  differ by 0.5 at most, 3 numbers"


def test_a_folder_without_records_is_no_proof(folders, tmp_path, capsys):
    assert main(["--folder", str(folders[0]), "--compare", str(tmp_path)]) == 1
    assert "there is no record in" in capsys.readouterr().out
