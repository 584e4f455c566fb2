"""What one record takes from another, and what the package or a page relies on in it.

That a record is what its script computes is the golden replay's business (`test_experiments.py`).
"""

import shlex
import sys

import pytest

from experiments.full_sets.full_sets_best import BEST
from experiments.full_sets.recipe import best
from experiments.machinery.experiment import load_experiment
from experiments.token_mixing import mixing_places
from experiments.vit_design import block_ablation_pointer
from vitbook.book.records import load_record
from vitbook.command import parser, train
from vitbook.command.recipes import settings_of

SCRIPTS = ("full_sets", "full_sets_long")
for name in SCRIPTS:
    load_experiment(name)
full_sets, long = (sys.modules[f"experiment_{name}"] for name in SCRIPTS)


def images(record):
    return load_record(record).data


def test_records_of_whole_sets_saw_the_same_images():
    whole = {k.replace(" whole,", ","): v for k, v in images("baselines").items() if "whole" in k}
    for record in ("whole_networks", "full_sets_best"):
        assert images(record) == images("full_sets") == whole


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
    assert best(load_record("full_sets_arms")) == BEST


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_the_command_asks_for_the_run_that_was_recorded(name):
    words = shlex.split(full_sets.command(name))
    assert words[:3] == ["python", "-m", "vitbook"]
    options = vars(parser.parser().parse_args(words[3:]))
    given = {key: value for key, value in options.items() if key not in train.WHERE}
    assert settings_of(given) == full_sets.SETTINGS[name]
    assert full_sets.SETTINGS[name]["learn_from"] == "train"
