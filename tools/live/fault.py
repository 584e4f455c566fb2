"""What "name the fault" reads: thirteen recorded trainings, and what each test says of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.live import fault_tests as measure
from tools.live.fault_tests import LIKE, Training, large, small, unlike
from tools.live.pack import packed

# Fault -> the line that is wrong, as the reader finds it in the list; and what it does.
FAULTS = {
    "softmax over the queries": (
        "scores.softmax(dim=-2)",
        "The columns of a map sum to 1, its rows do not.",
    ),
    "heads split by view alone": (
        "q.view(B, h, N, d), without a transpose",
        "Each head holds half of the tokens, so one of them cannot see the last patch.",
    ),
    "scores not divided by sqrt(d)": (
        "(q @ k.mT).softmax(dim=-1)",
        "Its map is another one, although rows sum to 1 and both heads see the last patch.",
    ),
    "positions missing": (
        "the table is made, and never added",
        "A patch is the same wherever it stands.",
    ),
    "positions added twice": ("x + table + table", "The tokens hold the table twice."),
    "no residual around the MLP": (
        "x = mlp(norm2(x))",
        "What the last MLP does not pass on is lost.",
    ),
    "patches cut by reshape alone": (
        "images.reshape(B, N, P * P)",
        "A patch of the image lies in three tokens.",
    ),
    "last token read as class token": (
        "features[:, -1]",
        "The last patch answers, even where attention brings it nothing.",
    ),
    "never in evaluation mode": (
        "dropout of a tenth, also in tests",
        "Dropout is drawn anew at each call.",
    ),
    "normalised twice in tests": (
        "once in training",
        "In tests the pixels spread about three times as wide as in training.",
    ),
    "labels shuffled in a quarter of batches": (
        "the loader mixes images and labels",
        "It knows new images better than its training loss says.",
    ),
    "schedule stepped once per epoch": (
        "the warm-up of 40 updates lasts 40 epochs",
        "The training ends long before its warm-up.",
    ),
}


@dataclass(frozen=True)
class Test:
    """``name`` begins what the number ends; ``digits`` stand behind its point."""

    group: str
    name: str
    measure: Callable[[Training], float]
    sign: Callable[[float], int]
    digits: int = 2


LEARN, ASK, LOOK = "The training", "Ask the model", "Look inside"
TESTS = {
    "first": Test(
        LEARN,
        f"First loss; a guess has ln 4 = {math.log(4):.2f}",
        measure.first_loss,
        unlike(math.log(4)),
    ),
    "new": Test(LEARN, "Late training loss minus loss on new images", measure.lost, unlike(0)),
    "rate": Test(LEARN, "Highest rate, as a share of the one set", measure.highest_rate, unlike(1)),
    "code": Test(ASK, "Its weights in healthy code: logits change by", measure.healthy_code, large),
    "twice": Test(ASK, "The same images twice: logits change by", measure.twice, large),
    "rows": Test(ASK, "Rows of patches swapped: logits change by", measure.rows_swapped, small),
    "pixels": Test(LOOK, "Standard deviation of pixels that arrive", measure.pixels, unlike(1)),
    "cell": Test(
        LOOK, "One patch repainted: tokens that change", measure.tokens_changed, unlike(1), 0
    ),
    "table": Test(
        LOOK, "Times that the table of positions is added", measure.tables_added, unlike(1)
    ),
    "map": Test(LOOK, "First map, against one written out, differs by", measure.written_out, large),
    "sums": Test(LOOK, "Sum of a row of a map, farthest from 1", measure.row_sum, unlike(1)),
    "heads": Test(
        LOOK, "Last patch repainted: maps that change, of 2", measure.maps_changed, unlike(2), 0
    ),
    "mlp": Test(
        LOOK, "Last MLP silenced: answers differ by", measure.answers_differ("1.mlp.fc2"), small
    ),
    "mix": Test(
        LOOK, "Attention silenced: answers differ by", measure.answers_differ("attn.proj"), large
    ),
}
HEALTHY = "none"
ORDER = 56  # seed of the order of the patients, which is not that of the clinic's page


def data() -> dict:
    """The healthy training and twelve patients, in an order that says nothing.

    ``values`` and ``signs`` have a row for each, the healthy one first, and a column for each test.
    Equal signs are findings that cannot be told apart; ``curves`` says the same of the curves.
    """
    from vitbook.book.records import load_record

    record, faults = load_record("clinic"), list(FAULTS)
    order = random.Random(ORDER).sample(faults, len(faults))
    trainings = [training(record, fault) for fault in (HEALTHY, *order)]
    found = measured(trainings)
    seeds = [record.values("test_accuracy", fault=one.fault) for one in trainings]
    arrays = {
        "loss": [one.loss for one in trainings],
        "accuracy": [one.accuracy for one in trainings],
        "late": [one.late_loss for one in trainings],
        "trained": [one.train_accuracy for one in trainings],
        "seeds": seeds,
        "values": found,
    }
    tests = TESTS.values()
    signs = [[test.sign(v) for test, v in zip(tests, row, strict=True)] for row in found]
    return {
        "steps": record.settings["training"]["steps"],
        "faults": [[fault, *words] for fault, words in FAULTS.items()],
        "patients": [faults.index(fault) for fault in order],
        "tests": [[key, test.group, test.name, test.digits] for key, test in TESTS.items()],
        "arrays": {name: packed(array, "f32") for name, array in arrays.items()}
        | {"signs": packed(signs, "u8"), "curves": packed([*map(curves, trainings)], "u8")},
    }


def measured(trainings: list[Training]) -> list[list[float]]:
    """What each test finds in each training."""
    import torch

    with torch.no_grad(), torch.random.fork_rng():
        return [[test.measure(one) for test in TESTS.values()] for one in trainings]


def training(record: Any, fault: str) -> Training:
    """The first seed of a recorded training, with its weights."""
    from vitbook.book.clinic import PATIENTS

    files = {HEALTHY: "healthy"} | {name: f"patient_{n}" for n, name in PATIENTS.items()}
    names = ("loss", "accuracy", "test_accuracy", "train_accuracy")
    steps = record.settings["training"]["steps"]
    values = {name: record.values(name, fault=fault)[0].tolist() for name in names}
    return Training(fault=fault, weights=record.weights(files[fault]), steps=steps, **values)


def curves(one: Training) -> int:
    """What the curves alone tell: how many test images are right, and whether the loss fell."""
    return 2 * (one.test_accuracy < LIKE["accuracy"]) + (one.late_loss > LIKE["loss"])
