"""All trials and runs of an experiment, a few processes side by side; nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from experiments.machinery.choose import decide, search
from experiments.machinery.experiment import FOLDER, load_experiment, script_of
from experiments.machinery.fingerprint import digest, fingerprint
from experiments.machinery.long import LongExperiment
from experiments.machinery.worker import versions

RUNS = FOLDER.parent / "runs"  # git ignores it; VITBOOK_RUNS names another folder
UNFINISHED = FOLDER / "unfinished"  # git keeps it


def runs_folder(name: str, hashes: dict[str, str], scale: float) -> Path:
    """Where the results of this very code are kept until the record is written.

    Those of a long experiment may be committed, so that they survive a change of machine.
    """
    small = "" if scale == 1 else f"-{scale:g}"
    folder = f"{script_of(name).stem}-{digest(hashes)}{small}"
    if "VITBOOK_RUNS" in os.environ:
        return Path(os.environ["VITBOOK_RUNS"]) / folder
    long = scale == 1 and isinstance(load_experiment(name), LongExperiment)
    return (UNFINISHED if long else RUNS) / folder


def require_begun(name: str) -> None:
    """Refuse an experiment without a record, unless it is long and some of its work is done.

    Raises:
        ValueError: it is not long; none of its results are those of the present code, since it was
            not begun or has been edited meanwhile; or there are others beside them.
    """
    if not isinstance(load_experiment(name), LongExperiment):
        raise ValueError(f"{name} has no record: record it, or declare a LongExperiment")
    stem, now = script_of(name).stem, digest(fingerprint(script_of(name)))
    digests = {path.parent.name.rpartition("-")[2] for path in UNFINISHED.glob(f"{stem}-*/*.json")}
    if digests != {now}:
        found = ", ".join(sorted(digests)) or "nothing"
        raise ValueError(
            f"{name} has no record, and experiments/unfinished holds {found} of it, where the "
            f"present code needs {stem}-{now}: begin it, or undo the edit that orphaned its "
            f"results; if it changes nothing, `python -m experiments --verify {name}` keeps them"
        )


@dataclass(frozen=True)
class Job:
    """A run of the record, or a trial before the runs, for a process of its own.

    `settings` are the chosen ones, or those on trial. `length` is the share of a run's steps that
    a trial takes; None for a run.
    """

    file: str
    condition: dict
    seed: int
    settings: dict
    length: float | None = None


def run_all(
    name: str, *, workers: int | None = None, scale: float = 1.0, choose_only: bool = False
) -> tuple[list[dict], list[dict]]:
    """Do the trials and runs that are still missing; Ctrl-C or SIGKILL lose those in progress.

    Returns:
        The results of the trials, in the order of the search, and of the runs, in the experiment's.

    Raises:
        SystemExit: when a run failed (its output is printed) or the user stopped it.
    """
    crew = Crew(name, workers, scale)
    trials = crew.do_trials()
    return trials, [] if choose_only else crew.do_runs(trials)


class Crew:
    """Processes that work off the jobs of one experiment and leave each result in its folder."""

    def __init__(self, name: str, workers: int | None, scale: float):
        self.experiment, self.name, self.scale = load_experiment(name), script_of(name).stem, scale
        hashes = fingerprint(script_of(name))
        self.workers = workers or self.experiment.workers
        self.folder = runs_folder(name, hashes, scale)
        self.folder.mkdir(parents=True, exist_ok=True)
        require_same_versions(self.folder)
        self.command = [sys.executable, "-m", "experiments", name, "--scale", str(scale)]
        self.command += ["--expected", digest(hashes), "--into", str(self.folder)]
        self.command += ["--parent", str(os.getpid()), "--only"]
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))

    def do_trials(self) -> list[dict]:
        """All trials of the search, if there is one; prints what each arm chose."""
        plan = self.experiment.plan
        if plan is None:
            return []
        with self._bar(f"{self.name}, choosing {plan['setting']}") as bar:
            trials = search(plan, lambda wanted: self._do_wanted(plan, wanted, bar))
        for winner in decide(plan, trials):
            words = ", ".join(f"{key} {value}" for key, value in winner["condition"].items())
            edge = " (THE EDGE of what was tried: raise limit)" if winner["at_edge"] else ""
            print(f"{words}: {plan['setting']} {winner['value']:g}{edge}")
        return trials

    def _do_wanted(self, plan: dict, wanted: list[dict], bar: tqdm) -> list[dict]:
        jobs = []
        for trial in wanted:
            arm, length, value = (trial[key] for key in ("condition", "length", "value"))
            file = f"trial-{plan['arms'].index(arm)}-{length:g}-{value:g}"
            jobs.append(Job(file, arm, trial["seed"], {plan["setting"]: value}, length))
        results = self._do(jobs, bar, "trials")
        return [{**result, **trial} for result, trial in zip(results, wanted, strict=True)]

    def do_runs(self, trials: list[dict]) -> list[dict]:
        """All runs, with what the trials chose."""
        winners = decide(self.experiment.plan, trials) if self.experiment.choose else []
        jobs = [
            Job(str(i), condition, seed, self.experiment.chosen_for(condition, winners))
            for i, (condition, seed) in enumerate(self.experiment.runs)
        ]
        with self._bar(self.name) as bar:
            return self._do(jobs, bar, "runs")

    def _do(self, jobs: list[Job], bar: tqdm, what: str) -> list[dict]:
        bar.total += sum(map(self._steps, jobs))
        missing = [job for job in jobs if not self._done(job)]
        bar.update(sum(map(self._steps, jobs)) - sum(map(self._steps, missing)))
        busy: list[_Child] = []
        try:
            while missing or busy:
                while missing and len(busy) < self.workers:
                    job = missing.pop(0)
                    command = [*self.command, json.dumps(asdict(job))]
                    busy.append(_Child(command, bar, self._steps(job), self.folder / job.file))
                time.sleep(0.1)
                for child in [child for child in busy if child.process.poll() is not None]:
                    busy.remove(child)
                    child.finish()
        except KeyboardInterrupt:
            bar.close()
            kept = sum(map(self._done, jobs))
            sys.exit(f"stopped; {kept} of {len(jobs)} {what} are kept, the same command goes on")
        finally:
            for child in busy:
                child.process.kill()
                child.process.wait()
        return [json.loads(self._path(job).read_text("utf-8")) for job in jobs]

    def _bar(self, words: str) -> tqdm:
        return tqdm(total=0, desc=words, unit="step", smoothing=0.05)

    def _path(self, job: Job) -> Path:
        return self.folder / f"{job.file}.json"

    def _steps(self, job: Job) -> int:
        if not self.experiment.steps:
            return 1
        share = self.scale * (1.0 if job.length is None else job.length)
        return max(1, round(self.experiment.steps(job.condition) * share))

    def _done(self, job: Job) -> bool:
        """A result is written last and at once: where it is, its weights are too."""
        if not self._path(job).is_file():
            return False
        result = json.loads(self._path(job).read_text("utf-8"))
        return all(result[key] == getattr(job, key) for key in ("condition", "seed", "settings"))


def require_same_versions(folder: Path) -> None:
    """Refuse to go on with other libraries: no record may mix them, and that is found out last."""
    for path in sorted(folder.glob("*.json")):
        was, now = json.loads(path.read_text("utf-8"))["versions"], versions()
        if was != now:
            sys.exit(f"{path} was made with {was}, here are {now}: install those, or delete it")


class _Child:
    """A worker process; a thread reads its progress into the bar."""

    def __init__(self, command: list[str], bar: tqdm, steps: int, result: Path):
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.bar, self.steps, self.seen = bar, steps, 0
        self.errors = result.with_name(f"{result.name}.log")
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
