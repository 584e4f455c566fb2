"""The tasks on which token mixers are compared, each with the record of the layers beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from vitbook.book.records import Record
from vitbook.comparison.garments_task import (
    GARMENTS,
    fit_garments,
    garment_images,
    judge_garments,
)
from vitbook.comparison.recall_task import (
    RECALL_GUESS,
    PatchAnswers,
    answered,
    fit_recall,
    recall_images,
)
from vitbook.data import ImageSet
from vitbook.training import TrainConfig


@dataclass(frozen=True)
class Task:
    """What is to be learned.

    Args:
        record: Of the layers that were trained on it.
        words: What is asked, in a sentence or two.
        guess: Share of right answers of the best guess.
        images: The images of a part, by the record, the part, the seed of the first part and the
            folder of the data set.
        fit: Trains a model.
        judge: Mean cross-entropy in nats and share of right answers.
        read_out: What is put round a ViT, so that it answers.
        needs: The data set that has to be there.
    """

    record: str
    words: str
    guess: float
    images: Callable[[Record, str, int, Any], ImageSet]
    fit: Callable[[nn.Module, ImageSet, TrainConfig], Any]
    judge: Callable[[nn.Module, ImageSet], tuple[float, float]]
    read_out: Callable[[nn.Module], nn.Module]
    needs: str = ""


def _drawn(partner: str, record: Record, part: str, first: int, root: Path | None) -> ImageSet:
    counts = record.settings["counts"]
    return recall_images(partner, counts[part], first + [*counts].index(part))


def _recall(record: str, partner: str, how: str) -> Task:
    return Task(
        record=record,
        words=f"Every patch {how}, and is asked for that one's colour. Each of four colours is "
        "equally frequent, and a patch never names itself.",
        guess=RECALL_GUESS,
        images=partial(_drawn, partner),
        fit=lambda model, known, config: fit_recall(model, known, config, lambda loss: None),
        judge=answered,
        read_out=PatchAnswers,
    )


TASKS = {
    "places": _recall("relatives_recall", "named", "names another one by its place"),
    "labels": _recall(
        "relatives_labels",
        "labelled",
        "carries a label that moves from image to image, names another one by its label",
    ),
    "garments": Task(
        record="relatives_pictures",
        words="Which of ten garments of Fashion-MNIST lies somewhere on a noisy canvas?",
        guess=0.1,
        images=lambda record, part, first, root: garment_images(part, first, root),
        fit=fit_garments,
        judge=judge_garments,
        read_out=lambda model: model,
        needs=GARMENTS,
    ),
}
