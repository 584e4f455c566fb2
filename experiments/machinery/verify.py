"""Does a record, or what is finished of one, still hold? Changed code is replayed for a bit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from experiments.machinery import runner
from experiments.machinery.canary import CANARIES, canary_of, moved
from experiments.machinery.choose import decide
from experiments.machinery.experiment import Experiment, load_experiment, script_of
from experiments.machinery.fingerprint import digest, fingerprint
from experiments.machinery.long import LongExperiment
from experiments.machinery.worker import first_losses_of
from vitbook.data import DataError

# Processors differ in how they round. The same 20 steps with AVX-512, AVX2 and SSE kernels stayed
# within 1.3e-6 of each other; a changed setting or formula moves a loss far more than this.
TOLERANCE = 1e-5


def verify(name: str, folder: Path, *, stamp: bool = True) -> tuple[bool, str]:
    """Compare a record, or the finished results of a long experiment, with the present code.

    Args:
        name: the record, which is also the experiment's name.
        folder: where the record lies.
        stamp: write the new hashes when the replay agrees.

    Returns:
        Whether the record holds, and a sentence that says why.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return verify_unfinished(name)
    record = json.loads(path.read_text(encoding="utf-8"))
    choice = record.get("choice")
    try:
        if choice and decide(choice, record["trials"]) != choice["winners"]:
            return False, "REFUSED: the stored choice is not what its trials say"
    except ValueError as error:
        return False, f"REFUSED: {error}"
    experiment = load_experiment(name)
    if experiment.plan != (choice and {k: v for k, v in choice.items() if k != "winners"}):
        return False, "STALE: the search is another one now"
    if experiment.timing:
        versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
        return True, f"measures time: it was so on {record['date']}, with {versions}"
    kept = json.loads((CANARIES / f"{name}.json").read_text(encoding="utf-8"))
    scales = {run: values["scale"] for run, values in kept["runs"].items()}
    winners = choice["winners"] if choice else []
    if found := moved(kept, canary_of(experiment, winners, scales)):
        return False, f"STALE: {len(found)} numbers of its canary moved: {'; '.join(found[:3])}"
    return True, f"holds: {len(kept['runs'])} runs of its canary are the same"


def first_difference(now: Sequence[float], then: Sequence[float]) -> int | None:
    """The first step, from 1, whose loss is another one; None where all are equal."""
    for i, (a, b) in enumerate(zip(now, then, strict=False)):
        if not np.isclose(a, b, rtol=TOLERANCE, atol=0):
            return i + 1
    return None if len(now) == len(then) else min(len(now), len(then)) + 1


def verify_unfinished(name: str) -> tuple[bool, str]:
    """Are the finished results of a long experiment without a record those of the present code?

    Results of other code are kept, in a folder that is named after the present code, where each is
    still asked for, with as many steps, and the shortest has the same first losses. As in a record,
    nobody sees a change of what comes after these steps.

    Returns:
        As `verify`.
    """
    experiment, stem = load_experiment(name), script_of(name).stem
    if not isinstance(experiment, LongExperiment):
        return False, "NOT VERIFIED: it has no record"
    here = runner.UNFINISHED / f"{stem}-{digest(fingerprint(script_of(name)))}"
    folders = sorted({path.parent for path in runner.UNFINISHED.glob(f"{stem}-*/*.json")})
    if not folders:
        return False, "NOT VERIFIED: it has neither a record nor finished results"
    if len(folders) > 1:
        found = ", ".join(folder.name for folder in folders)
        return False, f"NOT VERIFIED: there are results of several codes, keep one of them: {found}"
    (there,) = folders
    results = {p.stem: json.loads(p.read_text("utf-8")) for p in sorted(there.glob("*.json"))}
    if there == here:
        return True, f"no record yet; {len(results)} finished results are of the present code"
    try:
        difference = _difference(experiment, results)
    except DataError as error:
        return False, f"NOT VERIFIED: the replay lacks its data: {error}"
    if difference:
        return False, f"STALE: the finished results in {there.name}: {difference}; they stay there"
    here.mkdir(exist_ok=True)
    for file in there.iterdir():
        file.replace(here / file.name)
    there.rmdir()
    return True, f"no record yet; replayed losses are equal, {there.name} is now {here.name}"


def _difference(experiment: Experiment, results: dict[str, dict]) -> str | None:
    """What the present code does differently from these results, by their file names, if any."""
    runs = {str(i): run for i, run in enumerate(experiment.runs)}
    plan = experiment.plan or {"arms": [], "seed": None}
    for file, result in results.items():
        condition, seed, length = result["condition"], result["seed"], result.get("length")
        trial = length is not None and condition in plan["arms"] and seed == plan["seed"]
        if not trial and runs.get(file) != (condition, seed):
            return f"nobody asks for {file} any more, or by another number"
        if experiment.steps:
            asked = round(experiment.steps(condition) * (length or 1.0))
            if asked != result["steps"]:
                return f"{file} took {result['steps']} steps, where now it takes {asked}"
    file, shortest = min(results.items(), key=lambda item: item[1]["steps"])
    torch.set_num_threads(1)
    step = first_difference(first_losses_of(experiment, shortest), shortest["losses"])
    return step and f"the replayed losses of {file} differ from step {step} on"
