"""What a ViT has to beat on the same images: the rows that stand in every table of accuracies."""

from __future__ import annotations

from pathlib import Path

from vitbook.book.intervals import Interval, student_interval
from vitbook.book.records import load_record

NAMES = ("logistic regression", "nearest neighbour", "MLP", "small CNN")
RECORDS = ("baselines", "small_networks", "whole_networks")


class Baselines(dict[str, Interval]):
    """Name -> test accuracy, its 95 % interval over seeds; printed, a table in percent.

    ``steps`` has the number of updates of those that come in several.
    """

    steps: dict[str, int]

    def __str__(self) -> str:
        lines = []
        for name, score in self.items():
            label = f"{name}, {self.steps[name]:,} steps" if name in self.steps else name
            spread = f" ± {100 * score.half:.1f}" if score.half else ""
            lines.append(f"{label:26} {100 * score.mean:.1f}{spread}")
        return "\n".join(lines)


def baselines(data: str, *, steps: int, folder: Path | None = None) -> Baselines:
    """Logistic regression, the nearest neighbour, an MLP and a small CNN: their test accuracy.

    The MLP has one hidden layer. It and the CNN were trained with several numbers of steps; the one
    nearest to ``steps`` is taken, and the table says which.

    Args:
        data: "digits", "10,000 of fashion-mnist", "10,000 of mnist", or a whole set: "mnist",
            "fashion-mnist" or "cifar10"; the records have the same names, and checksums of these
            images.
        steps: the number of updates of the model that is held against them.
        folder: where the records lie; the package's by default.

    Returns:
        The four by name. The nearest neighbour has no seeds: low and high are its mean.

    Raises:
        ValueError: the records do not know these images.
    """
    found: dict[str, Interval] = {}
    of: dict[str, int] = {}
    for record in (load_record(name, folder) for name in RECORDS):
        for one in record.conditions:
            model, length = one["model"], one.get("steps", steps)
            if one["data"] != data:
                continue
            if model in of and abs(of[model] - steps) <= abs(length - steps):
                continue
            values = record.values("test_accuracy", **one)
            single = Interval(*[float(values[0])] * 3)
            found[model] = student_interval(values) if len(values) > 1 else single
            of[model] = length
    if not found.keys() >= set(NAMES):
        raise ValueError(f"data must be images that the records have four models for, got {data!r}")
    rows = Baselines((name, found[name]) for name in NAMES)
    rows.steps = {name: of[name] for name in NAMES[2:]}
    return rows
