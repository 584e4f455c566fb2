"""Drawings by hand for the digit model.

They lie in strokes.json. Who drew them did not write the generator that the model learned from. A
digit counts as read when the answer is right and sure; all else has to get "not sure".
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from experiments.drawn_digits.strokes import PEN, drawn

FILE = Path(__file__).with_name("strokes.json")
NOT_SURE = "not sure"


@dataclass(frozen=True)
class Drawing:
    """One drawing by hand: what it shows, how and where, and its strokes."""

    label: str
    shape: str
    placement: str
    strokes: list
    width: float = PEN

    @property
    def wanted(self) -> str:
        """What the model should say."""
        return self.label if self.label.isdecimal() else NOT_SURE


def drawings(file: Path = FILE) -> list[Drawing]:
    """All drawings of a file.

    Raises:
        ValueError: The file is no list of drawings; the message says what it should be.
    """
    try:
        return [Drawing(**one) for one in json.loads(file.read_text(encoding="utf-8"))["strokes"]]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f'{file.name} must be {{"strokes": [{{"label", "shape", "placement", "strokes"}}, '
            f"...]}}: {error}"
        ) from None


def images_of(some: list[Drawing]) -> Tensor:
    """(n, 1, 28, 28) in 0 ... 1, float32."""
    return torch.stack([drawn(one.strokes, one.width) for one in some])[:, None].float()


def said(given: Tensor, threshold: float) -> list[str]:
    """What a model says with probabilities (n, 10)."""
    sure, answer = given.max(dim=-1)
    return [
        str(a) if s >= threshold else NOT_SURE
        for s, a in zip(sure.tolist(), answer.tolist(), strict=True)
    ]


def score(some: list[Drawing], words: list[str]) -> dict[str, tuple[int, int]]:
    """For each label: how many drawings got what is wanted, and how many there are."""
    right = Counter(d.label for d, word in zip(some, words, strict=True) if word == d.wanted)
    return {label: (right[label], n) for label, n in Counter(d.label for d in some).items()}


def share(counts: dict[str, tuple[int, int]], *, digits: bool) -> float:
    """The share of right ones, of the digits or of all else."""
    kept = [pair for label, pair in counts.items() if label.isdecimal() == digits]
    return sum(right for right, _ in kept) / sum(n for _, n in kept)
