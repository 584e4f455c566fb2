"""`python -m experiments [NAME ...]`: run experiments, write, verify or compare their records."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from experiments.machinery.compare import compare
from experiments.machinery.experiment import all_names, load_experiment, script_of
from experiments.machinery.fingerprint import fingerprint
from experiments.machinery.long import LongExperiment
from experiments.machinery.recording import write_record
from experiments.machinery.runner import run_all, runs_folder
from experiments.machinery.verify import verify
from experiments.machinery.worker import work
from vitbook.book.records import FOLDER as RECORDED
from vitbook.book.records import list_records


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help="by name or path; by default all whose record is missing or of other code",
    )
    parser.add_argument("--verify", action="store_true", help="check records against the code")
    parser.add_argument(
        "--compare", type=Path, metavar="FRESH", help="set recordings in FRESH beside the records"
    )
    parser.add_argument(
        "--choose", action="store_true", help="only the trials that choose a setting, no record"
    )
    parser.add_argument("--list", action="store_true", help="name the experiments")
    parser.add_argument("--workers", type=int, help="processes side by side")
    parser.add_argument("--folder", type=Path, default=RECORDED, help="where records are kept")
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: a trial run, no record")
    for internal in (
        "--only",
        "--expected",
        "--into",
        "--parent",
    ):  # one run, in a process of its own
        parser.add_argument(internal, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only is not None:
        work(
            options.names[0],
            json.loads(options.only),
            expected=options.expected,
            scale=options.scale,
            folder=Path(options.into),
            parent=int(options.parent),
        )
        return 0
    if options.list:
        print("\n".join(f"{name}: {load_experiment(name).what}" for name in all_names()))
        return 0
    if options.verify:
        return verify_all(options.names or list_records(options.folder), options.folder)
    if options.compare:
        names = options.names or list_records(options.compare)
        return compare_all(names, options.folder, options.compare)
    names = options.names or due(options.folder)
    for name in names:
        if options.choose:
            choose(name, options.workers, options.scale)
        else:
            record(name, options.folder, options.workers, options.scale)
    if not names:
        print("every record was made by the present code; give a NAME to record one again")
    return 0


def due(folder: Path) -> list[str]:
    """The experiments to record when none is named; a long one has to be named, and is printed."""
    names = []
    for name in all_names():
        if up_to_date(name, folder):
            continue
        if isinstance(load_experiment(name), LongExperiment):
            print(f"{name} takes hours, so it has to be named: make experiments NAME={name}")
        else:
            names.append(name)
    return names


def choose(name: str, workers: int | None, scale: float) -> None:
    """Do the trials that are missing and print them all; the runs will use them."""
    trials, _ = run_all(name, workers=workers, scale=scale, choose_only=True)
    by = load_experiment(name).choose.by if trials else None
    for trial in trials:
        words = ", ".join(f"{key} {value}" for key, value in trial["condition"].items())
        score = trial["metrics"][by]
        found = "diverged" if score is None else f"{by} {score:.4f}"
        print(f"{words}: {trial['value']:g} after {trial['steps']} steps: {found}")
    if not trials:
        print(f"{name} has nothing to choose")


def record(name: str, folder: Path, workers: int | None, scale: float) -> None:
    """Run what is missing, then write the record (not for a trial run)."""
    hashes = fingerprint(script_of(name))
    trials, results = run_all(name, workers=workers, scale=scale)
    experiment = load_experiment(name)
    runs = runs_folder(name, hashes, scale)
    if scale != 1:
        print(f"{name}: {len(results)} trial runs in {runs}; no record was written")
        return
    weights = {
        label: (runs / f"{experiment.runs.index(run)}.safetensors").read_bytes()
        for label, run in experiment.keep.items()
    }
    stem = script_of(name).stem
    print(f"wrote {write_record(stem, experiment, results, hashes, weights, folder, trials)}")
    shutil.rmtree(runs)  # whoever asks for it again gets it from scratch


def up_to_date(name: str, folder: Path) -> bool:
    """Whether the record was made by, or verified with, the present code."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return False
    return json.loads(path.read_text("utf-8"))["hashes"] == fingerprint(script_of(name))


def verify_all(names: list[str], folder: Path) -> int:
    """Print one line for each record; 1 when any is stale."""
    stale = 0
    for name in names:
        holds, why = verify(name, folder)
        stale += not holds
        print(f"{name}: {why}")
    if stale:
        print(f"{stale} do not hold; to record one again: make experiments NAME=...")
    return int(stale > 0)


def compare_all(names: list[str], folder: Path, fresh: Path) -> int:
    """Print what is equal and what is not; 1 when anything is not, or nothing was compared."""
    other = 0
    for name in names:
        same, lines = compare(name, folder, fresh)
        other += not same
        print(f"{name}: {'the same numbers' if same else 'NOT THE SAME NUMBERS'}")
        print("\n".join(f"  {line}" for line in lines))
    if not names:
        print(f"there is no record in {fresh}")
    return int(other > 0 or not names)


if __name__ == "__main__":
    sys.exit(main())
