"""The machinery: nothing done is lost, and a record holds while the code computes the same."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from toys import ROOT, command, started

from experiments import __main__ as program
from experiments.machinery import runner
from experiments.machinery.above_baselines import require_above_linear
from experiments.machinery.experiment import all_names, load_experiment
from experiments.machinery.files import half_precision, write_json
from experiments.machinery.golden import golden_path
from experiments.machinery.recording import write_record
from experiments.machinery.verify import replay, stamp, verify
from experiments.machinery.worker import versions
from vitbook.book.records import FOLDER, load_record

TOY = '''
"""A toy."""
import os, time
from pathlib import Path
import torch
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.image_sets import image_set
from vitbook.book.intervals import student_interval

FACTOR = 0.9

def run(condition, seed, log, scale):
    """Shrink a tensor."""
    if scale == 1:  # in earnest
        with open(Path(__file__).with_name("started"), "a") as file:
            file.write(f"{condition['bias']} {seed}\\n")
            if "VITBOOK_DATA" in os.environ:
                assert len(image_set("mnist", "train", 0.02).labels) == 200
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
def runs(toy):
    return toy.parent / "runs"


def start_and_stop(script: Path, stop: signal.Signals) -> str:
    """Stop the runner while it does its last two runs; return what it said."""
    script.with_name("stop").touch()
    options = {"cwd": ROOT, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    runner = subprocess.Popen(command(script), **options)
    try:
        end = time.monotonic() + 500
        while len(started(script)) < 4:  # two run side by side, so two have ended
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.1)
        runner.send_signal(stop)
        return runner.communicate()[1]
    finally:
        runner.kill()
        end = time.monotonic() + 3
        while lives(runner.pid) and time.monotonic() < end:  # its workers end by themselves
            time.sleep(0.1)
        script.with_name("stop").unlink()


def lives(group: int) -> bool:
    """Is any process of the group left?"""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.deep
def test_a_killed_experiment_goes_on_and_repeats_nothing_that_was_done(
    toy, runs, tmp_path, small_image_files
):
    start_and_stop(toy, signal.SIGKILL)
    assert not (tmp_path / "out" / "toy.json").exists()
    assert len(list(runs.glob("toy/[0-9]*.json"))) == 2
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
    golden = json.loads((tmp_path / "out/golden/toy.json").read_text())
    assert golden["constants"]["toy.FACTOR"] == 0.9  # of the code that was run
    assert not list(runs.iterdir())  # from scratch next time


def test_ctrl_c_ends_the_workers_and_says_what_is_kept(toy, runs, tmp_path):
    said = start_and_stop(toy, signal.SIGINT)
    assert "2 of 4 runs are kept, the same command goes on" in said
    assert "Traceback" not in said
    assert len(list(runs.glob("toy/[0-9]*.json"))) == 2  # nobody went on


def test_a_failing_run_prints_its_traceback_and_writes_no_record(toy, runs, tmp_path):
    toy.write_text(TOY.replace("w = FACTOR * w", "w = FACTOR * (w @ w if seed else w)"))
    alone = command(toy, "--workers", "1")
    ended = subprocess.run(alone, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "mat1 and mat2 shapes" in ended.stderr
    assert "a run failed" in ended.stderr
    assert not (tmp_path / "out").exists()


def verified(toy, was="", now="") -> tuple[bool, str]:
    """What is said of the record, after an edit of the script."""
    assert was in TOY
    toy.write_text(TOY.replace(was, now) if was else TOY)
    return verify(str(toy), toy.parent)


def replayed(toy) -> tuple[bool, str]:
    return replay(str(toy), toy.parent)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"""Shrink a tensor."""', '"""Make a tensor smaller."""'),
        ("FACTOR * w", "w * FACTOR"),
        ("import os, time", "import os, time, math  # for later"),
        ('what="A toy."', 'what="A toy, in other words."'),
    ],
)
def test_a_record_holds_while_its_golden_replay_is_the_same(recorded, toy, was, now):
    assert verified(toy, was, now) == (True, "holds: 2 runs of its golden replay are the same")
    assert replayed(toy) == (True, "holds: 20 replayed losses are the same")


def test_a_script_edited_within_a_second_at_the_same_length_is_read_anew(toy):
    for count in (2, 3):
        toy.write_text(TOY.replace("range(2)", f"range({count})"))
        os.utime(toy, (1e9, 1e9))
        assert list(load_experiment(str(toy)).seeds) == list(range(count))


MOVED = "5 numbers of its golden replay moved: bias 0.5: loss is "


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("FACTOR = 0.9", "FACTOR = 0.90001", MOVED),
        ('{"steps": 25}', '{"steps": 25, "now": "said"}', "other settings: now (--stamp"),
        ("range(2)", "range(3)", "the conditions or the seeds are others now"),
        ("[FIRST, SECOND]", "[FIRST]", "the conditions or the seeds are others now"),
        ("lambda condition: 25", "lambda condition: 30", "30 updates instead of 25"),
    ],
)
def test_a_record_of_another_declaration_or_of_other_numbers_is_stale(
    recorded, toy, was, now, words
):
    before = recorded.read_bytes()
    holds, why = verified(toy, was, now)
    assert not holds
    assert why.startswith("STALE: ")
    assert words in why
    if words == MOVED:
        assert replayed(toy) == (False, "STALE: the losses of a run differ from step 1 on")
    assert recorded.read_bytes() == before


def test_a_stamp_says_what_moved_and_brings_words_and_settings_over(recorded, toy):
    assert stamp(str(toy), toy.parent) == []
    other = TOY.replace("FACTOR = 0.9", "FACTOR = 0.8").replace('{"steps": 25}', '{"steps": "25"}')
    toy.write_text(other)
    found = stamp(str(toy), toy.parent)
    assert found[0] == "settings in other words"
    assert found[1].startswith("bias 0.5: loss is ")
    assert verify(str(toy), toy.parent)[0]
    assert load_record("toy", toy.parent).settings == {"steps": "25"}
    assert load_record("toy", toy.parent).runs  # its numbers are those that were measured


def test_a_stamp_needs_a_name_and_a_record_of_the_same_runs(recorded, toy, capsys):
    with pytest.raises(SystemExit):
        program.main(["--stamp", "--folder", str(toy.parent)])
    assert "--stamp needs a NAME" in capsys.readouterr().err
    toy.write_text(TOY.replace("range(2)", "range(3)"))
    with pytest.raises(ValueError, match="has to be recorded again"):
        stamp(str(toy), toy.parent)
    recorded.unlink()
    with pytest.raises(ValueError, match="has no record"):
        stamp(str(toy), toy.parent)


def test_timings_are_dated_and_never_stale_by_an_edit(recorded, toy):
    toy.write_text(TOY.replace("replay=", "timing=True, replay=").replace("0.9", "0.8"))
    date = load_record("toy", toy.parent).date
    said = f"measures time: it was so on {date}, with torch {torch.__version__}"
    assert verify(str(toy), toy.parent) == (True, said)


def test_a_replay_without_its_data_says_so(recorded, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_DATA", str(tmp_path / "nowhere"))
    needing = '    image_set("mnist", "test")\n'
    toy.write_text(TOY.replace("    torch.manual_seed(seed)\n", needing))
    holds, why = replayed(toy)
    assert not holds
    assert why.startswith("NOT REPLAYED: it lacks its data: this experiment")
    assert "python -m experiments.machinery.image_sets" in why


def test_verify_exits_with_1_and_names_what_is_stale(monkeypatch, capsys):
    answers = {"a": (True, "holds"), "b": (False, "STALE: because")}
    monkeypatch.setattr(program, "verify", lambda name, folder: answers[name])
    assert program.main(["--verify", "a"]) == 0
    assert program.main(["--verify", "a", "b"]) == 1
    assert "b: STALE: because" in capsys.readouterr().out


def test_what_other_code_or_other_libraries_began_is_not_gone_on_with(toy, runs):
    folder, experiment = runs / "toy", load_experiment(str(toy))
    runner.require_same_code(folder, experiment)
    runner.require_same_code(folder, experiment)
    toy.write_text(TOY.replace("FACTOR = 0.9", "FACTOR = 0.8"))
    with pytest.raises(SystemExit, match=r"was begun by other code .*or delete the folder"):
        runner.require_same_code(folder, load_experiment(str(toy)))
    path = folder / runner.GOLDEN
    path.write_text(path.read_text().replace(versions()["torch"], "1.0"))
    with pytest.raises(SystemExit, match=r"toy was begun with .*1\.0.* no record may mix them"):
        runner.require_same_code(folder, experiment)


def test_a_trial_is_one_run_here_and_now_and_writes_nothing(toy, runs, capsys):
    assert program.main([str(toy), "--scale", "0.2", "--folder", str(toy.parent)]) == 0
    assert "bias 0.5, seed 0: 5 losses" in capsys.readouterr().out
    assert not list(toy.parent.glob("*.json"))
    assert not runs.exists()


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
        write_record("toy", experiment, [], {"w": bytes(1_000_001)}, toy.parent)


def test_what_declares_no_experiment_is_none_and_a_name_is_given_once(monkeypatch, tmp_path):
    monkeypatch.setattr("experiments.machinery.experiment.FOLDER", tmp_path)
    for path in ("one/depth.py", "one/shared.py", "machinery/width.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("" if "shared" in path else "\nEXPERIMENT = 1\n")
    assert all_names() == ["depth"]
    (tmp_path / "two").mkdir()
    shutil.copyfile(tmp_path / "one/depth.py", tmp_path / "two/depth.py")
    with pytest.raises(ValueError, match=r"two experiments have one name: .*depth\.py"):
        all_names()


NAMES = all_names()
TIMINGS = [name for name in NAMES if not golden_path(name).is_file()]


# 3 to 15 seconds each; the other mixings are those of mixing_pilot and mixing_places
LONG = {"transfer", "batch_rates", "cheaper_attention", "cifar_maps", "mixing_pairs"}
LONG |= {"mixing_recall", "mixing_pointer", "mixing_longer", "mixing_pictures"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.deep if n in LONG else ()) for n in NAMES]
)
def test_every_record_is_what_the_present_code_computes(name):
    holds, why = verify(name, FOLDER)
    assert holds, f"{name}: {why}"
    require_above_linear(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_that_an_experiment_declares_is_measured_and_finite(name):
    record, experiment = load_record(name), load_experiment(name)
    for metric in experiment.metrics:
        found = [run["metrics"][metric] for run in record.runs if metric in run["metrics"]]
        assert found
        assert all(np.isfinite(np.asarray(one, dtype=float)).all() for one in found)
    if name not in TIMINGS:
        runs = json.loads(golden_path(name).read_text())["runs"]
        kept = [kept["metrics"] for run, kept in runs.items() if "trial of" not in run]
        assert {metric for metrics in kept for metric in metrics} == experiment.metrics.keys()


@pytest.mark.parametrize("name", TIMINGS)
def test_an_experiment_that_measures_time_runs(name, capsys):
    assert load_experiment(name).timing
    assert program.main([name, "--scale", "0.02"]) == 0
