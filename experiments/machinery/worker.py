"""One run, or one trial before the runs, in a process of its own, with one thread."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from experiments.machinery.experiment import Experiment, load_experiment, script_of
from experiments.machinery.files import half_precision, write_bytes, write_json
from experiments.machinery.fingerprint import digest, fingerprint
from vitbook.data import DataError

REPLAY_STEPS = 20


class Enough(Exception):  # noqa: N818
    """The replayed steps are done."""


def work(name: str, job: dict, *, expected: str, scale: float, folder: Path, parent: int) -> None:
    """Do a run or a trial of an experiment (`runner.Job`) and leave its result in `folder`.

    Prints one line with the number of steps done, twice a second, for the progress bar.
    """
    _stop_with(parent)
    torch.set_num_threads(1)
    experiment = load_experiment(name)
    if digest(fingerprint(script_of(name))) != expected:
        raise SystemExit("the script or vitbook changed while the experiment was running")
    condition, seed, settings = job["condition"], job["seed"], job["settings"]
    losses, shown = [], time.monotonic()
    steps = 0

    def log(loss: float) -> None:
        nonlocal shown, steps
        steps += 1
        if len(losses) < REPLAY_STEPS:
            losses.append(float(loss))
        if time.monotonic() - shown > 0.5:
            shown = time.monotonic()
            print(steps, flush=True)

    start, start_cpu = time.perf_counter(), time.process_time()
    try:
        if job["length"] is None:
            outcome = experiment.run(condition, seed, log, scale, **settings)
            check_outcome(experiment, outcome)
            metrics = outcome.metrics
        else:
            metrics = tried(experiment, job, log, scale)
    except DataError as error:
        raise SystemExit(str(error)) from None
    times = {
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - start_cpu, 2),
    }
    if job["length"] is None and (condition, seed) in experiment.keep.values():
        write_bytes(folder / f"{job['file']}.safetensors", half_precision(outcome.weights))
    result = {
        "condition": condition,
        "seed": seed,
        "settings": settings,
        "length": job["length"],
        "steps": steps,
        "metrics": {**metrics, **times},
        "losses": losses,
        "machine": machine(),
        "versions": versions(),
    }
    write_json(folder / f"{job['file']}.json", result)


def tried(experiment: Experiment, job: dict, log, scale: float) -> dict[str, float | None]:
    """What a trial measures; None for the number that decides where training diverged."""
    choice, given = experiment.choose, (job["condition"], job["seed"], log, scale)
    try:
        metrics = choice.trial(*given, length=job["length"], **job["settings"])
    except ArithmeticError:
        return {choice.by: None}
    return metrics if math.isfinite(metrics[choice.by]) else {choice.by: None}


def first_losses(experiment: Experiment, winners: Sequence[dict] = ()) -> list[float]:
    """The losses of the first steps of the run that the experiment names for replay."""
    condition, seed = experiment.replay
    settings = experiment.chosen_for(condition, winners)
    return _first(lambda log: experiment.run(condition, seed, log, 1.0, **settings))


def first_losses_of_trial(experiment: Experiment, trial: dict) -> list[float]:
    """The losses of the first steps of a trial that the record keeps for replay."""
    job = {**trial, "settings": {experiment.choose.setting: trial["value"]}}
    return _first(lambda log: tried(experiment, job, log, 1.0))


def first_losses_of(experiment: Experiment, result: dict) -> list[float]:
    """The losses of the first steps of a finished run or trial, given by its own result."""
    if result.get("length") is not None:
        return _first(lambda log: tried(experiment, result, log, 1.0))
    given, settings = (result["condition"], result["seed"]), result["settings"]
    return _first(lambda log: experiment.run(*given, log, 1.0, **settings))


def _first(run: Callable) -> list[float]:
    losses = []

    def log(loss: float) -> None:
        losses.append(float(loss))
        if len(losses) == REPLAY_STEPS:
            raise Enough

    with contextlib.suppress(Enough):
        run(log)
    return losses


def check_outcome(experiment: Experiment, outcome) -> None:
    """Every measured number must be declared, so that the record can explain it."""
    if unknown := outcome.metrics.keys() - experiment.metrics.keys():
        raise ValueError(f"the experiment does not declare the metrics {sorted(unknown)}")


def machine() -> dict:
    """Where this process computes, without anything that names the computer."""
    device, on_gpu = _processor(), torch.cuda.is_available() and torch.cuda.max_memory_allocated()
    if on_gpu:
        device = torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    system = f"{platform.system()} {platform.machine()}"
    return {"device": device, "threads": threads, "cores": os.cpu_count(), "system": system}


def versions() -> dict[str, str]:
    """The libraries that decide the numbers."""
    names = ("torch", "torchvision", "numpy", "scikit-learn", "vitbook")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _stop_with(parent: int) -> None:
    """Do not go on alone when the runner was killed."""

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
