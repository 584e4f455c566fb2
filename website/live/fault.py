"""What "name the fault" reads: thirteen recorded trainings, and what each test says of them."""

import random
from typing import Any

from website.live.fault_tests import LIKE, Training, small
from website.live.fault_words import FAULTS, TESTS
from website.live.pack import packed

HEALTHY = "none"
ORDER = 56  # seed of the order of the patients, which is not that of the clinic's page


def data() -> dict:
    """The healthy training and twelve patients, in an order that says nothing.

    ``values`` and ``signs`` have a row for each, the healthy one first, and a column for each test.
    Equal signs are findings that cannot be told apart; ``curves`` says the same of the curves. The
    last of a test says that it asks only whether it finds 0.
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
        "faults": [
            [fault, line, does, list(TESTS).index(shows)]
            for fault, (line, does, shows) in FAULTS.items()
        ],
        "patients": [faults.index(fault) for fault in order],
        "tests": [
            [key, test.group, test.name, test.means, test.digits, test.sign is small]
            for key, test in TESTS.items()
        ],
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
