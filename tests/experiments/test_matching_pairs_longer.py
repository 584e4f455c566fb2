"""The control of `matching_pairs` for longer: what is the same, and how it is chosen."""

import torch

from experiments import matching_pairs as pairs
from experiments import matching_pairs_longer as longer


def test_it_is_the_control_of_matching_pairs_with_more_updates():
    updates = longer.steps({"times": longer.TIMES})
    assert updates == longer.TIMES * pairs.RECIPE["steps"]
    assert updates > pairs.steps(longer.MIXING)
    model, losses, rows = longer.fitted({"times": 1}, 0, lambda loss: None, 0.005)
    fresh = pairs.build(longer.MIXING, 0).state_dict()
    assert model.state_dict().keys() == fresh.keys()
    assert any(not torch.equal(value, fresh[name]) for name, value in model.state_dict().items())
    assert [row["step"] for row in rows] == list(range(1, len(losses) + 1))


def test_the_rate_is_searched_after_as_many_updates_as_the_control_makes_there():
    plan = longer.EXPERIMENT.plan
    (arm,) = plan["arms"]
    assert plan["length"] * longer.steps(arm) == pairs.steps(longer.MIXING)
