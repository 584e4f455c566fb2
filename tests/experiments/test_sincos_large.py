"""The large grid is that of `sincos_base` in all but its size."""

import torch

from experiments import sincos_base as small
from experiments import sincos_large as large
from vitbook.positions import sincos_2d


def test_the_tables_are_the_package_s_default_and_the_published_one():
    grid, D = small.SIZE // large.PATCH_SIZE, small.MODEL["embed_dim"]
    tables = {
        name: small.build(large.PATCH_SIZE, name, 0).positions.table
        for name in ("2 sides, centred", "10000")
    }
    assert torch.equal(tables["2 sides, centred"], sincos_2d(grid, D))
    assert torch.equal(tables["10000"], sincos_2d(grid, D, base=10000.0, centred=False))


def test_the_runs_are_those_of_the_small_grids():
    assert large.EXPERIMENT.run == small.EXPERIMENT.run
    for name in ("model", "training"):
        assert large.EXPERIMENT.settings[name] == small.EXPERIMENT.settings[name]
    for condition in large.EXPERIMENT.conditions:
        assert large.EXPERIMENT.steps(condition) == small.EXPERIMENT.steps(condition)
