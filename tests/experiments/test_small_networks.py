"""The plain networks see the images of `baselines`, and beat a linear classifier in the end."""

import sys

from experiments.machinery.experiment import load_experiment
from vitbook.records import load_record

EXPERIMENT = load_experiment("small_networks")
small_networks = sys.modules["experiment_small_networks"]


def test_each_image_is_one_that_baselines_saw():
    ours, other = load_record("small_networks").data, load_record("baselines").data
    assert {k: v for k, v in ours.items() if not k.startswith("mnist")}.items() <= other.items()


def test_no_rate_was_chosen_at_the_edge_of_what_was_tried():
    winners = load_record("small_networks").choice["winners"]
    assert len(winners) == len(EXPERIMENT.conditions)
    assert not any(winner["at_edge"] for winner in winners)


def test_every_network_beats_the_linear_classifier_when_it_is_trained_long_enough():
    record = load_record("small_networks")
    for name, steps in small_networks.STEPS.items():
        linear = load_record("baselines") if name != small_networks.NUMBERS else record
        mark = linear.mean("test_accuracy", data=name, model=small_networks.LINEAR)
        for model in (small_networks.MLP, small_networks.CNN):
            got = record.interval("test_accuracy", data=name, model=model, steps=max(steps))
            assert got.low > mark, (name, model)
