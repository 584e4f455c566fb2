"""Does a second recording give the numbers of the first? Every number is looked at."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from experiments.machinery.recording import TIMES
from vitbook.book.records import Record, load_record


def compare(name: str, kept: Path, fresh: Path) -> tuple[bool, list[str]]:
    """Set two recordings of one experiment side by side, times left out.

    Args:
        name: the record, by that name in both folders.
        kept: where the record lies.
        fresh: where the new recording lies.

    Returns:
        Whether everything is equal to the last digit, and a line for each thing compared.
    """
    first, second = load_record(name, kept), load_record(name, fresh)
    findings = [("data", "equal" if first.data == second.data else "OTHER DATA")]
    ours, theirs = _by_run(first), _by_run(second)
    same = ours.keys() == theirs.keys()
    findings.append(("runs", f"equal, {len(ours)}" if same else "OTHER RUNS"))
    pairs = [(ours[run], theirs[run]) for run in ours if run in theirs]
    metrics = {m: None for record in (first, second) for run in record.runs for m in run["metrics"]}
    for metric in metrics:
        if metric not in TIMES:
            findings.append((metric, _largest((a.get(metric), b.get(metric)) for a, b in pairs)))
    if first.choice or second.choice:
        findings.append(("trials", _trials(first, second)))
    for label in {**first.weight_files, **second.weight_files}:
        a, b = (r.weights(label) if label in r.weight_files else {} for r in (first, second))
        tensors = ([w[k].tolist() if k in w else None for w in (a, b)] for k in {**a, **b})
        findings.append((f"weights of {label}", _largest(tensors)))
    width = max(len(what) for what, _ in findings)
    lines = [f"{what:<{width}}  {found}" for what, found in findings]
    return all(found.startswith("equal") for _, found in findings), lines


def _by_run(record: Record) -> dict[str, dict]:
    def key(run: dict) -> str:
        return json.dumps([run["condition"], run["seed"]], sort_keys=True)

    return {key(run): run["metrics"] for run in record.runs}


def _trials(first: Record, second: Record) -> str:
    """The trials of two searches, in their order."""
    if first.choice != second.choice or len(first.trials) != len(second.trials):
        return "ANOTHER SEARCH"
    by, pairs = first.choice["by"], zip(first.trials, second.trials, strict=True)
    return _largest([[trial["metrics"][by] for trial in pair] for pair in pairs])


def _largest(pairs: Iterable[Sequence]) -> str:
    """How far apart the numbers of some pairs are, at most."""
    largest, count = 0.0, 0
    for pair in pairs:
        missing = [values is None for values in pair]
        if all(missing):
            continue  # this metric belongs to other conditions
        if any(missing) or np.shape(pair[0]) != np.shape(pair[1]):
            return "NOT COMPARABLE: another number of values"
        one, other = (np.asarray(values, dtype=float) for values in pair)
        count += one.size
        largest = max(largest, float(np.abs(one - other).max(initial=0.0)))
    numbers = f"{count:,} number{'s' * (count != 1)}"
    return f"equal, {numbers}" if largest == 0 else f"differ by {largest:.2g} at most, {numbers}"
