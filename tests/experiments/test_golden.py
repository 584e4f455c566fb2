"""A change that matters is caught by the golden replays of its records; another wording is not.

Changes that matter are planted by patching what the package calls, whatever module it stands in.
Changes that do not matter are made to a copy of all sources, one rule for every file.
"""

import ast
import functools
import importlib
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import all_names, load_experiment, script_of
from experiments.machinery.golden import golden_of, golden_path, moved
from vitbook import data
from vitbook.book.records import load_record
from vitbook.layers import init
from vitbook.layers.encoder import EncoderBlock
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


def a_second_epoch_like_the_first(patch):
    return around(patch, LOOP, "epoch_order", lambda order, n, seed, epoch: order(n, seed, 0))


def a_short_batch_at_the_end(patch):
    source = inspect.getsource(LOOP._batches)
    assert "len(images) // b)" in source
    names = dict(vars(LOOP))
    exec(source.replace("len(images) // b)", "-(-len(images) // b))"), names)
    return around(patch, LOOP, "_batches", lambda batches, *rest: names["_batches"](*rest))


def clip(patch):
    return around(patch, nn.utils, "clip_grad_norm_", lambda f, given, most: f(given, 2 * most))


def no_smoothing(patch):
    def without(cross_entropy, x, y, label_smoothing=0.0, **options):
        return cross_entropy(x, y, **options)

    return around(patch, F, "cross_entropy", without)


def a_wider_shift(patch):
    def wider(augmentation, **options):
        return augmentation(**{**options, "shift": options.get("shift", 0) + 1})

    return around(patch, data, "augmentation", wider)


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
    a_second_epoch_like_the_first: [DIGITS, FIVE, ("position_encodings", "positions rotary")],
    a_short_batch_at_the_end: [DIGITS, FIVE, ("reach", "arm Mixer")],
    clip: [DIGITS],
    no_smoothing: [("recipe", "recipe smoothing")],
    a_wider_shift: [("recipe", "recipe shift")],
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


def test_a_conversion_that_changes_nothing_is_no_change(monkeypatch):
    def converted(block, encoder_block, x, *rest):
        x = x.float().to(torch.float32).to(x.device, dtype=torch.float32)
        return block(encoder_block, x.type(torch.float32), *rest)

    calls = around(monkeypatch, EncoderBlock, "forward", converted)
    assert [replayed(name, first) for name, first in (DIGITS, FIVE)] == [[], []]
    assert calls


# Numbers that nothing in miniature reaches: in a script, and in what scripts share.
DECLARED = {
    "near_far": ("LOOKED = 300", "THRESHOLD = 0.2", "HALF = 0.5"),
    "attention_scores": ("LEVEL = 0.95",),
    "small_data": ("WARMUP = 10", "PER_CLASS = 100"),
    "position_encodings": ("POINTS = 104",),
    "cheaper_attention": ("POINTS = 20", '"test": 2000'),
    "matching_pairs": ('"train": 20_000',),
}
SHARED = {
    "machinery.classifier.KNOWN": "digits",
    "machinery.image_sets.SEED": "recipe",
    "machinery.measures.POINTS": "digits",
    "machinery.plain.WARMUP": "attention_scores",
    "token_mixing.mixing.LOOKS": "mixing_pointer",
    "token_mixing.mixing.POINTS": "mixing_longer",
    "vit_design.canvas.COUNTS": "block_ablation",
    "full_sets.tested.EVALUATIONS": "full_sets_best",
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


def test_another_name_or_another_text_of_a_constant_is_no_change(tmp_path):
    source, copy = script_of("near_far").read_text("utf-8"), tmp_path / "near_far.py"
    source = source.replace("LOOKED", "COUNTED").replace("share of the attention", "attention")
    copy.write_text(source, encoding="utf-8")
    assert declared_otherwise("near_far", str(copy)) == []


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
    silent = (a_wider_shift, no_smoothing, normalisation)  # called, but without effect
    blind, troubled = [], []
    for name in kept_names():
        runs = json.loads(golden_path(name).read_text(encoding="utf-8"))["runs"]
        first, *others = by_losses(runs)
        with monkeypatch.context() as patch:
            calls = plant(patch)
            seen = bool(replayed(name, first))
            seen = seen or (bool(calls) and any(replayed(name, run) for run in others))
        used = bool(calls) and not (plant is start_of_weights and name in UNTOUCHED)
        if used and not seen and plant not in silent:
            blind.append(name)
        if seen and not used:
            troubled.append(name)
    assert (blind, troubled) == ([], [])


# ---- changes that do not matter, each a rule for all sources ----

Trees = dict[Path, ast.Module]


def a_moved_module(trees: Trees) -> int:
    (old,) = (p for p, t in trees.items() if any(f.name == "count_multiplies" for f in t.body
              if isinstance(f, ast.FunctionDef)))  # fmt: skip
    package = next(up for up in old.parents if up.name == "vitbook")
    was = ".".join(old.relative_to(package.parent).with_suffix("").parts)
    trees[package / "moved.py"] = trees.pop(old)
    old.unlink()
    count = 0
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == was:
                node.module, count = "vitbook.moved", count + 1
    return count


def arguments_with_a_default(trees: Trees) -> int:
    count = 0
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.args.kwarg:
                node.args.kwonlyargs.append(ast.arg("new_option"))
                node.args.kw_defaults.append(ast.Constant(None))
                count += 1
            if isinstance(node, ast.ClassDef) and node.name == "TrainConfig":
                node.body.append(ast.parse("new_option: int = 0").body[0])
    return count


EQUAL_CODE = """
import math
import torch
import torch.nn.functional as F
def gelu(x, approximate="none"):
    return x * torch.special.ndtr(x)
def layer_norm(x, shape, weight, bias, eps):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * (centred.square().mean(dim=-1, keepdim=True) + eps).rsqrt() * weight + bias
def attend(q, k, v, attn_mask=None, dropout_p=0.0):
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.dropout(scores.softmax(dim=-1), dropout_p, dropout_p > 0) @ v
F.gelu, F.layer_norm, F.scaled_dot_product_attention = gelu, layer_norm, attend
"""
REPLAY = """
import json, sys
from experiments.machinery.golden import golden_of, golden_path, moved, scales_of
from experiments.machinery.experiment import load_experiment
from vitbook.book.records import load_record
import vitbook
assert "copied" in vitbook.__file__
for name in sys.argv[1:]:
    kept = json.loads(golden_path(name).read_text())
    winners = load_record(name).choice.get("winners", [])
    for line in moved(kept, golden_of(load_experiment(name), winners, scales_of(kept))):
        print(f"{name}: {line}")
"""
CHEAP = ("digits", "mixer_units")


def rewritten(folder: Path) -> Path:
    """A copy of the sources with the rules applied, laid out anew and without comments."""
    copy = folder / "copied"
    for tree in ("src/vitbook", "experiments"):
        shutil.copytree(ROOT / tree, copy / tree, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "before.py").write_text(EQUAL_CODE, encoding="utf-8")
    trees = {path: ast.parse(path.read_text("utf-8")) for path in copy.rglob("*/**/*.py")}
    for rule in (a_moved_module, arguments_with_a_default):
        assert rule(trees), f"{rule.__name__} changed nothing"
    for path, tree in trees.items():
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    return copy


def replayed_in(copy: Path, names) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", f"import before\n{REPLAY}", *names],
        cwd=copy, env={"PYTHONPATH": f"{copy}:{copy / 'src'}", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("names", [CHEAP, pytest.param(kept_names(), marks=pytest.mark.deep)])
def test_changes_that_do_not_matter_trouble_no_record(tmp_path, names):
    """All at once: other layout, no comments, faster equal code, and the two rules."""
    assert replayed_in(rewritten(tmp_path), names) == ""
