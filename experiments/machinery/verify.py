"""Does a record still hold? Equal code says yes; changed code is replayed for a few steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from experiments.machinery.choose import decide
from experiments.machinery.experiment import load_experiment, script_of
from experiments.machinery.fingerprint import fingerprint
from experiments.machinery.recording import restamp
from experiments.machinery.worker import first_losses, first_losses_of_trial
from vitbook.data import DataError

# Processors differ in how they round. The same 20 steps with AVX-512, AVX2 and SSE kernels stayed
# within 1.3e-6 of each other; a changed setting or formula moves a loss far more than this.
TOLERANCE = 1e-5


def verify(name: str, folder: Path, *, stamp: bool = True) -> tuple[bool, str]:
    """Compare a record with the present code.

    Args:
        name: the record, which is also the experiment's name.
        folder: where the record lies.
        stamp: write the new hashes when the replay agrees.

    Returns:
        Whether the record holds, and a sentence that says why.
    """
    path = folder / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    choice, replay = record.get("choice"), record["replay"]
    try:
        if choice and decide(choice, record["trials"]) != choice["winners"]:
            return False, "REFUSED: the stored choice is not what its trials say"
    except ValueError as error:
        return False, f"REFUSED: {error}"
    hashes = fingerprint(script_of(name))
    if hashes == record["hashes"]:
        return True, "holds: the code is unchanged"
    old = record["hashes"]
    changed = [f for f in {**old, **hashes} if old.get(f) != hashes.get(f)]
    because = f"changed: {', '.join(changed)}"
    if replay is None:
        return False, f"STALE: {because}; it measures time and cannot be replayed"
    torch.set_num_threads(1)
    experiment = load_experiment(name)
    if experiment.replay != (replay["condition"], replay["seed"]):
        return False, f"STALE: {because}; the run to replay is another one now"
    winners = choice["winners"] if choice else []
    if experiment.plan != (choice and {k: v for k, v in choice.items() if k != "winners"}):
        return False, f"STALE: {because}; the search is another one now"
    try:
        now, then = first_losses(experiment, winners), replay["losses"]
        if choice:
            now += first_losses_of_trial(experiment, replay["trial"])
            then = then + replay["trial"]["losses"]
    except DataError as error:
        return False, f"NOT VERIFIED: {because}; the replay lacks its data: {error}"
    if len(now) != len(then) or not np.allclose(now, then, rtol=TOLERANCE, atol=0):
        step = next(
            (
                i
                for i, (a, b) in enumerate(zip(now, then, strict=False))
                if not np.isclose(a, b, rtol=TOLERANCE, atol=0)
            ),
            min(len(now), len(then)),
        )
        return False, f"STALE: {because}; the replayed losses differ from step {step + 1} on"
    if stamp:
        restamp(path, hashes, experiment)
    return True, f"holds: {because}; {len(now)} replayed losses are equal" + (
        ", stamped anew" if stamp else ""
    )
