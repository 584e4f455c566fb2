"""The clinic: what each of twelve silent faults costs a small ViT, and what it leaves behind."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from experiments.machinery.across_seeds import several
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import KNOWN
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, logged, scaled
from experiments.machinery.measures import parameters, thin
from vitbook.book.clinic import PATIENTS
from vitbook.book.faults import FAULTS, LABELS, SCHEDULE, SIZES, ClinicViT, model_with, with_fault
from vitbook.data import ImageSet, pointer
from vitbook.layers.ablations import UniformAttention
from vitbook.training import TrainConfig, evaluate, train, warmup_cosine

RECIPE: dict = {"steps": 800, "batch_size": 64, "warmup_steps": 40}
IMAGES = {"train": 8_000, "validation": 2_000, "test": 4_000}
FIRST = 310  # seed of the first part
EVALUATE_EVERY = 50  # steps
TRIAL_SEEDS = 3
SHUFFLED = 0.25  # share of the batches whose labels are those of other images
HEALTHY, UNIFORM = "none", "uniform attention"


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Pointer images (n, 1, 24, 24) and labels (n,); each part has a seed of its own."""
    found = pointer(scaled(IMAGES[part], scale), seed=FIRST + list(IMAGES).index(part))
    return ImageSet(found.images, found.labels)


def build(fault: str, seed: int) -> ClinicViT:
    """A model that is not trained yet; each fault begins with the same weights."""
    torch.manual_seed(seed)
    if fault == UNIFORM:  # the control: what is known without looking

        def uniform(embed_dim: int, num_heads: int) -> UniformAttention:
            return UniformAttention(embed_dim=embed_dim)

        return ClinicViT(**SIZES, attn_layer=uniform)
    model = ClinicViT(**SIZES)
    return model if fault == HEALTHY else with_fault(model, fault)


def shuffle_some(images: Tensor, generator: torch.Generator) -> Tensor:
    """Now and then the images of a batch in another order, so that the labels are others'."""
    if torch.rand((), generator=generator) >= SHUFFLED:
        return images
    return images[torch.randperm(len(images), generator=generator)]


def stepped_per_epoch(step: int, total_steps: int, warmup_steps: int) -> float:
    """The schedule of the package, asked for the number of the epoch instead of the step."""
    epoch = step // (IMAGES["train"] // RECIPE["batch_size"])
    return warmup_cosine(epoch, total_steps, warmup_steps)


TRAINING: dict[str, dict[str, Any]] = {  # arguments of `train`
    LABELS: {"augment": shuffle_some},
    SCHEDULE: {"schedule": stepped_per_epoch},
}


def fit(
    fault: str,
    seed: int,
    log: Log,
    scale: float,
    *,
    length: float = 1.0,
    learning_rate: float,
) -> tuple[ClinicViT, list[dict]]:
    """Train one model with a fault: it and a row for each step."""
    config = TrainConfig(
        steps=scaled(RECIPE["steps"], scale * length),
        batch_size=scaled(RECIPE["batch_size"], scale),
        warmup_steps=RECIPE["warmup_steps"],
        learning_rate=learning_rate,
        seed=seed,
    )
    model = build(fault, seed)
    history = train(
        model,
        *images_of("train", scale),
        config,
        loss_function=logged(log),
        evaluate_on=images_of("validation", scale),
        evaluate_every=scaled(EVALUATE_EVERY, scale),
        progress=False,
        **TRAINING.get(fault, {}),
    )
    return model, history


def run(condition: dict, seed: int, log: Log, scale: float, learning_rate: float) -> Outcome:
    """Train one model with a fault, and test it as whoever has not seen the fault would."""
    fault = condition["fault"]
    model, history = fit(fault, seed, log, scale, learning_rate=learning_rate)
    test, weights = images_of("test", scale), model.state_dict()
    torch.manual_seed(seed)  # of dropout that is still on
    result = evaluate(model, *test)
    known = (part[:KNOWN] for part in images_of("train", scale))
    metrics: dict[str, float | list] = {
        "test_accuracy": result.accuracy,
        "test_loss": result.loss,
        "train_accuracy": evaluate(model, *known).accuracy,
        "loss": thin([row["loss"] for row in history]),
        "accuracy": [row["val_accuracy"] for row in history if row["val_accuracy"] is not None],
        "parameters": parameters(model),
    }
    if fault != UNIFORM:
        metrics["repaired_accuracy"] = evaluate(model_with(weights), *test).accuracy
    return Outcome(metrics, weights)


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, learning_rate: float
) -> dict[str, float]:
    """Train one model with a rate on trial, and judge it on validation images."""
    given = {"length": length, "learning_rate": learning_rate}
    model, _ = fit(condition["fault"], seed, log, scale, **given)
    result = evaluate(model, *images_of("validation", scale))
    return {"validation_loss": result.loss, "validation_accuracy": result.accuracy}


EXPERIMENT = Experiment(
    what="Twelve faults that raise no error, each in the same small ViT, on pointer images (the "
    "glyph in the first of nine cells names the cell with the answer); the healthy model beside "
    "them, and one that cannot choose whom to listen to.",
    chosen_on="validation images: the learning rate of the healthy model, which all faults take, "
    "and that of uniform attention; each after half of the steps, with three seeds",
    metrics={
        "test_accuracy": "share of the test images answered rightly, fault and all",
        "test_loss": "mean cross-entropy on the test images, in nats",
        "train_accuracy": f"share of the first {KNOWN:,} training images answered rightly",
        "repaired_accuracy": "share of the test images that the healthy model answers rightly with "
        "the weights that were trained with the fault",
        "loss": "training loss, about 100 means over equally many steps, in nats",
        "accuracy": f"share of the validation images answered rightly, every {EVALUATE_EVERY} "
        "steps; fault and all",
        "parameters": "numbers that are learned",
    },
    conditions=[{"fault": fault} for fault in (HEALTHY, UNIFORM, *FAULTS)],
    seeds=range(3),
    run=run,
    data=lambda: {f"pointer, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={"model": SIZES, "training": RECIPE, "counts": IMAGES, "first_seed": FIRST},
    replay=({"fault": HEALTHY}, 0),
    keep={
        "healthy": ({"fault": HEALTHY}, 0),
        **{f"patient_{n}": ({"fault": fault}, 0) for n, fault in PATIENTS.items()},
    },
    steps=lambda condition: RECIPE["steps"],
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(trial, TRIAL_SEEDS),
        finalists=0,
        arm=lambda condition: {"fault": UNIFORM if condition["fault"] == UNIFORM else HEALTHY},
    ),
)
