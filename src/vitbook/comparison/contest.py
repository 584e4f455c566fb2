"""One token mixer against those of a record: the same block, task, budget and search."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from hashlib import blake2b
from multiprocessing import active_children, get_context
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from vitbook import require
from vitbook.book.records import Record
from vitbook.comparison.candidate import mixer_model, prepare
from vitbook.comparison.layer import read_layer, source_of
from vitbook.comparison.tasks import FEW, SEEDS, TASKS, record_of
from vitbook.comparison.times import by_time
from vitbook.comparison.verdict import WHOLE, Contest, Verdict, by_accuracy
from vitbook.data import load_torchvision
from vitbook.training import TrainConfig


def train_one(
    contest: Contest,
    rate: float,
    seed: int,
    part: str,
    folder: Path | None,
    root: Path | None = None,
) -> dict[str, float]:
    """One training of the layer in the file, on the images of the record."""
    record = record_of(contest.task, folder)
    first = record.settings["first_seed"]
    return train_layer(read_layer(contest.place), contest, rate, seed, part, record, first, root)


def train_layer(
    layer: Callable[..., nn.Module],
    contest: Contest,
    rate: float,
    seed: int,
    part: str,
    record: Record,
    first: int,
    root: Path | None = None,
) -> dict[str, float]:
    """One training, asked for one part: what the task's ``learn`` found.

    Args:
        layer: What makes the layer.
        contest: Its width and updates.
        rate: The learning rate.
        seed: Of the start and the order.
        part: "validation", in the search, or "test".
        record: Whose task, counts and budget these are.
        first: Seed of the images for training; the other parts have those after it.
        root: Folder of the task's data set, if it has one.
    """
    torch.set_num_threads(1)
    task, training = TASKS[contest.task], record.settings["training"]
    known, asked = (task.images(record, name, first, root) for name in ("train", part))
    model = mixer_model(layer, contest.width, seed, record, task.read_out)
    length = record.choice["length"] if part == "validation" else 1.0
    config = TrainConfig(
        steps=max(2, round(length * contest.steps)),
        batch_size=training["batch_size"],
        warmup_steps=training["warmup_steps"],
        learning_rate=rate,
        seed=seed,
    )
    try:
        return task.learn(model, known, asked, config, record)
    except ArithmeticError:  # diverged
        return {"loss": math.inf, "accuracy": 0.0, "half": 0, "most": 0}


def search_rate(choice: dict, loss_at: Callable[[float], float]) -> tuple[float, bool]:
    """The rate of least loss on the record's grid, widened while the best is at its edge.

    Args:
        choice: The grid and how many rates may be tried, from the record.
        loss_at: The loss of a rate.

    Returns:
        The rate, and whether it still lies at the edge.
    """
    losses: dict[float, float] = {}
    wanted = list(choice["grid"])
    while wanted:
        losses |= {rate: loss_at(rate) for rate in wanted}
        best, low, high = min(losses, key=losses.__getitem__), min(losses), max(losses)
        wanted = [best / 2] if best == low else [best * 2] if best == high else []
        wanted = wanted if len(losses) < choice["limit"] else []
    return best, best in (low, high)


class Ledger:
    """What was trained so far, one line for each training, so that a stopped contest goes on.

    Args:
        path: The file.
        contest: What was made equal.
        source: Of the layer; trainings of another one are not taken for its own.
    """

    def __init__(self, path: Path, contest: Contest, source: str):
        self.path, self.key = path, blake2b((source + repr(contest)).encode()).hexdigest()[:16]
        self.known: dict[str, dict] = {}
        for line in path.read_text("utf8").splitlines() if path.is_file() else ():
            row = json.loads(line)
            if row["layer"] == self.key:
                self.known[row["run"]] = row["found"]

    def add(self, run: str, found: dict) -> None:
        """Keep the result of a training; it is on the disk on return."""
        self.known[run] = found
        with open(self.path, "a", encoding="utf8") as file:
            file.write(json.dumps({"layer": self.key, "run": run, "found": found}) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start inside never hear Ctrl-C: the one that waits for them tells of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _unlocked() -> None:
    """A worker's bars are not shown: without a lock for all processes it leaves none behind."""
    tqdm.set_lock(threading.RLock())


@contextmanager
def _ended_at_once(pool: ProcessPoolExecutor) -> Iterator[None]:
    """After Ctrl-C no training is waited for; those that were done are in the ledger."""
    others = active_children()
    try:
        yield
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            if process not in others:
                process.terminate()
        raise


def compare(
    place: str,
    out: Path,
    *,
    task: str = "places",
    workers: int | None = None,
    progress: bool | None = None,
    folder: Path | None = None,
    root: Path | None = None,
    download: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Verdict:
    """Train a layer as the record's layers were trained, and set it beside them.

    The learning rate is searched as theirs was: the record's grid, widened while the best value is
    at its edge, each value by the mean validation loss of as many seeds. Where the time to learn is
    measured, five seeds follow, and fifteen more if one of them has half of its answers right
    within the budget; else the record's seeds.

    Args:
        place: "file.py:Class".
        out: Folder for the trainings that are done; a second call goes on from there.
        task: "places" or "labels", by which a patch names another one, or "garments"; see
            ``TASKS``.
        workers: Processes; as many as there are cores by default.
        progress: Whether a bar shows the time that is left; by default, on a terminal.
        folder: Of the record; the package's own by default.
        root, download: Folder of the task's data set, if it has one, and whether to fetch it.
        report: Called with a line at the beginning, and with one when the rate is chosen.

    Returns:
        The :class:`Verdict`.

    Raises:
        ValueError: The layer cannot be compared, or the task needs a folder; the message says why.
        DataError: The task's data set is not there.
    """
    on = TASKS[require.one_of("task", task, tuple(TASKS))]
    record = record_of(task, folder)
    contest = prepare(place, record, task)
    if on.needs:
        if root is None:
            raise ValueError(f"root must say in which folder {on.needs} is (--root DIR)")
        load_torchvision(on.needs, root, "test", download=download)
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(out / "trainings.jsonl", contest, source_of(place))
    choice, trials = record.choice, record.settings.get("trial_seeds", 1)
    seeds = [run["seed"] for run in record.runs if run["condition"] == {"model": WHOLE}]
    seeds, more = (list(SEEDS[:FEW]), SEEDS[FEW:]) if on.timed else (seeds, range(0))
    context, workers = get_context("spawn"), workers or os.cpu_count() or 1
    total = len(choice["grid"]) * trials + len(seeds)
    kept = f", {len(ledger.known)} of them kept from before" * bool(ledger.known)
    report(
        f"{contest.name}: D = {contest.width}, {contest.parameters:,} parameters, "
        f"{contest.steps:,} updates{' at most' * bool(on.timed)}; "
        f"{total} trainings or more, {workers} at a time{kept}"
    )
    bar = tqdm(
        total=total,
        disable=None if progress is None else not progress,
        unit="training",
    )
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_unlocked)
    with pool, bar, _ended_at_once(pool):

        def run_all(jobs: list[tuple[float, int, str]]) -> list[dict]:
            keys = {job: f"{job[2]} {job[0]:g} {job[1]}" for job in jobs}
            with _deaf():
                open_ = {
                    pool.submit(train_one, contest, *job, folder, root): job
                    for job in jobs
                    if keys[job] not in ledger.known
                }
            bar.update(len(jobs) - len(open_))
            for done in as_completed(open_):
                ledger.add(keys[open_[done]], done.result())
                bar.update()
            return [ledger.known[keys[job]] for job in jobs]

        def loss_at(rate: float) -> float:
            if rate not in choice["grid"]:
                bar.total += trials
            tried = run_all([(rate, choice["seed"] + i, "validation") for i in range(trials)])
            return sum(one["loss"] for one in tried) / trials

        best, at_edge = search_rate(choice, loss_at)
        report(f"learning rate {best:g}; {len(seeds)} trainings for the test")
        final = run_all([(best, seed, "test") for seed in seeds])
        if any(one.get("half") for one in final):
            bar.total += len(more)
            report(f"half of the answers are right: {len(more)} trainings more")
            final += run_all([(best, seed, "test") for seed in more])
    judged = (
        by_time(contest, final, record, on.guess)
        if on.timed
        else by_accuracy(contest, final, record)
    )
    return Verdict(contest, best, at_edge, tuple(final), *judged)
