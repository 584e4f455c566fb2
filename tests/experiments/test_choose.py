"""The search for a setting: where it ends, what its record keeps, and when a record is refused."""

import json
import math
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from experiments.__main__ import main
from experiments.machinery import beats
from experiments.machinery.beats import require_above_linear, require_beaten
from experiments.machinery.choose import Choice, decide, search
from experiments.machinery.experiment import Experiment, MustBeat, Outcome, load_experiment
from experiments.machinery.files import write_json
from experiments.machinery.golden import golden_of
from experiments.machinery.recording import write_record
from experiments.machinery.verify import replay, verify
from experiments.machinery.worker import tried
from vitbook.book.records import load_record

ROOT = Path(__file__).resolve().parents[2]
PLAN = Choice(grid={"rate": (1.0, 2.0, 4.0)}, trial=dict, by="loss", limit=6).plan([{"arm": "a"}])


def searched(best: float, plan: dict = PLAN, full: float | None = None, diverges=math.inf):
    """Value -> loss lowest at `best` (in trials of full length at `full`); (plan, its trials)."""

    def do(wanted):
        done = []
        for trial in wanted:
            target = full if full and trial["length"] == 1 else best
            loss = abs(math.log2(trial["value"] / target))
            done.append({**trial, "metrics": {"loss": None if trial["value"] > diverges else loss}})
        return done

    trials = search(plan, do)
    return [(trial["length"], trial["value"]) for trial in trials], decide(plan, trials)[0], trials


def test_an_interior_optimum_ends_with_the_two_best_at_full_length():
    asked, winner, _ = searched(best=2.1)
    assert asked == [(0.5, 1.0), (0.5, 2.0), (0.5, 4.0), (1.0, 2.0), (1.0, 4.0)]
    assert winner == {"condition": {"arm": "a"}, "value": 2.0, "at_edge": False}


@pytest.mark.parametrize(("best", "beyond"), [(9.0, [8, 16]), (0.45, [0.5, 0.25])])
def test_an_edge_that_wins_is_not_the_end(best, beyond):
    asked, winner, _ = searched(best)
    assert [value for length, value in asked if length == 0.5] == [1, 2, 4, *beyond]
    assert winner["value"] == beyond[0]
    assert not winner["at_edge"]


def test_an_edge_that_wins_at_full_length_only_is_not_the_end_either():
    asked, winner, _ = searched(best=2.1, full=17)
    assert asked[3:] == [(1, 2), (1, 4), (1, 8), (1, 16), (1, 32)]
    assert winner["value"] == 16


def test_the_limit_ends_the_search_and_says_so():
    asked, winner, _ = searched(best=1e9)
    assert [value for length, value in asked if length == 0.5] == [1, 2, 4, 8, 16, 32]
    assert (winner["value"], winner["at_edge"]) == (32, True)


def test_full_length_has_the_last_word_and_without_finalists_the_short_trials_have():
    assert searched(best=2.1, full=4)[1]["value"] == 4
    asked, winner, _ = searched(best=2.1, full=4, plan={**PLAN, "finalists": 0})
    assert len(asked) == 3
    assert winner["value"] == 2


def test_what_diverged_never_wins():
    asked, winner, _ = searched(best=100, diverges=3)
    assert asked[:3] == [(0.5, 1), (0.5, 2), (0.5, 4)]
    assert (winner["value"], winner["at_edge"]) == (2, False)
    assert searched(best=1, diverges=0.3)[1]["value"] == 0.25  # down, until one does not diverge


def test_each_arm_has_a_search_of_its_own_and_conditions_may_share_one():
    choice = Choice(grid={"rate": (1.0, 2.0)}, trial=dict, arm=lambda c: {"arm": c["arm"]})
    plan = choice.plan([{"arm": a, "warmup": w} for a in "ab" for w in (True, False)])
    assert plan["arms"] == [{"arm": "a"}, {"arm": "b"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda trials: trials[:-1], "some are missing"),
        (lambda trials: [{**t, "seed": 7} for t in trials], "some are missing"),
        (lambda trials: [*trials, {**trials[0], "value": 0.1}], "some that it did not want"),
        (lambda trials: [*trials, trials[0]], "some are missing"),
    ],
    ids=["one less", "another seed", "one more", "one twice"],
)
def test_trials_that_are_not_those_of_the_search_are_refused(change, words):
    trials = searched(best=2.1)[2]
    with pytest.raises(ValueError, match=words):
        decide(PLAN, change(trials))


TOY = '''
"""A toy."""
import time
from pathlib import Path
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled

HERE = Path(__file__)

def losses(target, steps, rate, log):
    loss = 0.0
    for step in range(steps):
        loss = 1 / (step + 1) + (rate - target) ** 2
        log(loss)
    return loss

def trial(condition, seed, log, scale, *, length, rate):
    if scale == 1:  # in earnest
        with open(HERE.with_name("started"), "a") as file:
            file.write(f"{condition['target']} {length} {rate}\\n")
    loss = losses(condition["target"], scaled(40 * length, scale), rate, log)
    while rate == 4.0 and HERE.with_name("stop").exists():
        time.sleep(0.1)
    if rate > 6:
        raise ArithmeticError("training diverged")
    return {"loss": loss}

def run(condition, seed, log, scale, rate=None):
    if rate is None:
        return Outcome({"size": 0.0})
    steps = scaled(40, scale)
    return Outcome({"size": rate + losses(condition["target"], steps, rate, log)})

EXPERIMENT = Experiment(
    what="A toy.", chosen_on="trials", metrics={"size": "a number"},
    once=[{"target": "none"}], conditions=[{"target": 5.0}], seeds=[0],
    run=run, settings={"steps": 40}, replay=({"target": 5.0}, 0), steps=lambda condition: 40,
    choose=Choice(grid={"rate": (1.0, 2.0, 4.0)}, trial=trial, by="loss"),
)
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_RUNS", str(tmp_path / "runs"))
    path = tmp_path / "toy.py"
    path.write_text(TOY)
    return path


def command(script: Path, *options: str) -> list[str]:
    out = str(script.parent / "out")
    return [sys.executable, "-m", "experiments", str(script), "--folder", out, *options]


def started(script: Path) -> list[str]:
    path = script.with_name("started")
    return path.read_text().splitlines() if path.is_file() else []


@pytest.mark.deep  # seven processes; tests/experiments/test_experiments.py stops a run in make test
def test_a_search_that_was_stopped_goes_on_and_the_runs_use_what_it_chose(toy, tmp_path):
    toy.write_text(TOY.replace('by="loss"', 'by="loss", finalists=0'))
    toy.with_name("stop").touch()
    options = {"cwd": ROOT, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    runner = subprocess.Popen(command(toy, "--choose"), **options)
    try:
        end = time.monotonic() + 500
        while len(started(toy)) < 3:  # two run side by side, and the third does not end
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.1)
        runner.send_signal(signal.SIGINT)
        said = runner.communicate()[1]
    finally:
        runner.kill()
        toy.with_name("stop").unlink()
    assert "of 3 trials are kept, the same command goes on" in said
    assert "Traceback" not in said
    kept = int(said.split(" of 3 trials")[0].split()[-1])
    assert kept in (1, 2)

    ended = subprocess.run(command(toy), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "target 5.0: rate 4\n" in ended.stdout
    record = load_record("toy", tmp_path / "out")
    assert record.choice["winners"] == [
        {"condition": {"target": 5.0}, "value": 4.0, "at_edge": False}
    ]
    trials = [(trial["length"], trial["value"]) for trial in record.trials]
    assert trials == [(0.5, 1), (0.5, 2), (0.5, 4), (0.5, 8)]
    assert len(started(toy)) == len(trials) + 3 - kept  # nothing that was kept is done again
    assert {(trial["seed"], trial["steps"]) for trial in record.trials} == {(100, 20)}
    assert [trial["metrics"]["loss"] for trial in record.trials][2:] == [1 + 1 / 20, None]
    assert record.values("size", target=5.0) == [4 + 1 + 1 / 40]
    assert record.values("size", target="none") == [0.0]


def test_the_search_alone_prints_every_trial_and_writes_nothing(toy, monkeypatch, capsys):
    def found(name, **options):
        assert options["choose_only"]
        return trials_of(load_experiment(name)), []

    monkeypatch.setattr("experiments.__main__.run_all", found)
    assert main([str(toy), "--choose", "--folder", str(toy.parent)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 6
    assert said[0] == "target 5.0: 1 after 20 steps: loss 16.0500"
    assert said[3] == "target 5.0: 8 after 20 steps: diverged"
    assert not list(toy.parent.glob("*.json"))


WHERE = {"machine": {"device": "test"}, "versions": {"torch": torch.__version__}}


def results_of(experiment: Experiment, winners: list[dict]) -> list[dict]:
    results = []
    for condition, seed in experiment.runs:
        losses, settings = [], experiment.chosen_for(condition, winners)
        outcome = experiment.run(condition, seed, losses.append, 1.0, **settings)
        one = {"condition": condition, "seed": seed, "settings": settings, "losses": losses[:20]}
        results.append({**one, **WHERE, "metrics": {**outcome.metrics, "seconds": 0.1}})
    return results


def trials_of(experiment: Experiment) -> list[dict]:
    def do(wanted):
        done = []
        for one in wanted:
            losses, settings = [], {experiment.choose.setting: one["value"]}
            given = (one["condition"], one["seed"], one["length"], settings)
            metrics = {**tried(experiment, *given, losses.append, 1.0), "seconds": 0.1}
            kept = {"metrics": metrics, "steps": len(losses), "losses": losses[:20]}
            done.append({**one, **WHERE, **kept})
        return done

    return search(experiment.plan, do)


@pytest.fixture
def recorded(toy):
    """The toy's record, written without processes of its own."""
    experiment = load_experiment(str(toy))
    trials = trials_of(experiment)
    winners = decide(experiment.plan, trials)
    results, golden = results_of(experiment, winners), golden_of(experiment, winners)
    return write_record("toy", experiment, results, {}, toy.parent, trials, golden)


def test_a_record_with_its_search_holds_after_an_edit_that_changes_nothing(recorded, toy):
    toy.write_text(TOY.replace("1 / (step + 1) + (rate", "1.0 / (step + 1) + (rate"))
    assert verify(str(toy), toy.parent) == (True, "holds: 3 runs of its golden replay are the same")
    assert replay(str(toy), toy.parent) == (True, "holds: 40 replayed losses are the same")


def prettier(record):
    trial = next(t for t in record["trials"] if (t["value"], t["length"]) == (2.0, 1.0))
    trial["metrics"]["loss"] = 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record["choice"]["winners"][0].update(value=2.0), "not what its trials sa"),
        (lambda record: record["trials"].pop(), "some are missing"),
        (prettier, "not what its trials say"),
    ],
)
def test_a_record_whose_choice_is_not_that_of_its_trials_is_refused(recorded, toy, change, words):
    record = json.loads(recorded.read_text())
    change(record)
    write_json(recorded, record)
    holds, why = verify(str(toy), toy.parent)
    assert not holds
    assert why.startswith("REFUSED")
    assert words in why


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("scaled(40 * length, scale), rate,", "scaled(40, scale), rate + 1,", "trial of target"),
        ("steps, rate, log)})", "steps, rate + 1, log)})", "target 5.0, rate 4.0: loss is"),
        ("(1.0, 2.0, 4.0)", "(1.0, 2.0)", "the search is another one now"),
    ],
    ids=["the trials", "the runs", "the grid"],
)
def test_a_changed_script_makes_the_record_stale(recorded, toy, old, new, words):
    assert old in TOY
    toy.write_text(TOY.replace(old, new))
    holds, why = verify(str(toy), toy.parent)
    assert not holds
    assert why.startswith("STALE: ")
    assert words in why


def test_runs_with_another_value_than_the_winner_write_no_record(toy):
    experiment = load_experiment(str(toy))
    trials = trials_of(experiment)
    results = results_of(experiment, decide(experiment.plan, trials))
    results[-1]["settings"] = {"rate": 2.0}
    with pytest.raises(ValueError, match=r"ran with \{'rate': 2.0\}, not with \{'rate': 4.0\}"):
        write_record("toy", experiment, results, {}, toy.parent, trials)
    assert not list(toy.parent.glob("*.json"))


def test_two_recordings_are_compared_trial_by_trial(recorded, toy, capsys):
    again = toy.parent / "again"
    again.mkdir()
    content = json.loads(recorded.read_text())
    write_json(again / "toy.json", content)
    assert main(["toy", "--folder", str(toy.parent), "--compare", str(again)]) == 0
    assert "  trials  equal, 5 numbers" in capsys.readouterr().out
    content["trials"][0]["metrics"]["loss"] += 0.5
    write_json(again / "toy.json", content)
    assert main(["toy", "--folder", str(toy.parent), "--compare", str(again)]) == 1
    assert "  trials  differ by 0.5 at most, 5 numbers" in capsys.readouterr().out


def test_the_script_of_the_readme_searches_and_runs(tmp_path):
    text = (ROOT / "experiments" / "README.md").read_text()
    block = text.split("   ```python\n", 1)[1].split("   ```\n")[0]
    script = tmp_path / "depth.py"
    script.write_text(textwrap.dedent("   " + block.removeprefix("   ")))
    experiment = load_experiment(str(script))
    assert {"depth": 1} in experiment.plan["arms"]
    losses = []
    given = ({"depth": 1}, 100, 0.5, {"learning_rate": 1e-3})
    metrics = tried(experiment, *given, losses.append, 0.02)
    assert len(losses) == 3
    assert metrics.keys() == {"validation_loss", "validation_accuracy"}
    outcome = experiment.run({"depth": 1}, 0, losses.append, 0.02, learning_rate=1e-3)
    assert outcome.metrics.keys() == experiment.metrics.keys()


GRID = {"rate": (1.0, 2.0)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"grid": {}}, "one setting"),
        ({"grid": {"a": (1, 2), "b": (1, 2)}}, "one setting"),
        ({"grid": {"a": (2.0, 1.0)}}, "two values or more, ascending"),
        ({"grid": {"a": (0.0, 1.0)}}, "two values or more, ascending"),
        ({"grid": GRID, "length": 1.5}, "length must be above 0"),
        ({"grid": GRID, "limit": 1}, "limit must be at least"),
    ],
)
def test_a_search_that_makes_no_sense_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        Choice(trial=dict, **given)


def an_experiment(**given) -> Experiment:
    plain = {"conditions": [{"a": 1}], "seeds": [0, 1], "replay": ({"a": 1}, 0)}
    words = {"what": "x", "chosen_on": "x", "metrics": {}}
    return Experiment(run=lambda *_: Outcome({}), **{**plain, **words, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"choose": Choice(grid=GRID, trial=dict, seed=1)}, "a seed of its own"),
        ({"choose": Choice(grid=GRID, trial=dict), "replay": None}, "to replay"),
        ({"must_beat": MustBeat({"a": 2}, "digits")}, "no condition {'a': 2}"),
    ],
)
def test_an_experiment_that_does_not_fit_its_search_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        an_experiment(**given)


@pytest.fixture
def linear(tmp_path):
    """A record of baselines: 80 % on images with the checksum "s"."""
    condition = {"data": "clothes", "model": "logistic regression"}
    experiment = Experiment(
        what="x", chosen_on="x", metrics={"test_accuracy": "x"}, conditions=[condition],
        seeds=range(2), run=lambda *_: Outcome({}),
        data=lambda: {"clothes, train": "s", "clothes, test": "t"},
    )  # fmt: skip
    plain = {"condition": condition, "machine": {"device": "x"}, "versions": {}, "losses": []}
    metrics = {"test_accuracy": 0.8, "seconds": 1.0}
    results = [{**plain, "seed": seed, "metrics": metrics} for seed in range(2)]
    write_record("baselines", experiment, results, {}, tmp_path)
    return tmp_path


MUST = MustBeat({"model": "vit"}, data="clothes")


def test_a_whole_model_above_the_linear_one_passes(linear):
    require_beaten(MUST, [0.86, 0.861, 0.859], {"clothes": "s"}, linear)


@pytest.mark.parametrize(
    ("accuracies", "data", "words"),
    [
        ([0.79, 0.79], {"clothes": "s"}, "does not beat logistic regression on clothes"),
        ([0.78, 0.90], {"clothes": "s"}, "does not beat"),  # the seeds do not tell
        ([0.9, 0.9], {"clothes": "other"}, "not made with the same images"),
    ],
)
def test_one_that_does_not_beat_it_is_refused(linear, accuracies, data, words):
    with pytest.raises(ValueError, match=words):
        require_beaten(MUST, accuracies, data, linear)


def rows(*arms) -> list[dict]:
    """A summary: (condition, mean, low) of each arm."""
    keys = ("condition", "mean", "low")
    return [{"metric": "test_accuracy", **dict(zip(keys, arm, strict=True))} for arm in arms]


VIT, LINEAR = {"task": "t", "model": "vit"}, {"task": "t", "model": "logistic regression"}
ELSEWHERE = ({"task": "u", "model": "vit"}, 0.9, 0.9)
SINGLE = {"metric": "test_accuracy", "condition": {**VIT, "depth": 9}, "mean": 0.9}


@pytest.mark.parametrize(
    "summary",
    [
        rows((VIT, 0.7, 0.65), (LINEAR, 0.6, 0.6)),
        rows((VIT, 0.3, 0.3), ({**VIT, "steps": 9}, 0.7, 0.65), (LINEAR, 0.6, 0.6)),
        rows((VIT, 0.3, 0.3)),  # nobody knows what a linear classifier gets there
        rows((VIT, 0.8, 0.5), ({**VIT, "depth": 9}, 0.7, 0.65), (LINEAR, 0.6, 0.6)),  # the second
        rows((VIT, 1.0, 1.0), (LINEAR, 1.0, 1.0)),  # both solve it
    ],
)
def test_a_record_with_an_arm_above_its_linear_classifier_passes(summary, linear):
    require_above_linear({"name": "r", "summary": summary, "data": {}}, linear)


@pytest.mark.parametrize(
    "summary",
    [
        rows((VIT, 0.5, 0.5), (LINEAR, 0.6, 0.6)),
        rows((VIT, 0.7, 0.55), (LINEAR, 0.6, 0.6)),  # the seeds do not tell
        [*rows((VIT, 0.7, 0.55), (LINEAR, 0.6, 0.6)), SINGLE],  # one run beside several
        rows((VIT, 0.5, 0.5), (LINEAR, 0.6, 0.6), ELSEWHERE),
        rows((VIT, 0.5, 0.5), ({"task": "t", "rule": "logistic regression"}, 0.6, 0.6)),
    ],
)
def test_one_that_stays_below_it_is_refused(summary, linear):
    with pytest.raises(
        ValueError, match=r"no arm of r, t beats logistic regression: the best, .*t"
    ):
        require_above_linear({"name": "r", "summary": summary, "data": {}}, linear)


def test_a_record_without_a_linear_classifier_is_held_against_that_of_baselines(
    linear, monkeypatch
):
    monkeypatch.setitem(beats.SETS, "clothes", "clothes")
    record = {"name": "r", "summary": rows(({"model": "vit"}, 0.7, 0.7)), "data": {"mine": "s"}}
    with pytest.raises(ValueError, match=r"no arm of r beats .* has 0\.7000, .* against 0\.8000"):
        require_above_linear(record, linear)
    require_above_linear({**record, "data": {"mine": "other images"}}, linear)
    require_above_linear({**record, "summary": rows(({"model": "vit"}, 0.9, 0.85))}, linear)


def test_a_refused_record_is_not_written(linear, tmp_path, monkeypatch):
    monkeypatch.setattr("vitbook.book.records.FOLDER", linear)
    experiment = an_experiment(
        metrics={"test_accuracy": "x"}, must_beat=MustBeat({"a": 1}, "clothes"),
        data=lambda: {"clothes": "s"}, replay=None,
    )  # fmt: skip
    plain = {"condition": {"a": 1}, "machine": {}, "versions": {}, "losses": []}
    results = [
        {**plain, "seed": seed, "metrics": {"test_accuracy": 0.7, "seconds": 1.0}}
        for seed in (0, 1)
    ]
    with pytest.raises(ValueError, match="refused"):
        write_record("toy", experiment, results, {}, tmp_path)
    assert not (tmp_path / "toy.json").exists()
