"""`python -m experiments [NAME ...]`: run experiments, and write or verify records."""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from tqdm import tqdm

from experiments.machinery.choose import decide
from experiments.machinery.experiment import all_names, load_experiment
from experiments.machinery.golden import golden_of
from experiments.machinery.recording import write_record
from experiments.machinery.runner import run_all, runs_folder
from experiments.machinery.verify import replay, stamp, verify
from experiments.machinery.worker import check_outcome
from vitbook.book.records import FOLDER as RECORDED
from vitbook.book.records import list_records
from vitbook.data import DataError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="by name or path; by default those without a record"
    )
    do = parser.add_mutually_exclusive_group()
    do.add_argument("--list", action="store_true", help="name the experiments")
    do.add_argument("--scale", type=float, help="below 1: try one run of so few steps, no record")
    do.add_argument("--verify", action="store_true", help="do the records follow from the code?")
    do.add_argument("--replay", action="store_true", help="their first steps, on the real data")
    do.add_argument("--stamp", action="store_true", help="keep what the code computes now")
    parser.add_argument("--workers", type=int, help="processes side by side")
    parser.add_argument("--folder", type=Path, default=RECORDED, help="where records are kept")
    options = parser.parse_args(arguments)
    names, folder = options.names, options.folder
    if options.list:
        print("\n".join(f"{name}: {load_experiment(name).what}" for name in all_names()))
        return 0
    if options.verify:
        return hold(names or list_records(folder), folder, verify)
    if options.replay:
        return hold(names or list_records(folder), folder, replay)
    if options.stamp:
        if not names:
            parser.error("--stamp needs a NAME: a record is stamped when somebody knows why")
        for name in names:
            print("\n  ".join([f"{name}:", *(stamp(name, folder) or ["nothing moved"])]))
        return 0
    names = names or [name for name in all_names() if not (folder / f"{name}.json").is_file()]
    for name in names:
        if options.scale:
            try_one(name, options.scale)
        else:
            record(name, folder, options.workers)
    if not names:
        print("every experiment has a record; give a NAME to record one again")
    return 0


def try_one(name: str, scale: float) -> None:
    """One condition with one seed and the first value of a grid, here and now; no record."""
    experiment = load_experiment(name)
    condition, seed = experiment.replay or experiment.runs[-1]
    settings = {}
    if experiment.choose and condition not in experiment.once:
        settings = {experiment.choose.setting: experiment.choose.grid[experiment.choose.setting][0]}
    steps = round(experiment.steps(condition) * scale) if experiment.steps else None
    losses: list[float] = []
    torch.set_num_threads(1)
    start = time.perf_counter()
    with tqdm(total=steps, desc=name, unit="step") as bar:

        def log(loss: float) -> None:
            losses.append(float(loss))
            bar.update()

        try:
            outcome = experiment.run(condition, seed, log, scale, **settings)
        except DataError as error:
            bar.close()
            sys.exit(str(error))
    check_outcome(experiment, outcome)
    words = ", ".join(f"{key} {value}" for key, value in {**condition, **settings}.items())
    print(f"{words}, seed {seed}: {len(losses)} losses, {time.perf_counter() - start:.1f} s")
    for metric, value in outcome.metrics.items():
        print(f"  {metric}: {'a list' if isinstance(value, list) else f'{value:.4g}'}")
    print(f"no record was written; make experiments NAME={name} runs all of it")


def record(name: str, folder: Path, workers: int | None) -> None:
    """Run what is missing, then write the record and its golden replay."""
    experiment, runs = load_experiment(name), runs_folder(name)  # as the workers do, before a run
    trials, results = run_all(name, workers, experiment)
    weights = {
        label: (runs / f"{experiment.runs.index(run)}.safetensors").read_bytes()
        for label, run in experiment.keep.items()
    }
    winners = decide(experiment.plan, trials) if experiment.plan else []
    golden = None if experiment.timing else golden_of(experiment, winners)
    print(f"wrote {write_record(name, experiment, results, weights, folder, trials, golden)}")
    shutil.rmtree(runs)  # whoever asks for it again gets it from scratch


def hold(names: list[str], folder: Path, check: Callable[[str, Path], tuple[bool, str]]) -> int:
    """Print one line for each record; 1 when any does not hold."""
    stale = 0
    for name in names:
        holds, why = check(name, folder)
        stale += not holds
        print(f"{name}: {why}", flush=True)
    if stale:
        print(f"{stale} do not hold; to record one again: make experiments NAME=...")
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
