"""Short loops of chapter 11 and the models of chapter 12: what is the same, and what differs."""

import pytest

from experiments import cosine_end, matching_pairs, pair_models, tiny_faults


def nothing(loss):
    """A run that nobody watches."""


def test_both_ends_begin_with_the_same_rates_and_the_cosine_falls():
    constant, cosine = (
        cosine_end.rates_of({"learning_rate": 0.5, "end": end}) for end in cosine_end.ENDS
    )
    assert len(constant) == len(cosine) == cosine_end.BEFORE + cosine_end.AFTER
    assert constant[: cosine_end.BEFORE + 1] == cosine[: cosine_end.BEFORE + 1]
    end = cosine[cosine_end.BEFORE :]
    assert end == sorted(end, reverse=True)
    assert end[-1] < 0.01
    assert set(constant[cosine_end.WARMUP :]) == {0.5}


@pytest.mark.parametrize("fault", [name for name in tiny_faults.FAULTS if name != "nothing wrong"])
def test_each_fault_changes_the_losses(fault):
    _, healthy, _ = tiny_faults.fitted("nothing wrong", 0, nothing, 3)
    _, losses, _ = tiny_faults.fitted(fault, 0, nothing, 3)
    assert losses != healthy


def test_one_batch_is_shown_again_and_again():
    _, losses, right = tiny_faults.fitted("nothing wrong", 0, nothing, 12, one_batch=True)
    assert losses[-1] < losses[0] - 0.3
    assert right > 0.2


def test_the_two_models_more_are_trained_as_the_first_with_other_seeds():
    assert pair_models.EXPERIMENT.settings["training"] == matching_pairs.RECIPE
    assert pair_models.EXPERIMENT.settings["model"] == matching_pairs.MODEL
    (_, kept) = matching_pairs.EXPERIMENT.keep["attention"]
    assert kept not in pair_models.SEEDS
