"""The experiments on the parts of a ViT: what is compared is what is said."""

import sys
from itertools import pairwise

import pytest
from torch import nn

from experiments.machinery.experiment import load_experiment

EXPERIMENTS = {name: load_experiment(name) for name in ("patch_sizes", "norm_placement")}
norms = sys.modules["experiment_norm_placement"]
patches = sys.modules["experiment_patch_sizes"]


def size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_patch_sizes_change_nothing_but_the_embedding_and_the_table():
    models = [patches.build(p, seed=0) for p in patches.SIZES]
    others = {
        size(m) - m.patch_embed.proj.weight.numel() - m.positions.table.numel() for m in models
    }
    assert len(others) == 1
    assert [model.patch_embed.num_patches for model in models] == [49, 9, 4, 1]


def test_both_lengths_of_a_patch_size_begin_with_the_same_weights():
    short, long = (patches.build(14, seed=3, steps=n) for n in (patches.SHORT, patches.LONG))
    assert all(p.equal(q) for p, q in zip(short.parameters(), long.parameters(), strict=True))


@pytest.mark.parametrize("depth", norms.RATES)
def test_every_kind_of_a_depth_is_tried_with_the_same_rates(depth):
    found = {}
    for condition in EXPERIMENTS["norm_placement"].conditions:
        if condition["depth"] == depth and condition["steps"] == norms.SHORT:
            kind = condition["norm"], condition["warmup"]
            found.setdefault(kind, []).append(condition["learning_rate"])
    rates = [*norms.RATES[depth]]
    assert list(found.values()) == [rates] * 4
    assert all(b == pytest.approx(2 * a) for a, b in pairwise(rates))


@pytest.mark.parametrize(("warmup", "steps"), [(True, 90), (False, 0)])
def test_a_warm_up_takes_a_fifth_of_the_steps_or_none(warmup, steps):
    condition = {"warmup": warmup, "steps": norms.SHORT, "learning_rate": 1e-3}
    assert norms.CLASSIFIER.settings(condition)["warmup_steps"] == steps


def test_the_deep_runs_go_on_where_the_others_ended():
    deep = load_experiment("norm_deep").conditions
    before = EXPERIMENTS["norm_placement"].conditions
    assert not [c for c in deep if c in before]
    kinds = {}
    for condition in [*before, *deep]:
        kind = tuple(condition[key] for key in ("norm", "depth", "warmup", "steps"))
        kinds.setdefault(kind, []).append(condition["learning_rate"])
    for rates in kinds.values():
        assert all(b == pytest.approx(2 * a) for a, b in pairwise(sorted(rates)))  # no gap


def test_pre_and_post_begin_with_the_same_weights():
    pre, post = (norms.build(norm, depth=2, seed=1) for norm in ("pre", "post"))
    ours, theirs = pre.state_dict(), post.state_dict()
    assert all(weight.equal(ours[name]) for name, weight in theirs.items())
