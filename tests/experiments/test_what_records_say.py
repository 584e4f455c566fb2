"""What one record takes from another, and what the package or a page relies on in it.

That a record is what its script computes is the golden replay's business (`test_experiments.py`).
"""

import shlex
import sys

import pytest

from experiments.full_sets import tested
from experiments.full_sets.recipe import best
from experiments.machinery.experiment import load_experiment
from experiments.token_mixing import mixing_places
from experiments.vit_design import block_ablation as ablation
from experiments.vit_design import block_ablation_pointer
from vitbook.book.records import load_record
from vitbook.command import parser, train
from vitbook.command.recipes import settings_of

SCRIPTS = ("full_sets", "full_sets_long", "small_networks")
for name in SCRIPTS:
    load_experiment(name)
full_sets, long, small_networks = (sys.modules[f"experiment_{name}"] for name in SCRIPTS)
MENDED, PUBLISHED = "2 sides, centred", "10000"


def images(record, leave="no set of this name"):
    return {k: v for k, v in load_record(record).data.items() if not k.startswith(leave)}


@pytest.mark.parametrize("record", ["digits", "pooling", "recipe", "small_networks"])
def test_small_records_saw_the_images_of_the_baselines(record):
    ours = images(record, leave="mnist" if record == "small_networks" else "no set of this name")
    assert ours
    assert ours.items() <= images("baselines").items()


def test_records_of_whole_sets_saw_the_same_images():
    whole = {k.replace(" whole,", ","): v for k, v in images("baselines").items() if "whole" in k}
    for record in ("whole_networks", "full_sets_best"):
        assert images(record) == images("full_sets") == whole


def test_no_choice_was_made_at_the_edge_of_its_grid():
    record = load_record("baselines")
    for name in {condition["data"] for condition in record.conditions}:
        one = {"data": name, "model": "logistic regression"}
        rates, trials = (
            record.values(key, **one) for key in ("learning_rate", "learning_rates_tried")
        )
        for rate, tried in zip(rates, trials, strict=True):
            assert tried[:, 0].min() < rate < tried[:, 0].max()


@pytest.mark.parametrize("record", ["full_sets_best", "whole_networks"])
def test_a_search_on_whole_sets_ended_inside_what_it_tried(record):
    winners = load_record(record).choice["winners"]
    assert winners
    assert not any(winner["at_edge"] for winner in winners)


def test_only_the_cnns_of_the_shorter_trainings_still_want_a_larger_rate():
    """Eight rates were tried for each of the two: as opponents they may be a little too weak."""
    record = load_record("small_networks")
    winners = record.choice["winners"]
    assert len(winners) == len(small_networks.EXPERIMENT.conditions)
    edges = [winner["condition"] for winner in winners if winner["at_edge"]]
    assert {(way["data"], way["model"]) for way in edges} == {
        (small_networks.NUMBERS, small_networks.CNN),
        ("10,000 of fashion-mnist", small_networks.CNN),
    }
    for way in edges:
        assert sum(t["condition"] == way for t in record.trials) == record.choice["limit"]


def test_every_network_beats_the_linear_classifier_when_it_is_trained_long_enough():
    record = load_record("small_networks")
    for name, steps in small_networks.STEPS.items():
        linear = load_record("baselines") if name != small_networks.NUMBERS else record
        mark = linear.mean("test_accuracy", data=name, model=small_networks.LINEAR)
        for model in (small_networks.MLP, small_networks.CNN):
            got = record.interval("test_accuracy", data=name, model=model, steps=max(steps))
            assert got.low > mark, (name, model)


def test_on_whole_sets_both_networks_beat_the_linear_classifier():
    record, linear = load_record("whole_networks"), load_record("baselines")
    for condition in record.conditions:
        mark = linear.mean("test_accuracy", data=condition["data"], model="logistic regression")
        assert record.interval("test_accuracy", **condition).low > mark


@pytest.mark.parametrize(
    ("record", "condition", "table", "other", "low", "high"),
    [
        ("sincos_base", {"patch_size": 7}, MENDED, PUBLISHED, 0, 1),
        ("sincos_base", {"patch_size": 4}, MENDED, PUBLISHED, 0, 1),
        ("sincos_large", {}, MENDED, PUBLISHED, -0.005, 1),
        ("sincos_large", {}, MENDED, "learned", 0, 1),
        ("sincos_large", {}, PUBLISHED, "learned", 0, 1),
        ("sincos_large", {}, MENDED, "none", 0.3, 1),
        ("sincos_large", {}, PUBLISHED, "none", 0.3, 1),
        ("sincos_longer", {"patch_size": 7}, MENDED, PUBLISHED, 0, 1),
        ("sincos_longer", {"patch_size": 4}, MENDED, PUBLISHED, -1, 0),
    ],
)
def test_the_default_of_sincos_2d_is_what_the_records_say(
    record, condition, table, other, low, high
):
    pair = [{**condition, "table": name} for name in (table, other)]
    gained = load_record(record).difference("test_accuracy", *pair)
    if high == 1:
        assert gained.low > low
    else:
        assert gained.high < high


def test_no_other_table_beats_the_default_of_sincos_2d():
    record = load_record("sincos_base")
    for condition in record.conditions:
        if condition["table"] not in (MENDED, "learned", "none"):
            gained = record.difference("test_accuracy", {**condition, "table": MENDED}, condition)
            assert gained.high > 0
            assert gained.low > -0.01


def test_the_longer_record_shows_what_the_mlp_is_worth_and_a_control_of_equal_size():
    record = load_record("block_ablation_longer")

    def against_the_whole(model):
        pair = [{"task": "garments", "model": name} for name in (model, ablation.WHOLE)]
        return record.difference("test_accuracy", *pair)

    for model in ("no MLP", "no GELU", "uniform", ablation.LINEAR):
        assert against_the_whole(model).high < 0
    without_attention = against_the_whole("no attention")
    assert without_attention.low < 0 < without_attention.high


def winners_of(record):
    return [(w["condition"], w["value"]) for w in load_record(record).choice["winners"]]


def test_what_a_search_chose_is_what_others_take_from_it():
    blocks = [
        (c["model"], v)
        for c, v in winners_of("block_ablation")
        if c["task"] == block_ablation_pointer.TASK
    ]
    assert dict(blocks).items() >= block_ablation_pointer.RATES.items()
    rates = {tuple(c.values()): v for c, v in winners_of("time_to_learn")}
    assert rates["place", "ViT, sin-cos places"] == mixing_places.LEARNING_RATE
    assert {c["data"]: v for c, v in winners_of("full_sets_best")} == long.RATES
    assert best(load_record("full_sets_arms")) == tested.BEST


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_the_command_asks_for_the_run_that_was_recorded(name):
    words = shlex.split(full_sets.command(name))
    assert words[:3] == ["python", "-m", "vitbook"]
    options = vars(parser.parser().parse_args(words[3:]))
    given = {key: value for key, value in options.items() if key not in train.WHERE}
    assert settings_of(given) == full_sets.SETTINGS[name]
    assert full_sets.SETTINGS[name]["learn_from"] == "train"
