"""Recorded experiments: what took longer than a page may take, with its seeds and its machine.

The files lie in ``vitbook/recorded``, one JSON for each experiment and its weights beside it; the
scripts that write them are in the repository's ``experiments`` folder.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from vitbook.book.intervals import Interval, student_interval

# Where the package keeps its records.
FOLDER = Path(str(files("vitbook"))) / "recorded"
FORMAT = 1
_OPTIONAL = {"folder", "choice", "trials"}  # not in every file


@dataclass(frozen=True)
class Record:
    """One recorded experiment.

    ``name``, ``what`` (one sentence) and ``chosen_on`` (which data chose the settings) are
    strings; ``settings`` holds what was set (a model's arguments, the recipe); ``machines``,
    ``versions``, ``data`` (SHA-256 of what was learned from), ``wall_seconds`` and ``date`` say how
    it was made; ``metrics`` explains each measured number. ``runs`` has one entry for each
    condition and seed. Where a setting was searched for, ``choice`` says how (the grid, what
    decided, each arm's winner) and ``trials`` has one entry for each value that was tried.
    """

    name: str
    what: str
    chosen_on: str
    settings: dict
    metrics: dict[str, str]
    runs: list[dict]
    machines: list[dict]
    versions: dict[str, str]
    data: dict[str, str]
    wall_seconds: float
    date: str
    weight_files: dict[str, dict]
    folder: Path = field(repr=False)
    choice: dict = field(default_factory=dict)
    trials: list[dict] = field(default_factory=list)

    @property
    def conditions(self) -> list[dict]:
        """What was compared, in the order of the experiment."""
        seen = []
        for run in self.runs:
            if run["condition"] not in seen:
                seen.append(run["condition"])
        return seen

    @property
    def seeds(self) -> list[int]:
        """All seeds that occur, in order."""
        return sorted({run["seed"] for run in self.runs})

    @property
    def device(self) -> str:
        """Where it ran, in words."""
        return "; ".join(machine["device"] for machine in self.machines)

    def values(self, metric: str, **condition: Any) -> np.ndarray:
        """What was measured under one condition, in the order of the seeds.

        Args:
            metric: a key of ``metrics``.
            **condition: as many of the condition's entries as single it out.

        Returns:
            float64, (seeds,) for a number, (seeds, ...) for a curve or a table.

        Raises:
            ValueError: unknown metric, or not exactly one condition fits.
        """
        return np.array([value for _, value in self._by_seed(metric, condition)], dtype=float)

    def mean(self, metric: str, **condition: Any) -> float | np.ndarray:
        """Mean over the seeds of one condition; of curves, point by point."""
        mean = self.values(metric, **condition).mean(axis=0)
        return float(mean) if mean.ndim == 0 else mean

    def interval(self, metric: str, *, confidence: float = 0.95, **condition: Any) -> Interval:
        """Mean over the seeds of one condition with its Student t interval."""
        return student_interval(self.values(metric, **condition), confidence)

    def difference(
        self, metric: str, first: dict, second: dict, *, confidence: float = 0.95
    ) -> Interval:
        """Mean of ``first`` minus ``second``, paired by seed, with its Student t interval.

        Raises:
            ValueError: also when the two were not run with the same seeds.
        """
        ours, theirs = dict(self._by_seed(metric, first)), dict(self._by_seed(metric, second))
        if ours.keys() != theirs.keys():
            raise ValueError(
                f"first and second must have the same seeds to be paired, got {list(ours)} for "
                f"{first} and {list(theirs)} for {second}"
            )
        return student_interval([ours[seed] - theirs[seed] for seed in ours], confidence)

    def weights(self, name: str | None = None) -> dict[str, Tensor]:
        """A trained model's state dict, in float32 (stored in float16).

        Args:
            name: a key of ``weight_files``; not needed when there is only one.
        """
        if name is None and len(self.weight_files) == 1:
            (name,) = self.weight_files
        if name not in self.weight_files:
            there = ", ".join(map(repr, self.weight_files)) or "none are stored"
            raise ValueError(f"name must be one of the stored weights ({there}), got {name!r}")
        entry = self.weight_files[name]
        path = self.folder / entry["file"]
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            raise ValueError(f"{path} is missing or damaged; install vitbook again")
        loaded = load_file(path)
        return {k: v.float() if v.dtype == torch.float16 else v for k, v in loaded.items()}

    def _by_seed(self, metric: str, condition: dict) -> list[tuple[int, Any]]:
        if metric not in self.metrics:
            known = ", ".join(map(repr, self.metrics))
            raise ValueError(f"metric must be one of {known}, got {metric!r}")
        runs = [run for run in self.runs if metric in run["metrics"]]
        fitting = [run for run in runs if condition.items() <= run["condition"].items()]
        found = {json.dumps(run["condition"], sort_keys=True) for run in fitting}
        if len(found) != 1:
            count = "no condition fits" if not found else f"{len(found)} conditions fit"
            one_each = {json.dumps(run["condition"]): None for run in (fitting or runs)}
            raise ValueError(
                f"condition must single out one: {count} {condition} in record {self.name!r}, "
                f"metric {metric!r}; there are {'; '.join(one_each)}"
            )
        return sorted((run["seed"], run["metrics"][metric]) for run in fitting)


def list_records(folder: Path | None = None) -> list[str]:
    """The names of all records, in alphabetical order."""
    return sorted(path.stem for path in Path(folder or FOLDER).glob("*.json"))


def load_record(name: str, folder: Path | None = None) -> Record:
    """Read a recorded experiment.

    Args:
        name: one of ``list_records()``.
        folder: where to look; the installed package's own records by default.

    Raises:
        TypeError: when the name is not a string.
        ValueError: for an unknown name, a damaged file, or one written in another format.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}")
    folder = Path(folder or FOLDER)
    if name not in list_records(folder):
        known = ", ".join(list_records(folder)) or "none"
        raise ValueError(f"name must be one of the records ({known}), got {name!r}")
    path = folder / f"{name}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable ({error}); install vitbook again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not a record in format {FORMAT}")
    try:
        fields = {key: content[key] for key in Record.__dataclass_fields__ if key not in _OPTIONAL}
    except KeyError as missing:
        raise ValueError(f"{path} lacks the entry {missing}; record it again") from None
    chosen = {key: content[key] for key in ("choice", "trials") if key in content}
    return Record(**fields, folder=folder, **chosen)
