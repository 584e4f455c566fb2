"""The runs are those of `sincos_base` with more steps; the record shows where a gain lasts."""

import pytest

from experiments import sincos_base as short
from experiments import sincos_longer as longer
from vitbook.book.records import load_record


def test_only_the_steps_differ():
    assert longer.PATIENT.build is short.build
    assert longer.EXPERIMENT.settings["model"] == short.EXPERIMENT.settings["model"]
    assert {**short.RECIPE, "steps": 4 * short.RECIPE["steps"]} == longer.LONG_RECIPE
    for condition in longer.EXPERIMENT.conditions:
        assert condition in short.EXPERIMENT.conditions
        assert longer.EXPERIMENT.steps(condition) == 4 * short.EXPERIMENT.steps(condition)


@pytest.mark.parametrize(("patch_size", "default_is_ahead"), [(7, True), (4, False)])
def test_the_default_is_ahead_on_the_smallest_grid_only(patch_size, default_is_ahead):
    record = load_record("sincos_longer")
    pair = [{"patch_size": patch_size, "table": table} for table in ("2 sides, centred", "10000")]
    gained = record.difference("test_accuracy", *pair)
    assert gained.low > 0 if default_is_ahead else gained.high < 0
