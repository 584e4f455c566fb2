"""A trial that several seeds decide."""

import math

from experiments.machinery.several import several


def test_the_mean_is_over_this_seed_and_the_next_ones():
    asked = []

    def trial(condition, seed, log, scale, *, length, learning_rate):
        asked.append((condition, seed, scale, length, learning_rate))
        return {"validation_loss": float(seed), "validation_accuracy": 1 / seed}

    found = several(trial, 3)({"a": 1}, 100, print, 0.5, length=1.0, learning_rate=2e-3)
    assert asked == [({"a": 1}, seed, 0.5, 1.0, 2e-3) for seed in (100, 101, 102)]
    assert found["validation_loss"] == 101
    assert math.isclose(found["validation_accuracy"], (1 / 100 + 1 / 101 + 1 / 102) / 3)


def test_one_training_that_diverges_spoils_the_mean():
    def trial(condition, seed, log, scale):
        return {"validation_loss": math.inf if seed == 8 else 0.1}

    assert several(trial, 2)({}, 7, print, 1.0)["validation_loss"] == math.inf
    assert several(trial, 1)({}, 7, print, 1.0)["validation_loss"] == 0.1
