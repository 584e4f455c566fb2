"""The default of `sincos_2d` is what the record says; the arms are what they are called."""

import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from vitbook.book.records import load_record
from vitbook.layers.positions import sincos_2d

EXPERIMENT = load_experiment("sincos_base")
script = sys.modules["experiment_sincos_base"]
FIXED = [name for name, (positions, *_) in script.TABLES.items() if positions == "sincos_2d"]
MENDED, PUBLISHED = "2 sides, centred", "10000"


@pytest.mark.parametrize("patch_size", script.PATCH_SIZES)
def test_the_arms_are_the_mended_table_and_the_package_s_published_one(patch_size):
    grid, D = script.SIZE // patch_size, script.MODEL["embed_dim"]
    tables = {name: script.build(patch_size, name, 0).positions.table for name in FIXED}
    assert torch.equal(tables[MENDED], sincos_2d(grid, D, base=2.0 * grid, centred=True))
    assert torch.equal(tables[PUBLISHED], sincos_2d(grid, D))
    assert len({tuple(table.flatten().tolist()) for table in tables.values()}) == len(FIXED)


@pytest.mark.parametrize("patch_size", script.PATCH_SIZES)
def test_an_arm_differs_from_another_in_its_positions_only(patch_size):
    first, *others = (script.build(patch_size, name, 0).state_dict() for name in FIXED)
    assert "positions.table" not in first
    for other in others:
        assert all(torch.equal(tensor, other[name]) for name, tensor in first.items())


@pytest.mark.parametrize("patch_size", script.PATCH_SIZES)
def test_the_mended_table_beats_the_published_table_and_nothing_beats_it(
    patch_size,
):
    record = load_record("sincos_base")

    def gained(other):
        pair = [{"patch_size": patch_size, "table": name} for name in (MENDED, other)]
        return record.difference("test_accuracy", *pair)

    assert gained(PUBLISHED).low > 0
    for other in set(FIXED) - {MENDED}:
        assert gained(other).high > 0
        assert gained(other).low > -0.01
