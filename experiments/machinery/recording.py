"""From the runs' results to the record: one JSON, its weights beside it."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.machinery.above_baselines import METRIC, require_above_linear, require_beaten
from experiments.machinery.choose import decide
from experiments.machinery.experiment import Experiment
from experiments.machinery.files import write_bytes, write_json
from experiments.machinery.golden import golden_path
from vitbook.book.intervals import student_interval
from vitbook.book.records import FORMAT

MAX_WEIGHTS = 1_000_000  # bytes, all weights of a record together
TIMES = {
    "seconds": "seconds that one run took, waiting included",
    "cpu_seconds": "seconds that the processor spent on one run",
}


def write_record(
    name: str,
    experiment: Experiment,
    results: list[dict],
    weights: dict[str, bytes],
    folder: Path,
    trials: Sequence[dict] = (),
    golden: dict | None = None,
) -> Path:
    """Write the weights and the golden replay, then the JSON of the record; return its path.

    `name` is the experiment's, or the path of its script.

    Raises:
        ValueError: the record is refused, because of a linear classifier or of what `must_beat`,
            `choose` or the size of the weights asks for. Nothing is written then.
    """
    stem, data, plan = Path(name).stem, experiment.data(), experiment.plan
    if must := experiment.must_beat:
        whole = [r["metrics"][METRIC] for r in results if r["condition"] == must.whole]
        require_beaten(must, whole, data)
    choice = plan and {**plan, "winners": decide(plan, trials)}
    if choice:
        for result in results:
            expected = experiment.chosen_for(result["condition"], choice["winners"])
            if result["settings"] != expected:
                raise ValueError(
                    f"{result['condition']} ran with {result['settings']}, not with {expected}"
                )
    total = sum(map(len, weights.values()))
    if total > MAX_WEIGHTS:
        raise ValueError(f"the weights take {total} bytes, more than {MAX_WEIGHTS}: keep fewer")
    rows = summary(experiment, results)
    require_above_linear({"name": stem, "summary": rows, "data": data})
    entries: dict[str, dict] = {}
    files: dict[str, str] = {}
    for label, content in weights.items():
        condition, seed = experiment.keep[label]
        sha256 = hashlib.sha256(content).hexdigest()
        file = f"{stem}.safetensors" if len(weights) == 1 else f"{stem}-{label}.safetensors"
        file = files.setdefault(sha256, file)  # of equal weights one file
        write_bytes(folder / file, content)
        entries[label] = {"file": file, "sha256": sha256, "condition": condition, "seed": seed}
    machines = _distinct(result["machine"] for result in [*results, *trials])
    versions = _distinct(result["versions"] for result in [*results, *trials])
    if len(versions) > 1:
        raise ValueError(
            f"the runs used different library versions: {versions}; delete their folder"
        )
    record = {
        "format": FORMAT,
        "name": stem,
        "what": experiment.what,
        "chosen_on": experiment.chosen_on,
        "settings": experiment.settings,
        "metrics": {**experiment.metrics, **TIMES},
        "summary": rows,
        "runs": [{k: result[k] for k in ("condition", "seed", "metrics")} for result in results],
        "machines": machines,
        "versions": versions[0],
        "data": data,
        "wall_seconds": round(sum(r["metrics"]["seconds"] for r in [*results, *trials]), 1),
        "date": time.strftime("%Y-%m-%d"),
        "weight_files": entries,
        "replay": _replay(experiment, results),
    }
    if choice:
        keys = ("condition", "seed", "length", "value", "steps", "metrics")
        kept = [{key: trial[key] for key in keys} for trial in trials]
        record |= {"choice": choice, "trials": kept}
        arm = experiment.choose.arm(experiment.replay[0])
        trial = next(trial for trial in trials if trial["condition"] == arm)
        replayed = ("condition", "seed", "length", "value", "losses")
        record["replay"] |= {"trial": {key: trial[key] for key in replayed}}
    path = folder / f"{stem}.json"
    if golden:
        write_json(golden_path(name, folder), golden)
    write_json(path, record)
    return path


def summary(experiment: Experiment, results: list[dict]) -> list[dict]:
    """Mean and 95 % interval of each number under each condition, for readers of the JSON."""
    rows = []
    for condition in [*experiment.once, *experiment.conditions]:
        runs = [result["metrics"] for result in results if result["condition"] == condition]
        for metric in runs[0]:
            values = [run[metric] for run in runs]
            if isinstance(values[0], list):
                continue
            row = {"condition": condition, "metric": metric, "seeds": len(values)}
            row["mean"] = sum(values) / len(values)
            if len(values) > 1:
                row["low"], row["high"] = student_interval(values)[1:]
            rows.append(row)
    return rows


def _replay(experiment: Experiment, results: list[dict]) -> dict | None:
    if experiment.replay is None:
        return None
    condition, seed = experiment.replay
    (result,) = [r for r in results if (r["condition"], r["seed"]) == (condition, seed)]
    return {"condition": condition, "seed": seed, "losses": result["losses"]}


def _distinct(items: Iterable[dict]) -> list[dict]:
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
