"""Does the whole model beat a plain one, on the same images? A record where it does not is refused.

A model that a linear classifier beats has not learned what the experiment is about.
"""

from __future__ import annotations

from pathlib import Path

from experiments.machinery.experiment import MustBeat
from vitbook.intervals import student_interval
from vitbook.records import load_record


def require_beaten(
    must: MustBeat, values: list[float], data: dict[str, str], folder: Path | None = None
) -> None:
    """The interval of the whole model has to lie above the other's mean.

    Args:
        must: what is to be beaten.
        values: the metric of the whole model, one for each seed.
        data: the checksums of the images that it was trained and tested on.
        folder: where the other record lies; the package's by default.

    Raises:
        ValueError: it does not lie above, or the other was measured on other images.
    """
    other = load_record(must.record, folder)
    if not data or not set(data.values()) <= set(other.data.values()):
        raise ValueError(f"record {must.record!r} was not made with the same images: {list(data)}")
    mark = other.mean(must.metric, data=must.data, model=must.model)
    low = student_interval(values).low if len(values) > 1 else values[0]
    if low <= mark:
        raise ValueError(
            f"refused: {must.whole} does not beat {must.model} on {must.data}: {must.metric} "
            f"{sum(values) / len(values):.4f}, its interval from {low:.4f} on, against {mark:.4f}; "
            "train longer, or mend the model"
        )
