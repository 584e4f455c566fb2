"""`relatives_recall` until it is learned: how much longer does it take without attention?

The learning rate stays the same from the warm-up on and falls to nothing over the last fifth of the
longest training, so where a curve crosses a line does not depend on the budget before that.
"""

from __future__ import annotations

import torch
from torch import nn

from experiments import relatives_recall as whole
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, checksum, scaled
from experiments.machinery.recall import PatchAnswers, answered
from experiments.machinery.relatives import WHOLE
from experiments.relatives_recall import IMAGES, RECIPE, SIDE, images_of
from vitbook.data import ImageSet
from vitbook.models.hybrid import Hybrid
from vitbook.training import TrainConfig, train

SINCOS = "ViT, sin-cos places"  # knows from the first update where each patch stands
TABLE = {"positions": "sincos_2d", "position_base": 2.0 * SIDE, "centred_positions": True}
MODELS = (WHOLE, SINCOS, "Mixer")
LONGEST = 24  # times the compute of `relatives_recall`
LOOKS = (*(k / 4 for k in range(1, 17)), *range(5, LONGEST + 1))  # in the same unit
ENOUGH = 0.99  # of the validation images' patches answered correctly: the training ends
FALL = 0.2  # share of the longest training over which the rate falls
METRICS = {
    "test_accuracy": "share of the patches of all test images answered correctly, at the end",
    "test_loss": "mean cross-entropy over these patches, in nats",
    "train_accuracy": "share of the patches of as many training images answered correctly",
    "updates": "updates until the training ended",
    "curve": "share of the validation images' patches answered correctly after so much compute "
    "(`looks` of the settings); the last one stands for all that a training did not need",
}


class _LearnedIt(Exception):  # noqa: N818
    """The training is at its end."""


def options_of(model: str) -> dict:
    """The arguments of a `Hybrid`, or the widths of the CNN."""
    if model != SINCOS:
        return whole.options_of(model)
    return whole.options_of(WHOLE) | {"position_std": None} | TABLE


def build(model: str, seed: int) -> nn.Module:
    """A model before training, which answers for every patch."""
    if model != SINCOS:
        return whole.build(model, seed)
    torch.manual_seed(seed)
    return PatchAnswers(Hybrid(**whole.task(WHOLE).model, **options_of(model)))


def steps_of(model: str, compute: int = LONGEST) -> int:
    """Updates with the multiplications of so many times `relatives_recall`."""
    return round(compute * whole.steps_of(WHOLE if model == SINCOS else model))


def longest_of(condition: dict) -> int:
    """The compute at which a training ends at the latest."""
    return condition.get("longest", LONGEST)


def steps(condition: dict) -> int:
    return steps_of(condition["model"], longest_of(condition))


def flat(step: int, total: int, warmup: int) -> float:
    """The share of the learning rate at a step."""
    return min((step + 1) / max(1, warmup), (total - step) / (FALL * total), 1.0)


def fit(condition: dict, seed: int, log, scale: float, *, length: float = 1.0, **chosen):
    """Train until it is learned, or for that share of the longest training.

    Returns:
        The model; its losses; (loss, accuracy) on validation images at each look.
    """
    known, asked = images_of("train", scale), images_of("validation", scale)
    longest, end = scaled(steps(condition), scale), longest_of(condition)
    looks = [max(1, round(longest * look / end)) for look in LOOKS if look <= length * end]
    model, losses, seen = build(condition["model"], seed), [], []

    def look() -> None:
        model.eval()
        seen.append(answered(model, asked))
        model.train()
        if seen[-1][1] >= ENOUGH or len(seen) == len(looks):
            raise _LearnedIt

    def loss_function(logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), known.labels[numbers].flatten())
        losses.append(loss.item())
        log(losses[-1])
        return loss

    class Watched(nn.Module):
        """The model, looked at after so many updates."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            while len(losses) >= looks[len(seen)]:
                look()
            return self.model(images)

    config = TrainConfig(
        steps=longest,
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        seed=seed,
        **chosen,
    )
    numbers = torch.arange(len(known.images))
    try:
        train(
            Watched(),
            known.images,
            numbers,
            config,
            loss_function=loss_function,
            schedule=flat,
            progress=False,
        )
        look()
    except _LearnedIt:
        model.eval()
    return model, losses, seen + seen[-1:] * (len(looks) - len(seen))


def run(condition: dict, seed: int, log, scale: float, **chosen) -> Outcome:
    """Train one model until it has learned recall, and test it."""
    model, losses, seen = fit(condition, seed, log, scale, **chosen)
    asked = images_of("test", scale)
    known = ImageSet(*(part[: len(asked.labels)] for part in images_of("train", scale)))
    loss, accuracy = answered(model, asked)
    return Outcome(
        {
            "test_accuracy": accuracy,
            "test_loss": loss,
            "train_accuracy": answered(model, known)[1],
            "updates": len(losses),
            "curve": [round(accuracy, 5) for _, accuracy in seen],
        }
    )


def trial(condition: dict, seed: int, log, scale: float, *, length: float, **tried) -> dict:
    """The first share of a run, judged by the mean over its way: sooner is better.

    Looks are closer at the start, so each counts by the compute since the one before.
    """
    _, _, seen = fit(condition, seed, log, scale, length=length, **tried)
    since = torch.tensor((0.0, *LOOKS[: len(seen)])).diff()
    mean = (since @ torch.tensor([loss for loss, _ in seen]) / since.sum()).item()
    return {"validation_loss": mean, "validation_accuracy": seen[-1][1]}


def experiment(conditions: list[dict], what: str) -> Experiment:
    """The record of some models."""
    models = [condition["model"] for condition in conditions]
    return Experiment(
        what=what,
        chosen_on="validation images: the learning rate of each model, by the mean loss over the "
        "first quarter of the longest training, with one seed",
        metrics=METRICS,
        conditions=conditions,
        seeds=range(3),
        run=run,
        data=lambda: {f"recall, {part}": checksum(*images_of(part)) for part in IMAGES},
        settings={
            "training": {**RECIPE, "schedule": "flat, falls over the last fifth of the longest"},
            "longest": {condition["model"]: steps(condition) for condition in conditions},
            "looks": list(LOOKS),
            "enough": ENOUGH,
            "table": TABLE,
            "multiplies": {m: whole.cost_of(WHOLE if m == SINCOS else m)[1] for m in models},
        },
        replay=(conditions[0], 0),
        steps=steps,
        workers=1,
        choose=Choice(
            grid={"learning_rate": (1e-3, 2e-3, 4e-3)},
            trial=trial,
            length=0.25,
            finalists=0,
            limit=6,
        ),
    )


EXPERIMENT = experiment(
    [{"model": model} for model in MODELS],
    f"Recall, each model until {100 * ENOUGH:.0f} % of the validation images' patches are right, "
    f"or for {LONGEST} times the compute of `relatives_recall`: the ViT, a ViT that knows places "
    "from the start, and the Mixer.",
)
