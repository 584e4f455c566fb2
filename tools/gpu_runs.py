"""The long runs, for a machine with a GPU: three data sets, five seeds each, by the command.

    make gpu-runs DATA=data                        all of them
    make gpu-runs NAME=relatives DATA=data         the comparison of chapter 18 instead
    make gpu-runs ARGS=--plan                      only print the commands and the models' sizes
    python -m tools.gpu_runs mnist --seeds 3 4     a part; what is done is not done again

Each run learns from nine tenths of the training images ("train"). What is looked at on the way, the
time to an accuracy too, is looked at on the tenth that is left out ("validation"). The test images
are looked at once, when a run has ended, and choose nothing. A run that was stopped goes on from
its last checkpoint, and each seed's result is kept as soon as it is there.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tools import gpu_relatives
from vitbook.book.intervals import student_interval
from vitbook.command.cli import main as vitbook
from vitbook.command.recipes import build_model, settings_of
from vitbook.files import write_atomically


class Run(NamedTuple):
    """What is aimed at (None: nothing), and what differs from the data set's recipe.

    The settings may name the "data"; otherwise the run is named after it.
    """

    target: float | None
    settings: dict


COMMON: dict[str, Any] = {"embed_dim": 128, "num_heads": 4, "mlp_ratio": 2.0, "dropout": 0.1}
COMMON |= {"batch_size": 256, "learning_rate": 1e-3, "label_smoothing": 0.1, "precision": "bf16"}
GREY = {**COMMON, "patch_size": 4, "depth": 6, "shift": 2, "warmup_steps": 600, "epochs": 30}
COLOUR = {**COMMON, "patch_size": 2, "depth": 7, "pool": "mean", "shift": 4, "flip": True}
RUNS = {
    "mnist": Run(0.995, GREY),
    "fashion-mnist": Run(0.93, {**GREY, "flip": True}),
    "cifar10": Run(0.91, {**COLOUR, "warmup_steps": 1750, "epochs": 300}),
}


RELATIVES = "relatives"


def parameters(name: str, run: Run | None = None) -> int:
    """How many numbers the model of a run learns."""
    settings = (run or RUNS[name]).settings
    with torch.device("meta"):
        model = build_model(settings_of({"data": name, **settings}))
    return sum(parameter.numel() for parameter in model.parameters())


def command(name: str, seed: int, options: argparse.Namespace, run: Run | None = None) -> list[str]:
    """What trains the model of one run, without ``python -m vitbook``."""
    settings = {"data": name, **(run or RUNS[name]).settings, "seed": seed}
    words = ["train", "--data", settings.pop("data"), "--root", options.root]
    words += ["--download", "--learn-from", "train"]
    for setting, value in settings.items():
        words.append(f"--{setting.replace('_', '-')}")
        text = ",".join(value) if isinstance(value, list) else str(value)
        words += [] if value is True else [text]
    out = options.out / name / str(seed)
    return [*words, "--device", options.device, "--out", str(out), "--resume"]


def relative(name: str, rate: float, length: float = 1.0) -> Run:
    """A run of the comparison, or one of its trials, which is shorter."""
    settings = gpu_relatives.settings(name)
    steps = round(length * settings["steps"])
    return Run(None, {**settings, "steps": steps, "learning_rate": rate})


def trials(name: str) -> dict[float, tuple[str, Run]]:
    """For each learning rate the name of its trial and the run."""
    return {
        rate: (f"{RELATIVES}/{name}/rate-{rate:g}", relative(name, rate, gpu_relatives.LENGTH))
        for rate in gpu_relatives.RATES
    }


def rate_of(name: str, options: argparse.Namespace) -> float:
    """The learning rate whose trial has the best accuracy on the validation images."""
    found = {}
    for rate, (called, run) in trials(name).items():
        trained(command(called, gpu_relatives.SEED, options, run))
        metrics = options.out / called / str(gpu_relatives.SEED) / "metrics.csv"
        found[rate] = time_to(None, metrics)["validation_accuracy"]
    print(f"{name}: validation accuracy by learning rate: {found}", flush=True)
    return max(found, key=found.__getitem__)


def trained(words: list[str]) -> None:
    """Run a command of the program, or stop with its exit status."""
    print(shlex.join(["python", "-m", "vitbook", *words]), flush=True)
    if code := vitbook(words):
        sys.exit(code)


def result_of(name: str, seed: int, options: argparse.Namespace, run: Run | None = None) -> dict:
    """Train with one seed and test once, unless that was done before."""
    run = run or RUNS[name]
    out, words = options.out / name / str(seed), command(name, seed, options, run)
    kept, asked = out / "result.json", {"data": name, "seed": seed, **run.settings}
    if kept.exists():
        result = json.loads(kept.read_text(encoding="utf-8"))
        if result["settings"] != asked:
            sys.exit(f"{kept} is the result of other settings; choose another --out")
        return result
    trained(words)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        if code := vitbook(
            ["evaluate", str(out), "--root", options.root, "--device", options.device]
        ):
            sys.exit(code)
    print(told.getvalue(), flush=True)
    found = re.search(r"([\d,]+) of ([\d,]+) right", told.getvalue())
    assert found is not None
    right, count = found.groups()
    result = {
        "settings": asked,
        "parameters": parameters(name, run),
        "test_accuracy": int(right.replace(",", "")) / int(count.replace(",", "")),
        **time_to(run.target, out / "metrics.csv"),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "a processor",
        "torch": torch.__version__,
    }
    write_atomically(kept, (json.dumps(result, indent=2) + "\n").encode())
    return result


def time_to(target: float | None, metrics: Path) -> dict:
    """When the validation images first came to the target (None: never), and when the run ended."""
    with open(metrics, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["val_accuracy"]]
    first = None
    if target is not None:
        first = next((row for row in rows if float(row["val_accuracy"]) >= target), None)
    return {
        "target": target,
        "epochs_to_target": None if first is None else int(first["epoch"]),
        "seconds_to_target": None if first is None else float(first["seconds"]),
        "seconds": float(rows[-1]["seconds"]),
        "validation_accuracy": float(rows[-1]["val_accuracy"]),
    }


def summary(name: str, results: list[dict]) -> str:
    """Mean and interval over the seeds, what that says about the target, and the time to it."""
    target, accuracies = results[0]["target"], [result["test_accuracy"] for result in results]
    low, high, interval = -math.inf, math.inf, "one seed, no interval"
    if len(results) > 1:
        _, low, high = student_interval(accuracies)
        interval = f"95 % interval {100 * low:.2f} to {percent(high)}, {len(results)} seeds"
    lines = [
        f"{name}, {results[0]['parameters']:,} parameters, on {results[0]['device']}:",
        f"  test accuracy {percent(mean(accuracies))} ({interval})",
        f"  a whole run took {mean([result['seconds'] for result in results]):.0f} s",
    ]
    if target is None:
        return "\n".join(lines)
    verdict = "reached" if low >= target else "missed" if high < target else "open"
    there = [result for result in results if result["seconds_to_target"] is not None]
    aim = f"  target {percent(target)}: {verdict}; validation there in {len(there)} of "
    lines.insert(2, f"{aim}{len(results)} seeds")
    if there:
        epochs, seconds = (
            mean([result[f"{unit}_to_target"] for result in there])
            for unit in ("epochs", "seconds")
        )
        lines[2] += f", in these after {epochs:.1f} epochs and {seconds:.0f} s"
    return "\n".join(lines)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def show_commands(
    name: str, seeds: list[int], options: argparse.Namespace, run: Run | None = None
) -> None:
    for seed in seeds:
        print(shlex.join(["python", "-m", "vitbook", *command(name, seed, options, run)]))


def plan_of(name: str, options: argparse.Namespace) -> None:
    """The trials of one architecture, then its runs."""
    rates = gpu_relatives.RATES
    run = relative(name, rates[len(rates) // 2])
    count, steps = parameters(name, run), run.settings["steps"]
    print(f"# {RELATIVES}/{name}: {count:,} parameters, {steps:,} steps; first its trials:")
    for called, trial in trials(name).values():
        show_commands(called, [gpu_relatives.SEED], options, trial)
    print("# then, with the learning rate of the best trial (here the middle one):")
    show_commands(f"{RELATIVES}/{name}", options.seeds, options, run)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join((*RUNS, RELATIVES))}"
    )
    parser.add_argument("--root", default="data", help="folder of the data sets (data)")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], metavar="SEED")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--plan", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {*RUNS, RELATIVES}:
        known = ", ".join((*RUNS, RELATIVES))
        parser.error(f"NAME must be one of {known}, got {', '.join(sorted(unknown))}")
    told = []
    for name in [name for name in options.names or RUNS if name != RELATIVES]:
        if options.plan:
            target = RUNS[name].target
            assert target is not None
            print(f"# {name}: {parameters(name):,} parameters, target {percent(target)}")
            show_commands(name, options.seeds, options)
            continue
        told.append(summary(name, [result_of(name, seed, options) for seed in options.seeds]))
        print(told[-1], flush=True)
    for name in gpu_relatives.LAYERS if RELATIVES in options.names else ():
        called = f"{RELATIVES}/{name}"
        if options.plan:
            plan_of(name, options)
            continue
        run = relative(name, rate_of(name, options))
        found = [result_of(called, seed, options, run) for seed in options.seeds]
        told.append(summary(called, found))
        print(told[-1], flush=True)
    if len(told) > 1:
        print("\n".join(["", *told]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
