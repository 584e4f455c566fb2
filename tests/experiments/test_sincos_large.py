"""The large grid is that of `sincos_base` in all but its size."""

import torch

from experiments import sincos_base as small
from experiments import sincos_large as large
from vitbook.book.records import load_record
from vitbook.layers.positions import sincos_2d


def test_the_tables_are_the_mended_and_the_package_s_published_one():
    grid, D = small.SIZE // large.PATCH_SIZE, small.MODEL["embed_dim"]
    tables = {
        name: small.build(large.PATCH_SIZE, name, 0).positions.table
        for name in ("2 sides, centred", "10000")
    }
    assert torch.equal(
        tables["2 sides, centred"], sincos_2d(grid, D, base=2.0 * grid, centred=True)
    )
    assert torch.equal(tables["10000"], sincos_2d(grid, D))


def test_the_runs_are_those_of_the_small_grids():
    assert large.EXPERIMENT.run == small.EXPERIMENT.run
    for name in ("model", "training"):
        assert large.EXPERIMENT.settings[name] == small.EXPERIMENT.settings[name]
    for condition in large.EXPERIMENT.conditions:
        assert large.EXPERIMENT.steps(condition) == small.EXPERIMENT.steps(condition)


def test_the_mended_table_loses_nothing_to_the_published_table_and_both_beat_a_learned_one():
    record = load_record("sincos_large")

    def gained(table, other):
        pair = [{"patch_size": large.PATCH_SIZE, "table": name} for name in (table, other)]
        return record.difference("test_accuracy", *pair)

    assert gained("2 sides, centred", "10000").low > -0.005
    for table in ("2 sides, centred", "10000"):
        assert gained(table, "learned").low > 0
        assert gained(table, "none").low > 0.3
