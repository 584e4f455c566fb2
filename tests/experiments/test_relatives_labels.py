"""Recall by label: equal models, the address layer, and the contest that is made equal to them."""

import pytest
import torch

from experiments import relatives_labels
from experiments import relatives_recall as places
from experiments.machinery.mixers import Address
from experiments.relatives_labels import ADDRESS, MODELS, PATIENT, WHOLE, build, cost_of, steps_of
from vitbook.comparison.entrant import mixer_model
from vitbook.comparison.tasks import record_of


def test_parameters_and_compute_of_all_models_are_equal():
    parameters, multiplies = cost_of(WHOLE)
    assert (parameters, multiplies) == places.cost_of(WHOLE)
    for model in MODELS:
        own, each = cost_of(model)
        assert abs(own / parameters - 1) <= 0.05
        assert abs(each * steps_of(model) - multiplies * relatives_labels.STEPS) <= each / 2
    assert steps_of(PATIENT) == relatives_labels.LONGER * steps_of(ADDRESS)
    experiment = relatives_labels.EXPERIMENT
    assert [experiment.choose.arm(one) for one in experiment.conditions][-2:] == [
        {"model": ADDRESS}
    ] * 2


@pytest.mark.parametrize("model", [*MODELS, PATIENT])
def test_every_model_answers_for_every_patch(model):
    assert build(model, 0)(torch.randn(2, 3, 32, 32)).shape == (2, 16, 4)


@pytest.mark.parametrize("model", [WHOLE, "uniform", "no mixing", ADDRESS])
def test_the_table_of_positions_starts_small_and_nothing_else_is_changed(model):
    one = dict(build(model, 3).named_parameters())
    table = one.pop("model.positions.table")
    assert table.std().item() == pytest.approx(relatives_labels.STD, rel=0.1)
    if model != ADDRESS:
        assert [*one] == [n for n, _ in places.build(model, 3).named_parameters() if n in one]


def test_the_address_layer_of_the_records_is_the_one_that_the_contest_builds():
    by_place = places.options_of(WHOLE)["position_std"]
    for task, std in (("places", by_place), ("labels", relatives_labels.STD)):
        record = record_of(task)
        width = relatives_labels.width_of_address()
        theirs = mixer_model(Address, width, 5, record)
        torch.manual_seed(5)
        ours = relatives_labels.with_address(width, std)
        for (name, one), (other, two) in zip(
            ours.named_parameters(), theirs.named_parameters(), strict=True
        ):
            assert name == other
            assert torch.equal(one, two)


def test_an_address_depends_on_the_asking_token_alone():
    torch.manual_seed(0)
    layer, x = Address(12, 6), torch.randn(2, 6, 12)
    out = layer(x)
    assert out.shape == x.shape
    weights = layer.address(x).softmax(dim=-1)
    byhand = torch.stack(
        [sum(weights[:, i, j, None] * layer.value(x[:, j]) for j in range(6)) for i in range(6)],
        dim=1,
    )
    assert torch.allclose(out, layer.proj(byhand), atol=1e-6)
    moved = x[:, [0, 2, 1, 3, 4, 5]]
    assert torch.equal(layer.address(moved)[:, 0], layer.address(x)[:, 0])
    assert not torch.allclose(layer(moved)[:, 0], out[:, 0])
