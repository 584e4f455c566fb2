"""Trainings side by side are those of `train`; when something counts as learned."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from experiments import relatives_recall as whole
from experiments import time_to_learn as learn
from experiments.machinery.together import Together
from vitbook.data import ImageSet
from vitbook.training import TrainConfig, train

UPDATES, SEEDS = 5, (3, 4)


@pytest.mark.parametrize("model", learn.MODELS)
def test_side_by_side_every_model_makes_the_updates_of_train(model):
    images, labels = learn.images_of("validation", 0.1)
    known = ImageSet(images[:18], labels[:18])  # the second epoch begins with the fifth update
    recipe = {"steps": UPDATES, "batch_size": 4, "warmup_steps": 2, "learning_rate": 4e-3}

    def loss_function(logits, numbers):
        return F.cross_entropy(logits.flatten(0, 1), known.labels[numbers].flatten())

    alone, last = [], []
    for seed in SEEDS:
        one = learn.build(model, seed, "place")
        history = train(
            one,
            known.images,
            torch.arange(len(known.images)),
            TrainConfig(seed=seed, **recipe),
            loss_function=loss_function,
            schedule=lambda step, total, warmup: min(1, (step + 1) / warmup),
            progress=False,
        )
        alone.append([row["loss"] for row in history])
        last.append(one(known.images).argmax(-1) == known.labels)
    models = [learn.build(model, seed, "place") for seed in SEEDS]
    together = Together(models, known, TrainConfig(**recipe), SEEDS)
    losses = torch.stack([together.update().clone() for _ in range(UPDATES)], dim=1)
    assert torch.allclose(losses, torch.tensor(alone), rtol=1e-4)
    expected = torch.stack(last).double().mean((1, 2))
    assert torch.allclose(together.answered(known)[1], expected, atol=0.02)


def test_all_models_have_the_size_and_the_budget_of_the_vit():
    target = whole.cost_of(whole.WHOLE)
    for condition in learn.CONDITIONS:
        parameters, multiplies = learn.cost_of(condition["model"])
        assert parameters == pytest.approx(target[0], rel=learn.TOLERANCE)
        spent = learn.steps(condition) * multiplies
        budget = learn.TASKS[condition["task"]]["budget"] * target[1]
        assert spent == pytest.approx(budget, rel=1e-3)


def test_looks_are_a_twentieth_apart_and_end_with_the_budget():
    looks = learn.looks_of(7200)
    assert looks[0] == learn.FIRST
    assert looks[-1] == 7200
    steps = [b / a for a, b in pairwise(looks)]
    assert max(steps) <= 1.1
    assert max(steps[-20:]) <= 1.051


def test_learned_is_the_first_look_with_so_many_right_answers():
    right = torch.tensor([[0.2, 0.4], [0.6, 0.3], [0.4, 0.45], [0.96, 0.49]])
    assert learn.until(0.5, [10, 20, 30, 40], right) == [20, 0]
    assert learn.until(0.95, [10, 20, 30, 40], right) == [40, 0]


def test_a_training_ends_when_all_have_learned(monkeypatch):
    monkeypatch.setattr(
        Together,
        "answered",
        lambda self, asked: (torch.zeros(2), torch.ones(2, dtype=torch.double)),
    )
    condition = {"task": "place", "model": learn.WHOLE}
    done = []
    looks, _, right = learn.fit(condition, range(2), "test", done.append, 0.01, learning_rate=1e-3)
    assert looks == [learn.FIRST]
    assert len(done) == learn.FIRST
    assert right.shape == (1, 2)
