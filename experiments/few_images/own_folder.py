"""A folder of one's own pictures: from scratch, or from weights, all at once or the head first.

The folder holds CIFAR-10's five odd classes as PNG files and is learned by the very command that a
reader types. The weights, of the record `five_classes`, were trained on the other five classes.
"""

import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from PIL import Image

from experiments.few_images.by_command import WEIGHTS, learned_by_command
from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.image_sets import root
from vitbook.data import ImageSet, load_torchvision

CLASSES = {1: "automobile", 3: "cat", 5: "dog", 7: "horse", 9: "truck"}
LEARNED, TESTED = 100, 200  # pictures of each class; the test's are the first official ones
SIZES = ["--model", "tiny", "--patch-size", "8", "--image-size", "32", "--shift", "2"]
BATCH, STEPS, HEAD_EPOCHS = 50, 300, 5  # 30 epochs; 5 more for the head, or none
STARTS = {  # options of the command
    "from scratch": [],
    "all at once": ["--weights", WEIGHTS, "--head-epochs", 0],
    "head first": ["--weights", WEIGHTS, "--head-epochs", HEAD_EPOCHS],
}


@lru_cache(maxsize=3)
def images_of(part: str) -> ImageSet:
    """uint8 (n, 3, 32, 32) of the five classes, and their labels in CIFAR-10."""
    images, labels = load_torchvision("cifar10", root(), part)
    index = torch.isin(labels, torch.tensor(list(CLASSES))).nonzero().flatten()
    return ImageSet(images[index], labels[index])


def write_folder(folder: Path, judged_on: str, seed: int, scale: float) -> None:
    """Pictures to learn from, drawn by the seed, and others below `test`; a file for each."""
    for place, part, count in (("train", "train", LEARNED), ("test", judged_on, TESTED)):
        images, labels = images_of(part)
        order = torch.arange(len(labels))
        if place == "train":
            order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
        for label, name in CLASSES.items():
            (folder / place / name).mkdir(parents=True)
            for i in order[labels[order] == label][: scaled(count, scale)].tolist():
                pixels = images[i].byte().permute(1, 2, 0).numpy()
                Image.fromarray(pixels).save(folder / place / name / f"{i}.png")


def learned(
    condition: dict, judged_on: str, seed: int, log: Log, scale: float, length: float, rate: float
) -> torch.Tensor:
    """How many pictures of each class (row) got which answer, after the command."""
    with tempfile.TemporaryDirectory() as photos:
        write_folder(Path(photos), judged_on, seed, scale)
        words = [*SIZES, "--batch-size", scaled(BATCH, scale), "--learning-rate", rate]
        words += ["--steps", scaled(STEPS, scale * length), *STARTS[condition["start"]]]
        logits, labels = learned_by_command(Path(photos), words, seed, log)
    K = len(CLASSES)
    return torch.bincount(labels * K + logits.argmax(dim=1), minlength=K * K).view(K, K)


def run(condition: dict, seed: int, log: Log, scale: float, learning_rate: float) -> Outcome:
    counts = learned(condition, "test", seed, log, scale, 1.0, learning_rate)
    accuracy = (counts.diag().sum() / counts.sum()).item()
    return Outcome({"test_accuracy": accuracy, "confusion": counts.tolist()})


def trial(
    condition: dict, seed: int, log: Log, scale: float, *, length: float, learning_rate: float
) -> dict[str, float]:
    """One rate, judged on pictures that no run learns from or is tested on."""
    counts = learned(condition, "validation", seed, log, scale, length, learning_rate)
    return {"validation_error": 1 - (counts.diag().sum() / counts.sum()).item()}


EXPERIMENT = Experiment(
    what="A folder of 500 pictures of five classes (CIFAR-10's odd ones, as PNG files) learned by "
    "`python -m vitbook train --data folder`: from scratch, or from weights that were trained on "
    "the other five classes, all of them at once or the head alone first; 1,000 test pictures.",
    chosen_on="validation pictures that no run learns from: for each start the learning rate with "
    "the fewest errors at full length, with pictures and first weights of its own",
    metrics={
        "test_accuracy": "share of the test pictures answered correctly",
        "confusion": "test pictures of each class (row) by the class answered (column), in "
        "alphabetical order",
    },
    conditions=[{"start": start} for start in STARTS],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"cifar10, odd classes, {part}": checksum(*images_of(part)) for part in ("train", "test")
    },
    settings={
        "classes": list(CLASSES.values()),
        "learned": LEARNED,
        "tested": TESTED,
        "batch": BATCH,
        "steps": STEPS,
        "head_epochs": HEAD_EPOCHS,
    },
    replay=({"start": "head first"}, 0),
    steps=lambda condition: STEPS,
    choose=Choice(
        grid={"learning_rate": (5e-4, 1e-3, 2e-3)},
        trial=trial,
        by="validation_error",
        length=1.0,
        finalists=0,
    ),
)
