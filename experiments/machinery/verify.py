"""Does a record still hold? Its golden replay is made again, and the rest of it is compared."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.machinery.choose import decide
from experiments.machinery.experiment import Experiment, load_experiment, script_of
from experiments.machinery.files import write_json
from experiments.machinery.golden import golden_of, golden_path, moved, scales_of
from experiments.machinery.recording import TIMES
from experiments.machinery.worker import first_losses, first_losses_of_trial
from vitbook.data import DataError

# Processors differ in how they round. The same 20 steps with AVX-512, AVX2 and SSE kernels stayed
# within 1.3e-6 of each other; a changed setting or formula moves a loss far more than this.
TOLERANCE = 1e-5


def verify(name: str, folder: Path) -> tuple[bool, str]:
    """Is a record what the present code computes? No data set is needed.

    Args:
        name: the record, which is also the experiment's name, or the path of its script.
        folder: where the record lies.

    Returns:
        Whether the record holds, and a sentence that says why.
    """
    if not _path(name, folder).is_file():
        return False, "NOT VERIFIED: it has no record"
    record, experiment = _read(name, folder), load_experiment(name)
    choice = record.get("choice")
    try:
        if choice and decide(choice, record["trials"]) != choice["winners"]:
            return False, "REFUSED: the stored choice is not what its trials say"
    except ValueError as error:
        return False, f"REFUSED: {error}"
    if found := list(_declared_otherwise(experiment, record)):
        return False, f"STALE: {'; '.join(found)}"
    if experiment.timing:
        versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
        return True, f"measures time: it was so on {record['date']}, with {versions}"
    path = golden_path(name, folder)
    if not path.is_file():
        return False, f"NOT VERIFIED: it has no golden replay {path}; --stamp {name} makes one"
    kept = json.loads(path.read_text(encoding="utf-8"))
    if found := moved(kept, golden_of(experiment, _winners(record), scales_of(kept))):
        first = "; ".join(found[:3])
        return False, f"STALE: {len(found)} numbers of its golden replay moved: {first}"
    return True, f"holds: {len(kept['runs'])} runs of its golden replay are the same"


def stamp(name: str, folder: Path) -> list[str]:
    """Keep what the present code computes as golden replay, and what it says in the record.

    The words and settings of the script go into the record, not its numbers: whoever stamps after
    a change that matters records again, or says why the numbers stand.

    Returns:
        What is different from before, in sentences.

    Raises:
        ValueError: there is no record, or it has other runs or another search than the script.
    """
    if not _path(name, folder).is_file():
        raise ValueError(f"{name} has no record: make experiments NAME={name} writes both")
    record, experiment = _read(name, folder), load_experiment(name)
    if found := list(_asked_otherwise(experiment, record)):
        raise ValueError(f"{name} has to be recorded again: {'; '.join(found)}")
    said = _said(experiment)
    found = [f"{key} in other words" for key in said if record[key] != _plain(said[key])]
    if found:
        write_json(_path(name, folder), {**record, **said})
    if experiment.timing:
        return found
    path = golden_path(name, folder)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    now = golden_of(experiment, _winners(record), scales_of(kept))
    differences = moved(kept, now) if kept else ["a new golden replay"]
    if differences or any(kept.get(key) != now[key] for key in ("constants", "versions")):
        write_json(path, now)
    return found + differences


def replay(name: str, folder: Path) -> tuple[bool, str]:
    """The first steps of one run and of one trial, at full size, on the real data.

    Returns:
        Whether their losses are those of the record, and a sentence.
    """
    record, experiment = _read(name, folder), load_experiment(name)
    then = record["replay"]
    if not then or not experiment.replay:
        return True, "has no losses to replay"
    torch.set_num_threads(1)
    try:
        pairs = [(first_losses(experiment, _winners(record)), then["losses"])]
        if trial := then.get("trial"):
            pairs.append((first_losses_of_trial(experiment, trial), trial["losses"]))
    except DataError as error:
        return False, f"NOT REPLAYED: it lacks its data: {error}"
    for what, (now, before) in zip(("run", "trial"), pairs, strict=False):
        if step := first_difference(now, before):
            return False, f"STALE: the losses of a {what} differ from step {step} on"
    return True, f"holds: {sum(len(now) for now, _ in pairs)} replayed losses are the same"


def first_difference(now: Sequence[float], then: Sequence[float]) -> int | None:
    """The first step, from 1, whose loss is another one; None where all are equal."""
    for i, (a, b) in enumerate(zip(now, then, strict=False)):
        if not np.isclose(a, b, rtol=TOLERANCE, atol=0):
            return i + 1
    return None if len(now) == len(then) else min(len(now), len(then)) + 1


def _declared_otherwise(experiment: Experiment, record: dict) -> Iterator[str]:
    """What the script declares that the record was not made with."""
    yield from _asked_otherwise(experiment, record)
    if record["settings"] != _plain(experiment.settings):
        keys = record["settings"].keys() | experiment.settings.keys()
        now, other = _plain(experiment.settings), record["settings"]
        names = sorted(key for key in keys if now.get(key) != other.get(key))
        yield f"other settings: {', '.join(names)} (--stamp, if the golden replay is the same)"


def _asked_otherwise(experiment: Experiment, record: dict) -> Iterator[str]:
    choice = record.get("choice")
    kept = choice and {key: value for key, value in choice.items() if key != "winners"}
    if _in_any_order(_plain(experiment.plan)) != _in_any_order(kept):
        yield "the search is another one now"
    runs = [[run["condition"], run["seed"]] for run in record["runs"]]
    if _in_any_order(runs) != _in_any_order(_plain(experiment.runs)):
        yield "the conditions or the seeds are others now"


def _in_any_order(value: Any) -> Any:
    """Lists of arms or runs sorted: which one a script names first does not matter."""
    if isinstance(value, dict):
        return {key: _in_any_order(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return sorted(value, key=lambda one: json.dumps(one, sort_keys=True))
    return value


def _said(experiment: Experiment) -> dict[str, Any]:
    return {
        "what": experiment.what,
        "chosen_on": experiment.chosen_on,
        "settings": experiment.settings,
        "metrics": {**experiment.metrics, **TIMES},
    }


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def _path(name: str, folder: Path) -> Path:
    return folder / f"{script_of(name).stem}.json"


def _read(name: str, folder: Path) -> dict:
    return json.loads(_path(name, folder).read_text(encoding="utf-8"))


def _winners(record: dict) -> list[dict]:
    return record["choice"]["winners"] if record.get("choice") else []
