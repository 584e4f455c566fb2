"""One run of an experiment, or one trial before the runs: in a worker process, or in this one."""

import contextlib
import math
import multiprocessing
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from experiments.machinery.experiment import Experiment, load_experiment
from experiments.machinery.files import half_precision, write_bytes, write_json

REPLAY_STEPS = 20


class Enough(Exception):  # noqa: N818
    """The replayed steps are done."""


@dataclass(frozen=True)
class Job:
    """A run of the record, or a trial before the runs.

    `settings` are the chosen ones, or those on trial. `length` is the share of a run's steps that
    a trial takes; None for a run. `steps` are those that the progress bar expects.
    """

    file: str
    condition: dict
    seed: int
    settings: dict
    length: float | None = None
    steps: int = 1


_experiment: Experiment  # of this worker, with the steps that all workers have made
_made: Any


def prepare(name: str, made: Any) -> None:
    """Import an experiment into a worker, once for all of its runs.

    Args:
        name: the experiment.
        made: counts the steps that all workers have made (`multiprocessing.Value`).
    """
    global _experiment, _made
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner hears it, and ends its workers
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    torch.set_num_threads(1)
    _experiment, _made = load_experiment(name), made


def ready() -> None:
    """A task that starts a worker."""


def work(job: Job, folder: Path) -> None:
    """Do a job and leave its result in the folder: the weights first, then the JSON, at once."""
    losses: list[float] = []
    steps = unseen = 0
    shown = time.monotonic()

    def log(loss: float) -> None:
        nonlocal steps, unseen, shown
        steps, unseen = steps + 1, unseen + 1
        if len(losses) < REPLAY_STEPS:
            losses.append(float(loss))
        if time.monotonic() - shown > 0.5:
            _count(unseen)
            unseen, shown = 0, time.monotonic()

    start, start_cpu = time.perf_counter(), time.process_time()
    if job.length is None:
        outcome = _experiment.run(job.condition, job.seed, log, 1.0, **job.settings)
        check_outcome(_experiment, outcome)
        metrics: dict[str, Any] = outcome.metrics
    else:
        given = (job.condition, job.seed, job.length, job.settings)
        metrics = tried(_experiment, *given, log, 1.0)
    times = {
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - start_cpu, 2),
    }
    if job.length is None and (job.condition, job.seed) in _experiment.keep.values():
        assert outcome.weights is not None
        write_bytes(folder / f"{job.file}.safetensors", half_precision(outcome.weights))
    result = {
        "condition": job.condition,
        "seed": job.seed,
        "settings": job.settings,
        "length": job.length,
        "steps": steps,
        "metrics": {**metrics, **times},
        "losses": losses,
        "machine": machine(),
        "versions": versions(),
    }
    write_json(folder / f"{job.file}.json", result)
    _count(job.steps - (steps - unseen))  # the bar counts what was expected


def _count(steps: int) -> None:
    with _made.get_lock():
        _made.value += steps


def tried(
    experiment: Experiment,
    condition: dict,
    seed: int,
    length: float,
    settings: dict,
    log: Callable[[float], None],
    scale: float,
) -> dict[str, Any]:
    """What a trial measures; None for the number that decides where training diverged."""
    choice = experiment.choose
    assert choice is not None
    try:
        metrics = choice.trial(condition, seed, log, scale, length=length, **settings)
    except ArithmeticError:
        return {choice.by: None}
    return metrics if math.isfinite(metrics[choice.by]) else {choice.by: None}


def first_losses(experiment: Experiment, winners: Sequence[dict] = ()) -> list[float]:
    """The losses of the first steps of the run that the experiment names for replay."""
    assert experiment.replay is not None
    condition, seed = experiment.replay
    settings = experiment.chosen_for(condition, winners)
    return _first(lambda log: experiment.run(condition, seed, log, 1.0, **settings))


def first_losses_of_trial(experiment: Experiment, trial: dict) -> list[float]:
    """The losses of the first steps of a trial that the record keeps for replay."""
    assert experiment.choose is not None
    settings = {experiment.choose.setting: trial["value"]}
    given = (trial["condition"], trial["seed"], trial["length"], settings)
    return _first(lambda log: tried(experiment, *given, log, 1.0))


def _first(run: Callable) -> list[float]:
    losses: list[float] = []

    def log(loss: float) -> None:
        losses.append(float(loss))
        if len(losses) == REPLAY_STEPS:
            raise Enough

    with contextlib.suppress(Enough):
        run(log)
    return losses


def check_outcome(experiment: Experiment, outcome: Any) -> None:
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


def _end_with_the_runner() -> None:
    """Do not go on alone when the runner was killed."""
    runner = multiprocessing.parent_process()
    assert runner is not None
    runner.join()
    os._exit(1)
