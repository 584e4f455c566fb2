"""The walk to the best learning rate of a batch, and the folder that is learned."""

import math

import pytest

import experiments.batch_rates as rates
import experiments.own_folder as own
from experiments.machinery.generated import generated_sets


class Planted(rates.Trials):
    """Losses of a parabola over the logarithm of the rate; nothing is trained."""

    def __init__(self, best):
        self.found, self.best = {}, best

    def loss(self, rate):
        loss = math.log2(rate / self.best) ** 2
        self.found[rate] = loss, 1 - loss
        return loss


@pytest.mark.parametrize("best", [0.0007, 0.003, 0.02])
def test_the_walk_ends_between_worse_rates_and_finds_the_place_between_them(best):
    trials = Planted(best)
    found, inside = trials.walk([0.002, 0.004])
    assert inside
    assert {found / 2, found * 2} <= trials.found.keys()
    assert abs(math.log2(found / best)) <= 0.5
    assert trials.between(found) == pytest.approx(best)


def test_a_walk_that_never_turns_says_that_it_ended_at_an_edge():
    trials = Planted(1e6)
    _found, inside = trials.walk([0.002, 0.004])
    assert not inside
    assert len(trials.found) == rates.WALK


def test_every_rule_is_tried_at_every_batch(monkeypatch):
    monkeypatch.setattr(rates, "Trials", lambda *given: Planted(0.016))
    for batch in rates.BATCHES:
        condition = {"equal": "images", "batch": batch}
        metrics = rates.run(condition, 0, None, 1.0, learning_rate=0.016).metrics
        assert metrics["best_accuracy"] == metrics["same_accuracy"] == 1
        octaves = math.log2(batch / rates.FROM)
        assert metrics["linear_accuracy"] == pytest.approx(1 - octaves**2)
        assert metrics["root_accuracy"] == pytest.approx(1 - (octaves / 2) ** 2)
        assert min(metrics["rates"]) < 0.016 < max(metrics["rates"])


def test_equal_images_are_as_many_at_each_batch_and_updates_where_they_are_equal():
    images = [rates.settings({"equal": "images", "batch": b}) for b in rates.BATCHES]
    updates = [rates.settings({"equal": "updates", "batch": b}) for b in rates.BATCHES]
    seen = [one["steps"] * one["batch_size"] for one in images]
    assert min(seen) > 0.97 * rates.IMAGES
    assert max(seen) <= rates.IMAGES
    assert {one["steps"] for one in updates} == {rates.UPDATES}


def test_the_folder_has_a_file_for_each_picture_and_none_in_two_parts(tmp_path):
    (tmp_path / "sets").mkdir()
    with generated_sets(tmp_path / "sets"):
        own.images_of.cache_clear()
        own.write_folder(tmp_path / "photos", "test", seed=0, scale=0.05)
        own.images_of.cache_clear()
    for name in own.CLASSES.values():
        parts = [sorted((tmp_path / "photos" / p / name).iterdir()) for p in ("train", "test")]
        assert [len(files) for files in parts] == [5, 10]
        contents = [{file.read_bytes() for file in files} for files in parts]
        assert not contents[0] & contents[1]
