"""The plain networks see the images of `baselines`, and beat a linear classifier in the end."""

import sys

from experiments.machinery.experiment import load_experiment
from vitbook.book.records import load_record

EXPERIMENT = load_experiment("small_networks")
small_networks = sys.modules["experiment_small_networks"]


def test_each_image_is_one_that_baselines_saw():
    ours, other = load_record("small_networks").data, load_record("baselines").data
    assert {k: v for k, v in ours.items() if not k.startswith("mnist")}.items() <= other.items()


def test_only_the_cnns_of_the_shorter_trainings_still_want_a_larger_rate():
    """Eight rates were tried for each of the two: as opponents they may be a little too weak."""
    record = load_record("small_networks")
    winners = record.choice["winners"]
    assert len(winners) == len(EXPERIMENT.conditions)
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


def test_on_whole_sets_the_images_are_those_of_the_long_runs():
    assert load_record("whole_networks").data == load_record("full_sets").data


def test_on_whole_sets_the_search_ended_inside_and_both_networks_beat_the_linear_classifier():
    record, linear = load_record("whole_networks"), load_record("baselines")
    assert not any(winner["at_edge"] for winner in record.choice["winners"])
    for condition in record.conditions:
        mark = linear.mean("test_accuracy", data=condition["data"], model="logistic regression")
        assert record.interval("test_accuracy", **condition).low > mark
