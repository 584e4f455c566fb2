"""The search for a setting: where it ends, what its record keeps, and when a record is refused."""

import json
import math
import subprocess
from contextlib import nullcontext

import pytest
from toys import ROOT, command, results_of, trials_of

from experiments.machinery import above_baselines
from experiments.machinery.above_baselines import require_above_linear, require_beaten
from experiments.machinery.choose import Choice, decide, search
from experiments.machinery.experiment import Experiment, MustBeat, Outcome, load_experiment
from experiments.machinery.files import write_json
from experiments.machinery.recording import write_record
from experiments.machinery.verify import replay, verify
from vitbook.book.records import load_record

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


SEARCHES = {  # values in trials of half the length and of full length, the winner, is it an edge?
    "the two best at full length": ({"best": 2.1}, [1, 2, 4], [2, 4], (2, False)),
    "not the end: above": ({"best": 9.0}, [1, 2, 4, 8, 16], [8, 16], (8, False)),
    "not the end: below": ({"best": 0.45}, [1, 2, 4, 0.5, 0.25], [0.5, 0.25], (0.5, False)),
    "an edge at full length only": (
        {"best": 2.1, "full": 17},
        [1, 2, 4],
        [2, 4, 8, 16, 32],
        (16, False),
    ),
    "the limit": ({"best": 1e9}, [1, 2, 4, 8, 16, 32], [32, 16], (32, True)),
    "the last word": ({"best": 2.1, "full": 4}, [1, 2, 4], [2, 4, 8], (4, False)),
    "no finalists": (
        {"best": 2.1, "full": 4, "plan": {**PLAN, "finalists": 0}},
        [1, 2, 4],
        [],
        (2, False),
    ),
    "what diverged": ({"best": 100, "diverges": 3}, [1, 2, 4], [2, 1], (2, False)),
    "down, until one does not diverge": (
        {"best": 1, "diverges": 0.3},
        [1, 2, 4, 0.5, 0.25, 0.12],
        [0.25, 0.12],
        (0.25, False),
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_ends_where_neither_an_edge_nor_a_short_trial_decides(name):
    given, short, full, winner = SEARCHES[name]
    asked, found, _ = searched(**given)
    assert asked == [*((0.5, value) for value in short), *((1, value) for value in full)]
    assert found == {"condition": {"arm": "a"}, "value": winner[0], "at_edge": winner[1]}


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
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled

def losses(target, steps, rate, log):
    loss = 0.0
    for step in range(steps):
        loss = 1 / (step + 1) + (rate - target) ** 2
        log(loss)
    return loss

def trial(condition, seed, log, scale, *, length, rate):
    loss = losses(condition["target"], scaled(40 * length, scale), rate, log)
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


@pytest.mark.deep  # five processes; how they are stopped and go on: test_experiments.py
def test_the_runs_use_what_the_search_chose(toy, tmp_path):
    toy.write_text(TOY.replace('by="loss"', 'by="loss", finalists=0'))
    ended = subprocess.run(command(toy), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "target 5.0: rate 4\n" in ended.stdout
    record = load_record("toy", tmp_path / "out")
    assert record.choice["winners"] == [
        {"condition": {"target": 5.0}, "value": 4.0, "at_edge": False}
    ]
    trials = [(trial["length"], trial["value"]) for trial in record.trials]
    assert trials == [(0.5, 1), (0.5, 2), (0.5, 4), (0.5, 8)]
    assert {(trial["seed"], trial["steps"]) for trial in record.trials} == {(100, 20)}
    assert [trial["metrics"]["loss"] for trial in record.trials][2:] == [1 + 1 / 20, None]
    assert record.values("size", target=5.0) == [4 + 1 + 1 / 40]
    assert record.values("size", target="none") == [0.0]


def test_a_record_with_its_search_holds_after_an_edit_that_changes_nothing(recorded, toy):
    toy.write_text(TOY.replace("1 / (step + 1) + (rate", "1.0 / (step + 1) + (rate"))
    assert verify(str(toy), toy.parent) == (True, "holds: 3 runs of its golden replay are the same")
    assert replay(str(toy), toy.parent) == (True, "holds: 40 replayed losses are the same")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record["choice"]["winners"][0].update(value=2.0), "not what its trials sa"),
        (lambda record: record["trials"].pop(), "some are missing"),
        (
            lambda record: record["trials"][-1]["metrics"].update(loss=0.0),
            "not what its trials say",
        ),
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
    results, _ = results_of(experiment, decide(experiment.plan, trials))
    results[-1]["settings"] = {"rate": 2.0}
    with pytest.raises(ValueError, match=r"ran with \{'rate': 2.0\}, not with \{'rate': 4.0\}"):
        write_record("toy", experiment, results, {}, toy.parent, trials)
    assert not list(toy.parent.glob("*.json"))


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
        ({"conditions": [{"metric": 1}]}, "may not use the name 'metric'"),
        ({"replay": ({"a": 2}, 0)}, "no run of {'a': 2} with seed 0"),
        ({"keep": {"w": ({"a": 1}, 9)}}, "no run of {'a': 1} with seed 9"),
    ],
)
def test_an_experiment_whose_parts_do_not_fit_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        an_experiment(**given)


def results(condition, accuracy):
    plain = {"condition": condition, "machine": {"device": "x"}, "versions": {}, "losses": []}
    metrics = {"test_accuracy": accuracy, "seconds": 1.0}
    return [{**plain, "seed": seed, "metrics": metrics} for seed in range(2)]


@pytest.fixture
def linear(tmp_path):
    """A record of baselines: 80 % on images with the checksum "s"."""
    condition = {"data": "clothes", "model": "logistic regression"}
    checksums = {"clothes, train": "s", "clothes, test": "t"}
    experiment = an_experiment(
        metrics={"test_accuracy": "x"}, conditions=[condition], replay=None, data=lambda: checksums
    )
    write_record("baselines", experiment, results(condition, 0.8), {}, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("accuracies", "data", "words"),
    [
        ([0.86, 0.861, 0.859], {"clothes": "s"}, ""),
        ([0.79, 0.79], {"clothes": "s"}, "does not beat logistic regression on clothes"),
        ([0.78, 0.90], {"clothes": "s"}, "does not beat"),  # the seeds do not tell
        ([0.9, 0.9], {"clothes": "other"}, "not made with the same images"),
    ],
)
def test_a_whole_model_that_does_not_beat_the_linear_one_is_refused(
    linear, accuracies, data, words
):
    with pytest.raises(ValueError, match=words) if words else nullcontext():
        require_beaten(MustBeat({"model": "vit"}, data="clothes"), accuracies, data, linear)


def rows(*arms) -> list[dict]:
    """A summary: (condition, mean, low) of each arm."""
    keys = ("condition", "mean", "low")
    return [{"metric": "test_accuracy", **dict(zip(keys, arm, strict=True))} for arm in arms]


VIT, LINEAR = {"task": "t", "model": "vit"}, {"task": "t", "model": "logistic regression"}
ELSEWHERE = ({"task": "u", "model": "vit"}, 0.9, 0.9)
SINGLE = {"metric": "test_accuracy", "condition": {**VIT, "depth": 9}, "mean": 0.9}


@pytest.mark.parametrize(
    ("passes", "summary"),
    [
        (True, rows((VIT, 0.7, 0.65), (LINEAR, 0.6, 0.6))),
        (True, rows((VIT, 0.3, 0.3), ({**VIT, "steps": 9}, 0.7, 0.65), (LINEAR, 0.6, 0.6))),
        (True, rows((VIT, 0.3, 0.3))),  # nobody knows what a linear classifier gets there
        # the second
        (True, rows((VIT, 0.8, 0.5), ({**VIT, "depth": 9}, 0.7, 0.65), (LINEAR, 0.6, 0.6))),
        (True, rows((VIT, 1.0, 1.0), (LINEAR, 1.0, 1.0))),  # both solve it
        (False, rows((VIT, 0.5, 0.5), (LINEAR, 0.6, 0.6))),
        (False, rows((VIT, 0.7, 0.55), (LINEAR, 0.6, 0.6))),  # the seeds do not tell
        # one run beside several
        (False, [*rows((VIT, 0.7, 0.55), (LINEAR, 0.6, 0.6)), SINGLE]),
        (False, rows((VIT, 0.5, 0.5), (LINEAR, 0.6, 0.6), ELSEWHERE)),
        (False, rows((VIT, 0.5, 0.5), ({"task": "t", "rule": "logistic regression"}, 0.6, 0.6))),
    ],
)
def test_a_record_needs_an_arm_above_its_linear_classifier(passes, summary, linear):
    words = r"no arm of r, t beats logistic regression: the best, .*t"
    with nullcontext() if passes else pytest.raises(ValueError, match=words):
        require_above_linear({"name": "r", "summary": summary, "data": {}}, linear)


def test_a_record_without_a_linear_classifier_is_held_against_that_of_baselines(
    linear, monkeypatch
):
    monkeypatch.setitem(above_baselines.SETS, "clothes", "clothes")
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
    with pytest.raises(ValueError, match="refused"):
        write_record("toy", experiment, results({"a": 1}, 0.7), {}, tmp_path)
    assert not (tmp_path / "toy.json").exists()
