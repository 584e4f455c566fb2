"""The clinic: what each of twelve silent faults costs a small ViT, and what it leaves behind."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from experiments.machinery.choose import Choice, several
from experiments.machinery.classifier import KNOWN, METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from vitbook.book.clinic import PATIENTS
from vitbook.book.faults import FAULTS, LABELS, SCHEDULE, SIZES, ClinicViT, model_with, with_fault
from vitbook.data import ImageSet, pointer
from vitbook.layers.ablations import UniformAttention
from vitbook.training import evaluate, warmup_cosine

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


def build(fault: str) -> ClinicViT:
    """A model that is not trained yet; each fault begins with the same weights."""
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


CLASSIFIER = Classifier(
    build=build,
    images=images_of,
    recipe=RECIPE,
    options=lambda condition: TRAINING.get(condition["fault"], {}),
)


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model with a fault, and test it as whoever has not seen the fault would."""
    validation, every = images_of("validation", scale), scaled(EVALUATE_EVERY, scale)
    watching, rows = CLASSIFIER.watched(validation, every)
    model, losses = watching.fit(condition, seed, log, scale, **chosen)
    weights = model.state_dict()
    torch.manual_seed(seed)  # of dropout that is still on
    metrics = watching.measure(model, losses, scale)
    metrics["accuracy"] = [row["val_accuracy"] for row in rows]
    if condition["fault"] != UNIFORM:
        repaired = evaluate(model_with(weights), *images_of("test", scale))
        metrics["repaired_accuracy"] = repaired.accuracy
    return Outcome(metrics, weights)


EXPERIMENT = Experiment(
    what="Twelve faults that raise no error, each in the same small ViT, on pointer images (the "
    "glyph in the first of nine cells names the cell with the answer); the healthy model beside "
    "them, and one that cannot choose whom to listen to.",
    chosen_on="validation images: the learning rate of the healthy model, which all faults take, "
    "and that of uniform attention; each after half of the steps, with three seeds",
    metrics={
        **METRICS,
        "test_accuracy": "share of the test images answered rightly, fault and all",
        "train_accuracy": f"share of the first {KNOWN:,} training images answered rightly",
        "repaired_accuracy": "share of the test images that the healthy model answers rightly with "
        "the weights that were trained with the fault",
        "accuracy": f"share of the validation images answered rightly, every {EVALUATE_EVERY} "
        "steps; fault and all",
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
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(CLASSIFIER.trial, TRIAL_SEEDS),
        finalists=0,
        arm=lambda condition: {"fault": UNIFORM if condition["fault"] == UNIFORM else HEALTHY},
    ),
)
