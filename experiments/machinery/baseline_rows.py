"""The rows that a task of its own needs beside its models: three opponents in one call."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from experiments.machinery.baselines import linear, mlp, nearest_accuracy
from experiments.machinery.classifier import Classifier
from experiments.machinery.experiment import Log, Outcome, scaled
from experiments.machinery.measures import parameters
from vitbook.comparison.recall_task import answered, fit_recall
from vitbook.data import ImageSet
from vitbook.training import TrainConfig

LINEAR, MLP, NEAREST = PLAIN = ("logistic regression", "MLP", "nearest neighbour")
HIDDEN = 64
RATES = (1e-3, 4e-3, 16e-3)
BATCH, WARMUP = 64, 40


def updates(name: str, steps: int) -> int:
    """How many updates a run makes in all; that of any other model, its steps."""
    return {NEAREST: 0, LINEAR: 3 * steps, MLP: 3 * steps}.get(name, steps)


def plain(
    name: str, images: Callable[[str], ImageSet], *, steps: int, log: Log, scale: float
) -> Outcome:
    """Train an opponent with each of three rates and test the one that validation images prefer.

    Args:
        name: one of `PLAIN`; "nearest neighbour" learns and chooses nothing.
        images: `images(part)` -> "train", "validation" or "test"; an image has a label, or a row
            of them, each answered by logits of its own.
        steps: updates of each training, with 64 images each.
        log, scale: as a run of an `Experiment` gets them.

    Returns:
        "test_accuracy", "parameters" and the "learning_rate" that was chosen.
    """
    known, validation, test = (
        ImageSet(found.images, found.labels.view(len(found.labels), -1))
        for found in map(images, ("train", "validation", "test"))
    )
    if name == NEAREST:
        return Outcome({"test_accuracy": nearest_accuracy(known, test), "parameters": 0})
    features, classes = known.images[0].numel(), int(known.labels.max()) + 1
    answers = known.labels.shape[1]
    logits = answers * classes
    tried: list[tuple[float, float, nn.Module]] = []
    for rate in RATES:
        torch.manual_seed(0)
        model = linear(features, logits) if name == LINEAR else mlp(features, HIDDEN, logits)
        model.append(nn.Unflatten(1, (answers, classes)))
        config = TrainConfig(
            steps=scaled(steps, scale),
            batch_size=scaled(BATCH, scale),
            learning_rate=rate,
            warmup_steps=scaled(WARMUP, scale),
        )
        fit_recall(model, known, config, log)
        tried.append((answered(model, validation)[0], rate, model))
    _, rate, model = min(tried, key=lambda one: one[0])
    return Outcome(
        {
            "test_accuracy": answered(model, test)[1],
            "parameters": parameters(model),
            "learning_rate": rate,
        }
    )


def beside_plain(classifier: Classifier, steps: int) -> Callable[..., Outcome]:
    """The `run` of an experiment whose conditions are those of a classifier, or {"model": name}.

    Args:
        classifier: what is trained by the other conditions.
        steps: of each training of an opponent, one of `PLAIN`.
    """

    def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
        if condition.get("model") in PLAIN:
            given: dict = {"steps": steps, "log": log, "scale": scale}
            return plain(condition["model"], lambda part: classifier.images(part, scale), **given)
        return classifier.run(condition, seed, log, scale, **chosen)

    return run
