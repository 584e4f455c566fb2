"""All trials and runs of an experiment, a few side by side; nothing is done twice."""

import json
import multiprocessing
import os
import signal
import sys
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Self

from tqdm import tqdm

from experiments.machinery.choose import decide, search
from experiments.machinery.experiment import FOLDER, Experiment, script_of
from experiments.machinery.files import write_json
from experiments.machinery.golden import golden_of, moved, scales_of
from experiments.machinery.worker import Job, prepare, ready, versions, work
from vitbook.data import DataError

RUNS = FOLDER.parent / "runs"  # git ignores it; VITBOOK_RUNS names another folder
GOLDEN = "golden.json"  # in an experiment's folder: of the code that made what lies there


def runs_folder(name: str) -> Path:
    """Where the results of an experiment are kept until its record is written."""
    return Path(os.environ.get("VITBOOK_RUNS", RUNS)) / script_of(name).stem


def run_all(
    name: str, workers: int | None, experiment: Experiment
) -> tuple[list[dict], list[dict]]:
    """Do the trials and runs that are still missing; Ctrl-C or SIGKILL lose those in progress.

    Returns:
        The results of the trials, in the order of the search, and of the runs, in the experiment's.

    Raises:
        SystemExit: when a run failed (its traceback is printed), the user stopped it, or what is
            kept was made by other code or other libraries.
    """
    with Runner(name, workers, experiment) as runner:
        trials = runner.do_trials()
        return trials, runner.do_runs(trials)


class Runner:
    """A pool of workers for one experiment, each of which imports it once.

    All start at once, before anything is run: an edit of the sources meanwhile reaches none. An
    experiment that measures time or memory gets a fresh process for each run.
    """

    def __init__(self, name: str, workers: int | None, experiment: Experiment) -> None:
        self.experiment, self.name = experiment, script_of(name).stem
        self.folder = runs_folder(name)
        os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # the workers inherit it
        spawn, workers = multiprocessing.get_context("spawn"), workers or self.experiment.workers
        self.made = spawn.Value("q", 0)
        self.pool = ProcessPoolExecutor(
            workers,
            mp_context=spawn,
            initializer=prepare,
            initargs=(name, self.made),
            max_tasks_per_child=1 if self.experiment.timing else None,
        )
        if not self.experiment.timing:
            for _ in range(workers):
                self.pool.submit(ready)

    def __enter__(self) -> Self:
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
        try:
            require_same_code(self.folder, self.experiment)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.end(at_once=kind is not None)

    def end(self, at_once: bool = True) -> None:
        """Stop the workers; runs in progress are lost."""
        if at_once:
            for child in multiprocessing.active_children():
                child.kill()
        self.pool.shutdown(cancel_futures=True)  # waits, as the interpreter would at its end

    def do_trials(self) -> list[dict]:
        """All trials of the search, if there is one; prints what each arm chose."""
        plan = self.experiment.plan
        if plan is None:
            return []
        trials = search(plan, lambda wanted: self._do_wanted(plan, wanted))
        for winner in decide(plan, trials):
            words = ", ".join(f"{key} {value}" for key, value in winner["condition"].items())
            edge = " (THE EDGE of what was tried: raise limit)" if winner["at_edge"] else ""
            print(f"{words}: {plan['setting']} {winner['value']:g}{edge}")
        return trials

    def _do_wanted(self, plan: dict, wanted: list[dict]) -> list[dict]:
        jobs = []
        for trial in wanted:
            arm, length, value = (trial[key] for key in ("condition", "length", "value"))
            file = f"trial-{plan['arms'].index(arm)}-{length:g}-{value:g}"
            steps = self._steps(arm, length)
            jobs.append(Job(file, arm, trial["seed"], {plan["setting"]: value}, length, steps))
        results = self._do(jobs, f"choosing {plan['setting']}", "trials")
        return [{**result, **trial} for result, trial in zip(results, wanted, strict=True)]

    def do_runs(self, trials: list[dict]) -> list[dict]:
        """All runs, with what the trials chose."""
        plan = self.experiment.plan
        winners = decide(plan, trials) if plan else []
        jobs = [
            Job(
                str(i),
                condition,
                seed,
                self.experiment.chosen_for(condition, winners),
                steps=self._steps(condition),
            )
            for i, (condition, seed) in enumerate(self.experiment.runs)
        ]
        return self._do(jobs, "running", "runs")

    def _do(self, jobs: list[Job], doing: str, what: str) -> list[dict]:
        missing = [job for job in jobs if not self._done(job)]
        total, left = (sum(job.steps for job in some) for some in (jobs, missing))
        before = self.made.value
        bar = tqdm(
            total=total, initial=total - left, desc=f"{self.name}, {doing}", smoothing=0.05
        )  # its unit is a step
        with bar:
            try:
                pending = {self.pool.submit(work, job, self.folder) for job in missing}
                while pending:
                    ended, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                    bar.update(self.made.value - before - (bar.n - (total - left)))
                    for future in ended:
                        self._require_success(future, bar)
            except KeyboardInterrupt:
                bar.close()
                kept = sum(map(self._done, jobs))
                sys.exit(
                    f"stopped; {kept} of {len(jobs)} {what} are kept, the same command goes on"
                )
        return [json.loads(self._path(job).read_text("utf-8")) for job in jobs]

    def _require_success(self, future: Future, bar: tqdm) -> None:
        try:
            future.result()
        except DataError as error:
            bar.close()
            sys.exit(str(error))
        except BrokenProcessPool:
            bar.close()
            sys.exit("a worker was killed, perhaps for want of memory: fewer --workers need less")
        except Exception as error:
            bar.close()
            sys.exit(f"{''.join(traceback.format_exception(error))}\na run failed")

    def _path(self, job: Job) -> Path:
        return self.folder / f"{job.file}.json"

    def _steps(self, condition: dict, length: float = 1.0) -> int:
        if not self.experiment.steps:
            return 1
        return max(1, round(self.experiment.steps(condition) * length))

    def _done(self, job: Job) -> bool:
        """A result is written last and at once: where it is, its weights are too."""
        if not self._path(job).is_file():
            return False
        result = json.loads(self._path(job).read_text("utf-8"))
        return all(result[key] == getattr(job, key) for key in ("condition", "seed", "settings"))


def require_same_code(folder: Path, experiment: Experiment) -> None:
    """Refuse to go on with what other code or other libraries began; note those that begin now.

    What measures time has no golden replay: only the versions are compared.

    Raises:
        SystemExit: with what differs, and what to do.
    """
    path = folder / GOLDEN
    then = json.loads(path.read_text("utf-8")) if path.is_file() else None
    if then and then["versions"] != versions():
        sys.exit(
            f"{folder} was begun with {then['versions']}, here are {versions()}: no record may mix "
            "them; install those, or delete the folder to begin anew"
        )
    if experiment.timing:
        now: dict = {"runs": {}, "recipes": [], "versions": versions()}
    else:
        now = golden_of(experiment, scales=scales_of(then))
    if then is None:
        write_json(path, now)
    elif found := moved(then, now):
        sys.exit(
            f"{folder} was begun by other code ({'; '.join(found[:3])}): no record may mix them; "
            "go back to that code, or delete the folder to begin anew"
        )
