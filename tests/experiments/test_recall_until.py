"""Recall until it is learned: what is as in `relatives_recall`, and when a training ends."""

import math

import pytest
import torch

from experiments import relatives_recall as whole
from experiments import relatives_recall_until as until
from vitbook.layers.positions import sincos_2d


def test_the_sincos_vit_differs_from_the_vit_in_its_table_only():
    one, other = until.options_of(until.WHOLE), until.options_of(until.SINCOS)
    changed = {name for name in one | other if one.get(name) != other.get(name)}
    assert changed == {"position_std", "positions", "position_base", "centred_positions"}
    table = dict(until.build(until.SINCOS, 0).named_buffers())["model.positions.table"]
    assert torch.equal(table, sincos_2d(4, 48, base=8.0, centred=True))
    assert table.unique(dim=0).shape == (16, 48)


def test_every_model_may_spend_as_much():
    for model in until.MODELS:
        same = until.WHOLE if model == until.SINCOS else model
        assert until.steps_of(model) == until.LONGEST * whole.steps_of(same)
        assert until.steps({"model": model}) == until.steps_of(model)
        assert until.steps({"model": model, "longest": 2}) == 2 * whole.steps_of(same)


def test_the_rate_is_flat_and_falls_at_the_end():
    rates = [until.flat(step, 1000, 10) for step in range(1000)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[10:800] == [1.0] * 790
    assert rates[900] == pytest.approx(0.5)
    assert 0 < rates[-1] < 0.01


def looked(monkeypatch, right, **options):
    """The looks of a short training in which the model says so of validation images."""
    monkeypatch.setattr(until, "answered", lambda model, asked: (math.exp(-right), right))
    return until.fit({"model": "Mixer"}, 0, lambda loss: None, 0.001, learning_rate=1e-3, **options)


def test_a_training_ends_when_it_is_learned_and_the_last_look_stands_for_the_rest(monkeypatch):
    model, losses, seen = looked(monkeypatch, 0.995)
    assert len(losses) == 1
    assert len(seen) == len(until.LOOKS)
    assert not model.training


def test_otherwise_it_makes_all_updates_or_the_share_of_a_trial(monkeypatch):
    longest = round(0.001 * until.steps_of("Mixer"))
    _, losses, seen = looked(monkeypatch, 0.5)
    assert len(losses) == longest
    assert len(seen) == len(until.LOOKS)
    _, losses, seen = looked(monkeypatch, 0.5, length=0.5)
    assert len(losses) == pytest.approx(longest / 2, abs=1)
    assert len(seen) == sum(look <= until.LONGEST / 2 for look in until.LOOKS)
