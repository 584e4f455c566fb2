"""Recall with tables of places of several sizes: what differs, and the rate that all take."""

import pytest

from experiments import relatives_places as places
from vitbook.book.records import load_record
from vitbook.layers.positions import sincos_2d


def table_of(kind, std):
    return places.build(kind, std, seed=0).model.positions.table


def test_a_table_starts_at_the_size_that_its_condition_names():
    plain = table_of("sin-cos", "as it is")
    assert plain == pytest.approx(sincos_2d(4, 48, base=8.0, centred=True))
    for std in (0.5, 1.0):
        larger = table_of("sin-cos", std)
        assert larger.std().item() == pytest.approx(std)
        assert larger == pytest.approx(plain * std / plain.std())
    for std in (0.02, 0.5):
        assert table_of("learned", std).std().item() == pytest.approx(std, rel=0.1)


def test_the_rate_is_the_one_that_won_for_the_sincos_table():
    winners = load_record("time_to_learn").choice["winners"]
    rates = {tuple(w["condition"].values()): w["value"] for w in winners}
    assert rates["place", "ViT, sin-cos places"] == places.LEARNING_RATE
