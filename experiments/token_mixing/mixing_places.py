"""Does recall need positions that start large? A ViT's table of places in five sizes."""

import torch
from torch import nn

from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.token_mixing.mixing import WHOLE
from experiments.token_mixing.mixing_recall import (
    IMAGES,
    RECIPE,
    STEPS,
    images_of,
    options_of,
    task,
)
from experiments.token_mixing.time_to_learn import TABLE
from vitbook.comparison.recall_task import PatchAnswers, answered
from vitbook.models.hybrid import Hybrid
from vitbook.training import TrainConfig, train

LEARNING_RATE = 2e-3  # the best for the sin-cos table in `time_to_learn`
PLACES = {  # kind: standard deviations at the start; None: the sin-cos table as it is
    "sin-cos": (None, 0.5, 1.0),
    "learned": (0.02, 0.5),
}
CONDITIONS = [{"places": kind, "std": std or "as it is"} for kind in PLACES for std in PLACES[kind]]


def build(places: str, std: float | str, seed: int) -> nn.Module:
    """A ViT before training, which answers for every patch."""
    torch.manual_seed(seed)
    options = options_of(WHOLE)
    if places == "learned":
        return PatchAnswers(Hybrid(**task(WHOLE).model, **options | {"position_std": std}))
    model = Hybrid(**task(WHOLE).model, **options | {"position_std": None} | TABLE)
    if not isinstance(std, str):
        table = model.positions.table  # (N, D), not learned
        table.mul_(std / table.std())
    return PatchAnswers(model)


def flat(step: int, total: int, warmup: int) -> float:
    """The share of the learning rate at a step."""
    return min((step + 1) / max(1, warmup), 1.0)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one ViT for as long as the ViT of `mixing_recall`, and test it."""
    model, known = build(**condition, seed=seed), images_of("train", scale)

    def loss_function(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        log(loss.item())
        return loss

    config = TrainConfig(
        steps=scaled(STEPS, scale),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        learning_rate=LEARNING_RATE,
        seed=seed,
    )
    train(model, *known, config, loss_function=loss_function, schedule=flat, progress=False)
    loss, accuracy = answered(model.eval(), images_of("test", scale))
    return Outcome({"test_accuracy": accuracy, "test_loss": loss})


EXPERIMENT = Experiment(
    what="Recall: a ViT with a sin-cos table, or with learned positions, of several sizes at the "
    "start, after as many updates as the ViT of `mixing_recall`.",
    chosen_on="the learning rate in `time_to_learn`, on validation images: the best for the "
    "sin-cos table as it is; learned positions get the same",
    metrics={
        "test_accuracy": "share of the patches of all test images answered correctly",
        "test_loss": "mean cross-entropy over these patches, in nats",
    },
    conditions=CONDITIONS,
    seeds=range(10, 20),
    run=run,
    data=lambda: {f"recall, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "training": {**RECIPE, "steps": STEPS, "learning_rate": LEARNING_RATE, "schedule": "flat"},
        "table": TABLE,
    },
    replay=({"places": "sin-cos", "std": 1.0}, 10),
    steps=lambda condition: STEPS,
)
