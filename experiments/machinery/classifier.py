"""Train one classifier by condition, then measure it: the run of most experiments, in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.experiment import Log, Outcome, logged, scaled
from experiments.machinery.measures import multiplies, parameters, thin
from vitbook.comparison.recall_task import answered, fit_recall
from vitbook.data import ImageSet
from vitbook.training import TrainConfig, evaluate, train

KNOWN = 2000  # training images that a trained model is asked about
METRICS = {
    "test_accuracy": "share of the test images answered correctly",
    "test_loss": "mean cross-entropy on the test images, in nats",
    "train_accuracy": f"share of the training images answered correctly, of the first {KNOWN:,} at "
    "most",
    "loss": "training loss, about 100 means over equally many steps, in nats",
    "parameters": "numbers that are learned",
}
COSTS = {
    "tokens": "N, patches in an image",
    "multiplies": "multiplications in the matrix products for one image",
}


@dataclass(frozen=True)
class Classifier:
    """How the models of an experiment are built, trained and measured.

    Its `run` and `trial` are those of an `Experiment` and of its `Choice`. A script that does more
    calls `fit` and `measure` from a `run` of its own.

    Args:
        build: `build(**condition)` -> a model that is not trained yet; the seed has been set.
        images: `images(part, scale)` -> the images of a part; for a trial run, scale < 1, fewer.
        recipe: arguments of `TrainConfig`, with `steps` and `batch_size`.
        settings: further ones of a condition; those that a search has chosen come by themselves.
        options: further arguments of `train` for a condition (`augment`, `schedule`).
        learn_from: the part that a run learns from. A trial learns from "train" and is judged on
            "validation".
        further: `further(model, scale)` -> what a run measures besides, on a trained model.
    """

    build: Callable[..., nn.Module]
    images: Callable[[str, float], ImageSet]
    recipe: dict
    settings: Callable[[dict], dict] = lambda condition: {}
    options: Callable[[dict], dict] = lambda condition: {}
    learn_from: str = "train"
    further: Callable[[Any, float], dict] = lambda model, scale: {}

    def fresh(self, condition: dict, seed: int) -> Any:
        """The model of a condition before training."""
        torch.manual_seed(seed)
        return self.build(**condition)

    def watched(self, asked: ImageSet, every: int) -> tuple["Classifier", list[dict]]:
        """The same, asked about some images every so many steps; a list that gets what it said."""
        rows: list[dict] = []
        watch = {"evaluate_on": asked, "evaluate_every": every, "report": rows.append}
        return replace(self, options=lambda condition: self.options(condition) | watch), rows

    def steps(self, condition: dict) -> int:
        """How many updates a run of a condition makes."""
        return {**self.recipe, **self.settings(condition)}["steps"]

    def fit(
        self,
        condition: dict,
        seed: int,
        log: Log,
        scale: float = 1.0,
        *,
        part: str | None = None,
        length: float = 1.0,
        **chosen: Any,
    ) -> tuple[Any, list[float]]:
        """Train one model: what `build` gives, and each step's loss. `length`: share of the steps.

        `part` is what it learns from, if not what a run learns from.
        """
        model = self.fresh(condition, seed)
        given = {**self.recipe, **self.settings(condition), **chosen, "seed": seed}
        given["steps"] = scaled(given["steps"], scale * length)
        given["batch_size"] = scaled(given["batch_size"], scale)
        known = self.images(part or self.learn_from, scale)
        return model, self.learn(model, known, TrainConfig(**given), log, condition)

    def learn(
        self, model: Any, known: ImageSet, config: TrainConfig, log: Log, condition: dict
    ) -> list[float]:
        """Train a model on these images: each step's loss."""
        history = train(
            model,
            *known,
            config,
            loss_function=logged(log, config.label_smoothing),
            progress=False,
            **self.options(condition),
        )
        return [row["loss"] for row in history]

    def judge(self, model: Any, asked: ImageSet) -> tuple[float, float]:
        """Mean cross-entropy in nats, and the share of right answers."""
        result = evaluate(model, *asked)
        return result.loss, result.accuracy

    def measure(self, model: nn.Module, losses: list[float], scale: float = 1.0) -> dict:
        """What `METRICS` names."""
        loss, accuracy = self.judge(model, self.images("test", scale))
        known = ImageSet(*(part[:KNOWN] for part in self.images(self.learn_from, scale)))
        return {
            "test_accuracy": accuracy,
            "test_loss": loss,
            "train_accuracy": self.judge(model, known)[1],
            "loss": thin(losses),
            "parameters": parameters(model),
        }

    def run(self, condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
        """Train one model and test it."""
        model, losses = self.fit(condition, seed, log, scale, **chosen)
        metrics = self.measure(model, losses, scale) | self.further(model, scale)
        return Outcome(metrics, model.state_dict())

    def trial(
        self, condition: dict, seed: int, log: Log, scale: float, *, length: float, **tried: Any
    ) -> dict[str, float]:
        """Train one model with a setting on trial, and judge it on validation images."""
        model, _ = self.fit(condition, seed, log, scale, part="train", length=length, **tried)
        loss, accuracy = self.judge(model, self.images("validation", scale))
        return {"validation_loss": loss, "validation_accuracy": accuracy}


def trial_by(setting: str, of: Mapping[str, Classifier]) -> Callable[..., dict[str, float]]:
    """The trial of whichever classifier belongs to the value of a setting in the condition."""
    return lambda condition, *given, **tried: of[condition[setting]].trial(
        condition, *given, **tried
    )


class PatchClassifier(Classifier):
    """The same for models that answer for every patch, (B, N, K), of images with labels (n, N)."""

    def learn(
        self, model: Any, known: ImageSet, config: TrainConfig, log: Log, condition: dict
    ) -> list[float]:
        return fit_recall(model, known, config, log)

    def judge(self, model: Any, asked: ImageSet) -> tuple[float, float]:
        return answered(model, asked)


def costs(model: nn.Module, images: Tensor) -> dict[str, int]:
    """What `COSTS` names."""
    embedding: Any = model.patch_embed
    return {"tokens": embedding.num_patches, "multiplies": multiplies(model, images)}
