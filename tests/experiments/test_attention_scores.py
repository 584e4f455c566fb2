"""What chapter 2 compares is what its record says it is."""

import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment

EXPERIMENT = load_experiment("attention_scores")
script = sys.modules["experiment_attention_scores"]
SCORES = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0))


def test_weights_of_every_rule_are_what_they_are_called():
    for name in ("softmax", "relu", "uniform"):
        weights = script.NORMALISERS[name](SCORES)
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5))
    torch.testing.assert_close(script.uniform(SCORES), torch.full((3, 5, 7), 1 / 7))
    torch.testing.assert_close(script.linear(SCORES) * 7, SCORES)
    assert not script.relu(-SCORES.abs()).any()  # a row without any stays empty


@pytest.mark.parametrize("factor", [True, False])
def test_without_the_factor_scores_are_sqrt_d_times_as_large(factor):
    x = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    layer = script.ScoreAttention(embed_dim=32, head_dim=16, normaliser="linear", scaled=factor)
    plain = layer.q(x) @ layer.k(x).mT / 5
    torch.testing.assert_close(layer.weights(x), plain / 4 if factor else plain)


def test_a_level_is_reached_at_the_first_look_at_or_above_it():
    assert script.first_reached([0.2, 0.95, 0.9, 1.0], 0.95) == 2 * script.EVERY
    assert script.first_reached([0.2, 0.3], 0.95) == script.RECIPE["steps"]


def test_uniform_rows_have_the_largest_entropy():
    model = script.build(0, normaliser="uniform", **script.USUAL)
    found = script.entropies(model, script.images_of("test", 0.01).images)
    assert found == pytest.approx([torch.tensor(9.0).log().item()] * 2, abs=1e-4)
