"""The tasks on which token mixers are compared, each with the record of the layers beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from vitbook.book.records import Record, load_record
from vitbook.comparison.garments_task import GARMENTS, garment_images, learn_garments
from vitbook.comparison.recall_task import (
    RECALL_GUESS,
    PatchAnswers,
    looks_until,
    recall_images,
    time_to_learn,
)
from vitbook.comparison.verdict import WHOLE
from vitbook.data import ImageSet
from vitbook.training import TrainConfig

BUDGET = 6  # times what attention needs until half of its answers are right
BLOCK = "mixing_recall"  # whose images and block are those of the measured times
TRIALS = 3  # seeds for each learning rate, where time is measured
SEEDS = range(600, 620)  # of the trainings that count; the record has others
FEW = 5  # of them at first; the others where one of these learns


@dataclass(frozen=True)
class Task:
    """What is to be learned.

    Args:
        record: Of the layers that were trained on it.
        words: What is asked, in a sentence or two.
        guess: Accuracy of the best guess.
        images: The images of a part, by the record, the part, the seed of the first part and the
            folder of the data set.
        learn: Trains a model with images to learn from and images to be asked: what was found, at
            least "loss", by which rates are chosen, and "accuracy".
        read_out: What is put round a ViT, so that it answers.
        timed: What the record of times calls the task; "" where right answers after equal compute
            are compared, and not the time to learn.
        needs: The data set that has to be there.
    """

    record: str
    words: str
    guess: float
    images: Callable[[Record, str, int, Any], ImageSet]
    learn: Callable[[nn.Module, ImageSet, ImageSet, TrainConfig, Record], dict[str, float]]
    read_out: Callable[[nn.Module], nn.Module]
    timed: str = ""
    needs: str = ""


def record_of(name: str, folder: Path | None = None) -> Record:
    """The record of a task. Where time is measured, it holds the runs of this task alone, the block
    and the images, and as updates those of the ViT within the budget of a contest.

    Args:
        name: One of ``TASKS``.
        folder: Of the records; the package's own by default.
    """
    task = TASKS[name]
    record = load_record(task.record, folder)
    if not task.timed:
        return record
    block, of = load_record(BLOCK, folder).settings, record.settings
    longest = of["longest"][task.timed]
    models = {one: of["models"][one] | {"steps": longest[one]} for one in longest}
    table = {"position_std": of["tasks"][task.timed]["std"]}
    models[WHOLE] = block["models"][WHOLE] | table | models[WHOLE]
    runs = [one for one in record.runs if one["condition"]["task"] == task.timed]
    record = replace(record, runs=runs)
    half = record.values("until_half", model=WHOLE)  # in every seed within the budget
    training = block["training"] | {"steps": round(BUDGET * float(np.median(half)))}
    settings = {"models": models, "looks": of["looks"], "trial_seeds": TRIALS, "training": training}
    return replace(record, settings=block | settings)


def _drawn(partner: str, record: Record, part: str, first: int, root: Path | None) -> ImageSet:
    counts = record.settings["counts"]
    return recall_images(partner, counts[part], first + [*counts].index(part))


def _learn_recall(
    model: nn.Module, known: ImageSet, asked: ImageSet, config: TrainConfig, record: Record
) -> dict[str, float]:
    at = record.settings["looks"]
    some = ImageSet(*(one[: at["images"]] for one in asked))
    looks = looks_until(config.total_steps(len(known.images)), at["first"], at["ratio"])
    return time_to_learn(model, known, some, config, looks)


def _recall(timed: str, partner: str, how: str) -> Task:
    return Task(
        record="time_to_learn",
        words=f"Every patch {how}, and is asked for that one's colour. Each of four colours is "
        "equally frequent, and a patch never names itself.",
        guess=RECALL_GUESS,
        images=partial(_drawn, partner),
        learn=_learn_recall,
        read_out=PatchAnswers,
        timed=timed,
    )


TASKS = {
    "places": _recall("place", "named", "names another one by its place"),
    "labels": _recall(
        "label",
        "labelled",
        "carries a label that moves from image to image, names another one by its label",
    ),
    "garments": Task(
        record="mixing_pictures",
        words="Which of ten garments of Fashion-MNIST lies somewhere on a noisy canvas?",
        guess=0.1,
        images=lambda record, part, first, root: garment_images(part, first, root),
        learn=lambda model, known, asked, config, record: learn_garments(
            model, known, asked, config
        ),
        read_out=lambda model: model,
        needs=GARMENTS,
    ),
}
