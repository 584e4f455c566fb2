"""What "draw a digit" reads: the recorded model, its threshold, and drawings to begin with."""

import json
from pathlib import Path

import torch

from website.live.pack import model

DRAWINGS = Path(__file__).resolve().parents[2] / "experiments/drawn_digits/strokes.json"
LABELS = [*"0123456789", "A", "scribble"]
SHAPES = {
    "6": "closed belly, round"
}  # the answer misses one of its patches; the figure starts with it


def samples() -> list[dict]:
    """One drawing of each label that another hand made for the test: of SHAPES, or the first."""
    drawings = json.loads(DRAWINGS.read_text(encoding="utf-8"))["strokes"]

    def wanted(one: dict, label: str) -> bool:
        return one["label"] == label and one["shape"] == SHAPES.get(label, one["shape"])

    first = [next(one for one in drawings if wanted(one, label)) for label in LABELS]
    return [{key: one[key] for key in ("label", "strokes", "width")} for one in first]


def data() -> dict:
    """The model, the threshold, the scale of MNIST, an order for the shuffle, drawings."""
    from vitbook.book.records import load_record
    from vitbook.data import STATISTICS

    record = load_record("draw_digit")
    (mean,), (std,) = STATISTICS["mnist"]
    order = torch.randperm(49, generator=torch.Generator().manual_seed(0)).tolist()
    return {
        "model": model(record.settings["model"], record.weights()),
        "threshold": record.values("threshold", model="vit")[0],
        "mean": mean,
        "std": std,
        "order": order,
        "samples": samples(),
    }
