"""All runs of an experiment, a few processes side by side; what is done is never done again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tqdm import tqdm

from experiments.machinery.experiment import FOLDER, Experiment, load_experiment, script_of
from experiments.machinery.fingerprint import digest, fingerprint

RUNS = Path(os.environ.get("VITBOOK_RUNS", FOLDER.parent / "runs"))


def runs_folder(name: str, hashes: dict[str, str], scale: float) -> Path:
    """Where the results of this very code are kept until the record is written."""
    small = "" if scale == 1 else f"-{scale:g}"
    return RUNS / f"{script_of(name).stem}-{digest(hashes)}{small}"


def run_all(name: str, *, workers: int | None = None, scale: float = 1.0) -> list[dict]:
    """Do the runs that are still missing and return all results, in the experiment's order.

    Ctrl-C, SIGTERM or SIGKILL lose only the runs in progress.

    Raises:
        SystemExit: when a run failed (its output is printed) or the user stopped it.
    """
    experiment = load_experiment(name)
    hashes = fingerprint(script_of(name))
    folder = runs_folder(name, hashes, scale)
    folder.mkdir(parents=True, exist_ok=True)
    steps = [_steps(experiment, condition, scale) for condition, _ in experiment.runs]
    missing = [i for i in range(len(steps)) if not _done(folder, i, experiment)]
    bar = tqdm(total=sum(steps), desc=script_of(name).stem, unit="step", smoothing=0.05)
    bar.update(sum(steps) - sum(steps[i] for i in missing))
    command = [sys.executable, "-m", "experiments", name, "--scale", str(scale)]
    command += ["--expected", digest(hashes), "--into", str(folder)]
    command += ["--parent", str(os.getpid()), "--only"]
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    busy: list[_Child] = []
    try:
        while missing or busy:
            while missing and len(busy) < (workers or experiment.workers):
                index = missing.pop(0)
                busy.append(_Child([*command, str(index)], bar, steps[index], folder, index))
            time.sleep(0.1)
            for child in [child for child in busy if child.process.poll() is not None]:
                busy.remove(child)
                child.finish()
    except KeyboardInterrupt:
        bar.close()
        kept = sum(_done(folder, i, experiment) for i in range(len(steps)))
        sys.exit(f"stopped; {kept} of {len(steps)} runs are kept, the same command goes on")
    finally:
        for child in busy:
            child.process.kill()
            child.process.wait()
        bar.close()
    return [json.loads((folder / f"{i}.json").read_text("utf-8")) for i in range(len(steps))]


class _Child:
    """A worker process; a thread reads its progress into the bar."""

    def __init__(self, command: list[str], bar: tqdm, steps: int, folder: Path, index: int):
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.bar, self.steps, self.seen = bar, steps, 0
        self.errors = folder / f"{index}.log"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=FOLDER.parent,
                env={**os.environ, **one_thread},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the runner only, which ends its workers
            )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.strip().isdecimal():
                self._advance(min(int(line), self.steps))

    def _advance(self, steps: int) -> None:
        self.bar.update(steps - self.seen)
        self.seen = steps

    def finish(self) -> None:
        self.reader.join()
        if self.process.returncode != 0:
            self.bar.close()
            output = self.errors.read_text("utf-8", errors="replace")
            sys.exit(f"{output}\na run failed (exit status {self.process.returncode})")
        self._advance(self.steps)
        self.errors.unlink()


def _steps(experiment: Experiment, condition: dict, scale: float) -> int:
    return max(1, round(experiment.steps(condition) * scale)) if experiment.steps else 1


def _done(folder: Path, index: int, experiment: Experiment) -> bool:
    """A result is written last and at once: where it is, its weights are too."""
    path = folder / f"{index}.json"
    if not path.is_file():
        return False
    result = json.loads(path.read_text("utf-8"))
    return (result["condition"], result["seed"]) == experiment.runs[index]
