"""A change that matters is caught by the golden replays of its records.

Changes that matter are planted by patching what the package calls, whatever module it stands in.
Each stands for a stage: how weights start, what is computed, how they learn, what is seen; the
package's own tests hold the others.
"""

import functools
import importlib
import json
import sys
from pathlib import Path

import pytest
import torch.nn.functional as F

from experiments.machinery.experiment import all_names, load_experiment, script_of
from experiments.machinery.golden import golden_of, golden_path, moved
from vitbook import data
from vitbook.book.records import load_record
from vitbook.layers import init
from vitbook.models.vit import VisionTransformer
from vitbook.training import train

ROOT = Path(__file__).resolve().parents[2]
LOOP = sys.modules[train.__module__]


def around(patch, owner, name, change):
    """Let `change(original, *args, **kwargs)` stand for a function, and count its calls."""
    original, calls = getattr(owner, name), []

    @functools.wraps(original)
    def planted(*args, **kwargs):
        calls.append(name)
        return change(original, *args, **kwargs)

    patch.setattr(owner, name, planted)
    return calls


def start_of_weights(patch):
    return around(patch, init, "truncated_normal_", lambda f, w, std: f(w, std=1.01 * std))


def eps_of_the_norms(patch):
    def with_eps(norm, x, shape, weight, bias, eps):
        return norm(x, shape, weight, bias, 1e-5)

    return around(patch, F, "layer_norm", with_eps)


def everything_decays(patch):
    def one_group(groups, model, weight_decay):
        return [{**group, "weight_decay": weight_decay} for group in groups(model, weight_decay)]

    return around(patch, LOOP, "parameter_groups", one_group)


def a_straight_way_down(patch):
    calls = []

    def schedule(step, total_steps, warmup_steps):
        calls.append("schedule")
        return min(1.0, (step + 1) / max(1, warmup_steps)) * (1 - step / total_steps)

    patch.setitem(train.__kwdefaults__, "schedule", schedule)
    return calls


def normalisation(patch):
    for name, (mean, std) in list(data.STATISTICS.items()):
        patch.setitem(data.STATISTICS, name, (mean, tuple(1.001 * s for s in std)))
    return ["statistics"]


def pooling(patch):
    def all_but_the_last(head, model, features):
        return head(model, features[:, :-1] if model.pool == "mean" else features.roll(1, dims=1))

    return around(patch, VisionTransformer, "forward_head", all_but_the_last)


# Each with runs that are quick and use what is changed.
DIGITS, FIVE = ("digits", "model vit"), ("five_classes", "classes even")
PLANTED = {
    start_of_weights: [DIGITS, ("reach", "arm Mixer")],
    eps_of_the_norms: [DIGITS, FIVE],
    everything_decays: [DIGITS, ("digits", "model cnn")],
    a_straight_way_down: [DIGITS, ("digits", "model cnn")],
    normalisation: [FIVE, ("recipe", "recipe flip")],
    pooling: [("pooling", "pool mean"), ("pooling", "pool cls")],
}


def replayed(name: str, first: str) -> list[str]:
    """What moves in the first run of a golden replay whose name begins so."""
    kept = json.loads(golden_path(name).read_text(encoding="utf-8"))
    run = next(run for run in kept["runs"] if run.startswith(first))
    scales, choice = {run: kept["runs"][run]["scale"]}, load_record(name).choice
    now = golden_of(load_experiment(name), choice.get("winners", []), scales, only=[run])
    then = {"runs": {run: kept["runs"][run]}, "recipes": []}
    return moved(then, {**now, "recipes": []})


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_change_that_matters_is_caught(plant, monkeypatch):
    with monkeypatch.context() as patch:
        calls = plant(patch)
        for name, first in PLANTED[plant]:
            assert replayed(name, first), f"{name}, {first} is the same"
    assert calls


# Numbers that nothing in miniature reaches: in a script, and in what scripts share.
DECLARED = {
    "near_far": ("LOOKED = 300", "THRESHOLD = 0.2", "HALF = 0.5"),
    "matching_pairs": ('"train": 20_000',),
}
SHARED = {
    "machinery.classifier.KNOWN": "digits",
    "token_mixing.mixing.LOOKS": "mixing_pointer",
    "full_sets.full_sets_best.EVALUATIONS": "full_sets_long",
}


def declared_otherwise(name: str, script: str) -> list[str]:
    """What moves without a run: the constants."""
    kept = json.loads(golden_path(name).read_text(encoding="utf-8"))
    now = golden_of(load_experiment(script), only=[])
    return moved({**kept, "runs": {}, "recipes": []}, now)


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_number_that_the_miniature_does_not_reach_is_compared(name, tmp_path):
    source, copy = script_of(name).read_text("utf-8"), tmp_path / f"{name}.py"
    for line in DECLARED[name]:
        assert source.count(line) == 1
        copy.write_text(source.replace(line, f"{line} + 1"), encoding="utf-8")
        assert len(declared_otherwise(name, str(copy))) == 1, line


@pytest.mark.parametrize("constant", SHARED)
def test_so_is_one_that_scripts_share(constant, monkeypatch):
    folder, module, name = constant.split(".")
    owner = importlib.import_module(f"experiments.{folder}.{module}")
    value = getattr(owner, name)
    doubled = {k: 2 * v for k, v in value.items()} if isinstance(value, dict) else value + 1
    monkeypatch.setattr(owner, name, doubled)
    found = declared_otherwise(*2 * [SHARED[constant]])
    assert any(line.startswith(f"{module}.{name}") for line in found)


def test_the_logged_losses_are_compared_beside_a_rounded_metric_of_that_name():
    run = {"steps": 3, "scale": 1.0, "losses": [0.6931471, 0.5], "metrics": {"loss": [0.69, 0.5]}}
    other = {**run, "losses": [0.6931472, 0.5]}
    then, now = ({"runs": {"a": one}, "recipes": []} for one in (run, other))
    assert moved(then, then) == []
    assert moved(then, now) == ["a: loss is 0.6931472, 0.5, was 0.6931471, 0.5"]


# Planted at the start of the weights, and yet nothing that the record computes depends on it.
UNTOUCHED = {
    "cheaper_attention": "trained weights of cifar_maps are loaded over the start, 0 of it is left",
    "cifar_contrast": "the same",
    "draw_digit_letters": "so are those of draw_digit",
    "draw_digit_maps": "the same",
    "misplaced": "so are those of five_classes",
    "first_step": "it draws all its weights anew",
}


def kept_names() -> list[str]:
    """The experiments that have a golden replay."""
    return [name for name in all_names() if golden_path(name).is_file()]


def by_losses(runs: dict) -> list[str]:
    """The runs of a golden replay, first the last one that makes steps."""
    backwards = list(reversed(runs))
    return sorted(backwards, key=lambda run: not runs[run]["losses"])


@pytest.mark.deep
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_change_that_matters_is_caught_by_every_record_that_uses_it(plant, monkeypatch):
    """By the last run of its golden replay that makes steps, or else by any other."""
    blind, troubled = [], []
    for name in kept_names():
        runs = json.loads(golden_path(name).read_text(encoding="utf-8"))["runs"]
        first, *others = by_losses(runs)
        with monkeypatch.context() as patch:
            calls = plant(patch)
            seen = bool(replayed(name, first))
            seen = seen or (bool(calls) and any(replayed(name, run) for run in others))
        used = bool(calls) and not (plant is start_of_weights and name in UNTOUCHED)
        if used and not seen and plant is not normalisation:
            blind.append(name)
        if seen and not used:
            troubled.append(name)
    assert (blind, troubled) == ([], [])
