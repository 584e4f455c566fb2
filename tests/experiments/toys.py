"""Small experiments for the tests of the machinery, and their records without processes."""

import sys
from pathlib import Path

import torch

from experiments.machinery.choose import decide, search
from experiments.machinery.experiment import Experiment, load_experiment
from experiments.machinery.files import half_precision
from experiments.machinery.golden import golden_of
from experiments.machinery.recording import write_record
from experiments.machinery.worker import tried

ROOT = Path(__file__).resolve().parents[2]
WHERE = {"machine": {"device": "test"}, "versions": {"torch": torch.__version__}}


def command(script: Path, *options: str) -> list[str]:
    out = str(script.parent / "out")
    return [sys.executable, "-m", "experiments", str(script), "--folder", out, *options]


def started(script: Path) -> list[str]:
    """What a toy's runs noted when they began."""
    path = script.with_name("started")
    return path.read_text().splitlines() if path.is_file() else []


def trials_of(experiment: Experiment) -> list[dict]:
    def do(wanted):
        done = []
        for one in wanted:
            losses, settings = [], {experiment.choose.setting: one["value"]}
            given = (one["condition"], one["seed"], one["length"], settings)
            metrics = {**tried(experiment, *given, losses.append, 1.0), "seconds": 0.1}
            kept = {"metrics": metrics, "steps": len(losses), "losses": losses[:20]}
            done.append({**one, **WHERE, **kept})
        return done

    return search(experiment.plan, do)


def results_of(experiment: Experiment, winners: list[dict]) -> tuple[list[dict], dict]:
    """The results of all runs, and the weights that are kept."""
    results, weights = [], {}
    for condition, seed in experiment.runs:
        losses, settings = [], experiment.chosen_for(condition, winners)
        outcome = experiment.run(condition, seed, losses.append, 1.0, **settings)
        one = {"condition": condition, "seed": seed, "settings": settings}
        metrics = {**outcome.metrics, "seconds": 0.1}
        results.append({**one, **WHERE, "metrics": metrics, "losses": [*map(float, losses[:20])]})
        if (condition, seed) in experiment.keep.values():
            weights["w"] = half_precision(outcome.weights)
    return results, weights


def record(script: Path) -> Path:
    """Write the record of a script."""
    experiment = load_experiment(str(script))
    trials = trials_of(experiment) if experiment.choose else []
    winners = decide(experiment.plan, trials) if trials else []
    golden, made = golden_of(experiment, winners), results_of(experiment, winners)
    return write_record("toy", experiment, *made, script.parent, trials, golden)
