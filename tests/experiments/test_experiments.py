"""The machinery: nothing done is lost, stale is told from unchanged, each script still runs."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.machinery import fingerprint as fingerprints
from experiments.machinery import recording
from experiments.machinery import verify as verifying
from experiments.machinery.beats import require_above_linear
from experiments.machinery.choose import decide, search
from experiments.machinery.experiment import Experiment, Outcome, all_names, load_experiment
from experiments.machinery.files import half_precision, write_json
from experiments.machinery.fingerprint import fingerprint
from experiments.machinery.recording import write_record
from experiments.machinery.runner import require_begun
from experiments.machinery.verify import verify
from experiments.machinery.worker import tried
from vitbook.book.records import load_record
from vitbook.layers.patches import patchify

ROOT = Path(__file__).resolve().parents[2]
TOY = '''
"""A toy."""
import os, time
from pathlib import Path
import torch
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from vitbook.book.intervals import student_interval

FACTOR = 0.9

def run(condition, seed, log, scale):
    """Shrink a tensor."""
    with open(Path(__file__).with_name("started"), "a") as file:
        file.write(f"{condition['bias']} {seed}\\n")
    torch.manual_seed(seed)
    w = torch.randn(3, 2)
    for _ in range(scaled(25, scale)):
        w = FACTOR * w
        log(w.square().sum() + condition["bias"])
    while seed == 1 and Path(__file__).with_name("stop").exists():
        time.sleep(0.1)
    return Outcome({"size": float(w.norm()), "threads": torch.get_num_threads()}, {"w": w})

FIRST, SECOND = {"bias": 0.5}, {"bias": 1.0}
EXPERIMENT = Experiment(
    what="A toy.", chosen_on="nothing", metrics={"size": "norm", "threads": "torch threads"},
    conditions=[FIRST, SECOND], seeds=range(2), run=run,
    data=lambda: {"zeros": checksum(torch.zeros(3))}, settings={"steps": 25},
    replay=(FIRST, 0), keep={"w": (FIRST, 1)}, steps=lambda condition: 25,
)
'''


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.py"
    path.write_text(TOY)
    return path


def command(script: Path, *options: str) -> list[str]:
    out = str(script.parent / "out")
    return [sys.executable, "-m", "experiments", str(script), "--folder", out, *options]


def started(script: Path) -> list[str]:
    path = script.with_name("started")
    return path.read_text().splitlines() if path.is_file() else []


def wait_for(condition, seconds: float = 500) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def start_and_stop(script: Path, stop: signal.Signals) -> str:
    """Stop the runner while it does its last two runs; return what it said."""
    script.with_name("stop").touch()
    runner = subprocess.Popen(
        command(script), cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        wait_for(lambda: len(started(script)) == 4)  # two run side by side, so two have ended
        runner.send_signal(stop)
        return runner.communicate()[1]
    finally:
        runner.kill()
        time.sleep(3)  # workers of a killed runner end by themselves
        script.with_name("stop").unlink()


def test_a_killed_experiment_goes_on_and_repeats_nothing_that_was_done(toy, runs, tmp_path):
    start_and_stop(toy, signal.SIGKILL)
    assert not (tmp_path / "out" / "toy.json").exists()
    assert len(list(runs.glob("toy-*/*.json"))) == 2
    ended = subprocess.run(command(toy), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "toy.json" in ended.stdout
    assert started(toy).count("0.5 0") == 1
    assert started(toy).count("1.0 0") == 1
    assert len(started(toy)) == 6
    record = load_record("toy", tmp_path / "out")
    assert len(record.runs) == 4
    assert set(record.values("threads", bias=0.5)) == {1.0}
    torch.manual_seed(1)
    expected = torch.randn(3, 2) * 0.9**25
    torch.testing.assert_close(record.weights()["w"], expected, rtol=1e-3, atol=1e-6)
    assert list(record.data) == ["zeros"]
    assert not list(runs.iterdir())  # from scratch next time


def test_ctrl_c_ends_the_workers_and_says_what_is_kept(toy, runs, tmp_path):
    said = start_and_stop(toy, signal.SIGINT)
    assert "2 of 4 runs are kept, the same command goes on" in said
    assert "Traceback" not in said
    assert len(list(runs.glob("toy-*/*.json"))) == 2  # nobody went on


def test_a_failing_run_prints_its_traceback_and_writes_no_record(toy, runs, tmp_path):
    toy.write_text(TOY.replace("w = FACTOR * w", "w = FACTOR * w @ w"))
    ended = subprocess.run(command(toy), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "mat1 and mat2 shapes" in ended.stderr
    assert "a run failed" in ended.stderr
    assert not (tmp_path / "out").exists()


def make_record(script: Path) -> Path:
    """Write the toy's record without processes of its own."""
    experiment = load_experiment(str(script))
    results, weights = [], {}
    for condition, seed in experiment.runs:
        losses = []
        outcome = experiment.run(condition, seed, losses.append, 1.0)
        results.append(
            {
                "condition": condition,
                "seed": seed,
                "metrics": {**outcome.metrics, "seconds": 0.1},
                "losses": [float(loss) for loss in losses][:20],
                "machine": {"device": "test"},
                "versions": {"torch": torch.__version__},
            }
        )
        if (condition, seed) in experiment.keep.values():
            weights["w"] = half_precision(outcome.weights)
    hashes = fingerprint(script)
    return write_record("toy", experiment, results, hashes, weights, script.parent)


@pytest.fixture
def recorded(toy, monkeypatch):
    path = make_record(toy)
    monkeypatch.setattr(verifying, "script_of", lambda name: toy)
    monkeypatch.setattr(verifying, "load_experiment", lambda name: load_experiment(str(toy)))
    return path


def test_unchanged_code_holds_without_a_replay(recorded, toy):
    count = len(started(toy))
    holds, why = verify("toy", toy.parent)
    assert holds
    assert "unchanged" in why
    assert len(started(toy)) == count


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "# a comment\n" + text.replace("0.9", "0.90"),
        lambda text: text.replace('"""Shrink a tensor."""', '"""Make a tensor smaller."""'),
        lambda text: text.replace('    """Shrink a tensor."""\n', ""),
        lambda text: text.replace("FACTOR * w", "(\n            FACTOR * w\n        )"),
    ],
)
def test_comments_layout_and_docstrings_do_not_count(recorded, toy, edit):
    assert edit(TOY) != TOY
    toy.write_text(edit(TOY))
    assert verify("toy", toy.parent) == (True, "holds: the code is unchanged")


def test_other_code_with_equal_losses_is_stamped_anew(recorded, toy):
    edited = TOY.replace("FACTOR * w", "w * FACTOR").replace(
        '{"steps": 25}', '{"steps": 25, "now": "said"}'
    )
    toy.write_text(edited)
    holds, why = verify("toy", toy.parent, stamp=False)
    assert holds
    assert "20 replayed losses are equal" in why
    assert "stamped" not in why
    assert "stamped anew" in verify("toy", toy.parent)[1]
    assert verify("toy", toy.parent) == (True, "holds: the code is unchanged")
    assert load_record("toy", toy.parent).runs
    assert load_record("toy", toy.parent).settings == {"steps": 25, "now": "said"}


def test_other_losses_are_stale_and_the_file_and_step_are_named(recorded, toy):
    toy.write_text(TOY.replace("FACTOR = 0.9", "FACTOR = 0.9001"))
    before = recorded.read_bytes()
    holds, why = verify("toy", toy.parent)
    assert not holds
    assert why.startswith("STALE: changed: toy.py; the replayed losses differ from step 1 on")
    assert recorded.read_bytes() == before


def test_what_cannot_be_replayed_is_stale_after_any_change(recorded, toy):
    record = json.loads(recorded.read_text())
    write_json(recorded, {**record, "replay": None})
    assert verify("toy", toy.parent)[0]
    toy.write_text(TOY.replace("0.9", "0.8"))
    holds, why = verify("toy", toy.parent)
    assert not holds
    assert "cannot be replayed" in why


def test_a_replay_without_its_data_is_not_verified_and_says_so(
    recorded, toy, tmp_path, monkeypatch
):
    monkeypatch.setenv("VITBOOK_DATA", str(tmp_path / "nowhere"))
    needing = "    from experiments.machinery.image_sets import image_set\n"
    needing += '    image_set("mnist", "test")\n'
    toy.write_text(TOY.replace("    torch.manual_seed(seed)\n", needing))
    before = recorded.read_bytes()
    holds, why = verify("toy", toy.parent)
    assert not holds
    assert why.startswith("NOT VERIFIED: changed: toy.py")
    assert "; the replay lacks its data: this experiment" in why
    assert "python -m experiments.machinery.image_sets" in why
    assert recorded.read_bytes() == before


def test_verify_exits_with_1_and_names_what_is_stale(tmp_path, monkeypatch, capsys):
    from experiments import __main__ as program

    answers = {"a": (True, "holds"), "b": (False, "STALE: because")}
    monkeypatch.setattr(program, "verify", lambda name, folder: answers[name])
    assert program.main(["--verify", "a"]) == 0
    assert program.main(["--verify", "a", "b"]) == 1
    assert "b: STALE: because" in capsys.readouterr().out


def test_a_fingerprint_follows_imports_and_notices_a_change_behind_them(tmp_path, monkeypatch):
    package = tmp_path / "vitbook"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "1"')
    (package / "a.py").write_text("from vitbook.data import digits\n")
    (package / "data" / "__init__.py").write_text("from .more import x\n")
    (package / "data" / "more.py").write_text("x = 1\n")
    (package / "data" / "digits.py").write_text("import torch\n")
    (package / "unused.py").write_text("")
    script = tmp_path / "script.py"
    script.write_text("def run():\n    import vitbook.a\n")
    monkeypatch.setattr(fingerprints, "PACKAGE", package)
    before = fingerprint(script)
    inside = ["a", "data/__init__", "data/digits", "data/more"]
    assert list(before) == ["script.py", *(f"vitbook/{name}.py" for name in inside)]

    (package / "__init__.py").write_text('__version__ = "2"')
    (package / "unused.py").write_text("y = 2")
    assert fingerprint(script) == before
    (package / "data" / "more.py").write_text("x = 2\n")
    after = fingerprint(script)
    assert [name for name in after if after[name] != before[name]] == ["vitbook/data/more.py"]


def test_a_string_that_is_no_docstring_counts(tmp_path):
    script = tmp_path / "script.py"
    hashes = []
    for text in ('x = "one"\n', 'x = "two"\n', '"""one"""\nx = "one"\n', "x = 1", "x = 1.0"):
        script.write_text(text)
        hashes.append(fingerprint(script)["script.py"])
    assert hashes[0] == hashes[2]
    assert len(set(hashes)) == 4


def test_files_are_whole_or_absent_and_nan_is_refused(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": [{"b": 1}, {"b": 2}], "c": []})
    assert json.loads(path.read_text()) == {"a": [{"b": 1}, {"b": 2}], "c": []}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text())["c"] == []
    assert list(tmp_path.iterdir()) == [path]


def test_weights_that_do_not_fit_are_refused(toy):
    with pytest.raises(ValueError, match=r"weights big do not fit into torch.float16"):
        half_precision({"big": torch.tensor([1e6]), "small": torch.ones(1)})
    experiment = load_experiment(str(toy))
    with pytest.raises(ValueError, match="1000001 bytes, more than 1000000"):
        write_record("toy", experiment, [], {}, {"w": bytes(1_000_001)}, toy.parent)


def nothing(condition, seed, log, scale):
    return Outcome({})


BAD_INPUT = [
    ("reserved", {"conditions": [{"metric": 1}]}, "may not use the name 'metric'"),
    ("replay", {"replay": ({"a": 2}, 0)}, "no run of {'a': 2} with seed 0"),
    ("kept seed", {"keep": {"w": ({"a": 1}, 9)}}, "no run of {'a': 1} with seed 9"),
]


@pytest.mark.parametrize(
    ("change", "words"), [b[1:] for b in BAD_INPUT], ids=[b[0] for b in BAD_INPUT]
)
def test_bad_input_is_named(change, words):
    given = {"conditions": [{"a": 1}], "seeds": [0], "run": nothing} | change
    with pytest.raises(ValueError, match=words):
        Experiment(what="x", chosen_on="x", metrics={}, **given)


def test_an_unknown_experiment_is_named_with_those_that_exist():
    with pytest.raises(ValueError, match=r"no experiment 'digitz'; there are: .*matching_pairs"):
        load_experiment("digitz")


SHRUNKEN = 0.02
LARGE = 10  # conditions; a larger table is thinned


def thinned(experiment: Experiment) -> Experiment:
    """Of a large table enough conditions that every value of every setting is run once."""
    conditions, seen = [], set()
    asked = [condition for condition, _ in experiment.keep.values()]
    asked += experiment.replay[:1] if experiment.replay else []
    for condition in experiment.conditions:
        values = {(key, repr(value)) for key, value in condition.items()}
        if len(experiment.conditions) <= LARGE or condition in asked or not values <= seen:
            conditions.append(condition)
            seen |= values
    return replace(experiment, conditions=conditions, must_beat=None)


@pytest.mark.parametrize("name", all_names())
def test_every_experiment_runs_shrunken_and_fills_a_record(
    name, tmp_path, small_image_files, monkeypatch
):
    torch.set_num_threads(1)
    # Whether it beats what it has to beat, a shrunken run does not tell.
    monkeypatch.setattr(recording, "require_above_linear", lambda record: None)
    experiment = thinned(load_experiment(name))
    if choice := experiment.choose:  # what two steps find decides nothing: the grid, no further
        (grid,) = choice.grid.values()
        experiment = replace(experiment, choose=replace(choice, limit=len(grid)))
    conditions = [*experiment.once, *experiment.conditions]
    seed, plain = experiment.seeds[0], {"machine": {"device": "test"}, "versions": {}}

    def shrunken_trials(wanted):
        done = []
        for one in wanted:
            losses, job = [], {**one, "settings": {experiment.choose.setting: one["value"]}}
            metrics = {**tried(experiment, job, losses.append, SHRUNKEN), "seconds": 0.0}
            kept = {"metrics": metrics, "losses": losses, "steps": len(losses)}
            done.append({**one, **plain, **kept})
        return done

    trials = search(experiment.plan, shrunken_trials) if experiment.choose else []
    winners = decide(experiment.plan, trials) if experiment.choose else []
    results = []
    for condition in conditions:
        losses, settings = [], experiment.chosen_for(condition, winners)
        outcome = experiment.run(condition, seed, losses.append, SHRUNKEN, **settings)
        assert outcome.metrics.keys() <= experiment.metrics.keys()
        if (condition, seed) in experiment.keep.values():
            assert half_precision(outcome.weights)
        if experiment.replay and experiment.replay[0] == condition:
            assert len(losses) >= 2
        metrics = {**outcome.metrics, "seconds": 0.0}
        one = {"condition": condition, "seed": seed, "settings": settings, "metrics": metrics}
        results.append({**one, **plain, "losses": losses})
    write_record(name, experiment, results, {}, {}, tmp_path, trials)
    record = load_record(name, tmp_path)
    assert record.conditions == conditions
    measured = {metric for run in record.runs for metric in run["metrics"]}
    assert measured >= experiment.metrics.keys()  # every declared number is measured somewhere
    for metric in experiment.metrics:
        run = next(run for run in record.runs if metric in run["metrics"])
        assert np.isfinite(record.values(metric, **run["condition"])).all()


@pytest.mark.parametrize("name", all_names())
def test_every_experiment_has_a_record_that_still_holds(name):
    from vitbook.book.records import FOLDER

    if not (FOLDER / f"{name}.json").is_file():
        require_begun(name)
        return
    holds, why = verify(name, FOLDER, stamp=False)
    assert holds, f"{name}: {why}"
    require_above_linear(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    said = json.loads(json.dumps(load_experiment(name).settings))
    assert load_record(name).settings == said  # pages rebuild models from them


def test_painting_over_a_patch_changes_that_patch_only_and_leaves_no_glyph():
    load_experiment("matching_pairs")
    module = sys.modules["experiment_matching_pairs"]
    pairs = module.matching_pairs(6, seed=3, noise=0.0)
    partner = pairs.glyph_patches(8)[:, 1]  # (n, 16)
    hidden = module.hide(pairs, partner, seed=0)
    assert hidden.shape == pairs.images.shape
    patches = patchify(hidden, 8)  # (n, 16, 64)
    assert (patches[partner] == 0).all()
    torch.testing.assert_close(patches[~partner], patchify(pairs.images, 8)[~partner])
