"""Does a model beat a plain one, on the same images? A record where none does is refused.

A model that a linear classifier beats has not learned what the experiment is about.
"""

from pathlib import Path

from experiments.machinery.experiment import MustBeat
from vitbook.book.baselines import NAMES
from vitbook.book.intervals import student_interval
from vitbook.book.records import load_record

LINEAR, METRIC = NAMES[0], "test_accuracy"
APART = ("task", "data", "change")  # conditions that differ in these ask other questions
SETS = {  # in `baselines`: images, as its checksums name them -> as its conditions do
    "digits": "digits",
    "fashion-mnist": "10,000 of fashion-mnist",
    "fashion-mnist whole": "fashion-mnist",
    "mnist whole": "mnist",
    "cifar10 whole": "cifar10",
}


def require_beaten(
    must: MustBeat, values: list[float], data: dict[str, str], folder: Path | None = None
) -> None:
    """The interval of the whole model has to lie above the mean of logistic regression.

    Args:
        must: what is to be beaten.
        values: the accuracy of the whole model, one for each seed.
        data: the checksums of the images that it was trained and tested on.
        folder: where `baselines` lies; the package's by default.

    Raises:
        ValueError: it does not lie above, or the other was measured on other images.
    """
    other = load_record("baselines", folder)
    if not data or not set(data.values()) <= set(other.data.values()):
        raise ValueError(f"record 'baselines' was not made with the same images: {list(data)}")
    mark = other.mean(METRIC, data=must.data, model=LINEAR)
    low = student_interval(values).low if len(values) > 1 else values[0]
    if low <= mark:
        raise ValueError(
            f"refused: {must.whole} does not beat {LINEAR} on {must.data}: {METRIC} "
            f"{sum(values) / len(values):.4f}, its interval from {low:.4f} on, against {mark:.4f}; "
            "train longer, or mend the model"
        )


def require_above_linear(record: dict, folder: Path | None = None) -> None:
    """On each task, some arm of a record has to lie above logistic regression, interval and all.

    That classifier is an arm of the same record, or `baselines` has it for the same images; a
    record without either is not judged. One arm is enough, and it may be a longer training: what
    the others lack is what the record is about. Which arm a page speaks of, and whether that one
    is above, is for the page to say.

    Args:
        record: its "name", its "summary" and the checksums of its "data", as it is written.
        folder: where `baselines` lies; the package's by default.

    Raises:
        ValueError: none does, with the task and both numbers of the one that comes nearest.
    """
    rows = [row for row in record["summary"] if row["metric"] == METRIC]
    for task in sorted({_task(row["condition"]) for row in rows}):
        here = [row for row in rows if _task(row["condition"]) == task]
        arms = [row for row in here if not set(NAMES) & {*map(str, row["condition"].values())}]
        marks = [row["mean"] for row in here if LINEAR in row["condition"].values()]
        mark = max(marks or _of_baselines(record["data"], task, folder), default=0.0)
        if not arms:
            continue
        arms = [row for row in arms if "low" in row] or arms  # single runs only among themselves
        best = max(arms, key=_low)
        low = _low(best)
        if low <= mark < 1:  # at 1 both solve the task
            where = f"{record['name']}, {task}" if task else record["name"]
            raise ValueError(
                f"refused: no arm of {where} beats {LINEAR}: the best, {best['condition']}, has "
                f"{best['mean']:.4f}, its interval from {low:.4f} on, against {mark:.4f}; "
                "train longer, or mend the model"
            )


def _low(row: dict) -> float:
    return row.get("low", row["mean"])  # a single run has no interval


def _task(condition: dict) -> str:
    return ", ".join(str(condition[key]) for key in APART if key in condition)


def _of_baselines(data: dict[str, str], task: str, folder: Path | None) -> list[float]:
    """For the images that were learned from; where these are several sets, for the task's."""
    other = load_record("baselines", folder)
    learned = {key for key, checksum in other.data.items() if checksum in data.values()}
    names = {SETS[key.partition(", ")[0]] for key in learned if "train" in key}
    asked = names & {task} if task else names
    return [float(other.mean(METRIC, data=name, model=LINEAR)) for name in asked]
