"""The recipes for whole data sets: each part does what it says, and the arms fit their limits."""

import sys

import pytest
import torch
from torch import nn

from experiments.machinery import full_recipe as recipe
from experiments.machinery.experiment import load_experiment
from experiments.machinery.full_augment import random_affine, random_erase, stronger
from experiments.machinery.full_parts import Averaged, CoarseStem, KeepHalf, refined
from vitbook.book.records import Record
from vitbook.models.cost import count_parameters
from vitbook.models.vit import VisionTransformer

SETS = ("mnist", "fashion-mnist", "cifar10")
EACH = [(name, arm) for name in SETS for arm in recipe.ARMS[name]]


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("name", "arm"), EACH)
def test_no_arm_is_larger_than_its_limit_and_none_is_small(name, arm):
    size = count_parameters(recipe.build(name, arm, 0))  # of the model that answers at the end
    assert 0.75 * recipe.LIMITS[name] < size <= recipe.LIMITS[name]
    if recipe.LARGE_FIRST in recipe.words(arm):
        first = count_parameters(recipe.build(name, arm, 0, patches=2))
        assert size < first <= recipe.LIMITS[name]


def test_a_coarse_stem_has_the_grid_of_patches_of_7_and_sees_beyond_them():
    torch.manual_seed(0)
    stem = CoarseStem(in_channels=2, embed_dim=6).eval()  # a batch in training shares its means
    images = torch.randn(3, 2, 28, 28, requires_grad=True)
    tokens = stem(images)
    assert tokens.shape == (3, 16, 6)
    assert (stem.grid, stem.num_patches, stem.patch_size) == ((4, 4), 16, 7)
    (gradient,) = torch.autograd.grad(tokens[:, 4 * 1 + 2].abs().sum(), images)
    seen = gradient.abs().sum(dim=(0, 1)) > 0  # (H, W); patches of 7: rows 7-13, columns 14-20
    assert seen.any(dim=1).nonzero().flatten().tolist() == list(range(5, 16))
    assert seen.any(dim=0).nonzero().flatten().tolist() == list(range(11, 22))
    with pytest.raises(ValueError, match=r"\(B, 2, 28, 28\), got \(3, 2, 32, 28\)"):
        stem(torch.randn(3, 2, 32, 28))
    with pytest.raises(ValueError, match="even, got 7"):
        CoarseStem(in_channels=2, embed_dim=7)


def test_the_arms_with_a_coarse_stem_have_it():
    model = recipe.build("mnist", recipe.COARSE, 0)
    assert isinstance(model.patch_embed, CoarseStem)
    assert model.forward_features(torch.randn(2, 1, 28, 28)).shape == (2, 16, 72)


def test_augmentation_costs_an_arm_what_it_costs_the_one_that_was_measured_with_it():
    for name, costs in recipe.COST.items():
        measured = next(arm for arm in costs if recipe.AUGMENTED in recipe.words(arm))
        bare = measured.removesuffix(f", {recipe.AUGMENTED}")
        assert recipe.augmented(bare) == recipe.augmented(measured) == measured
        assert recipe.cost(name, measured) == costs[measured]
        more = recipe.cost(name, recipe.augmented(recipe.PLAIN)) - costs[recipe.PLAIN]
        assert more == pytest.approx(costs[measured] - costs[bare])


@pytest.mark.parametrize("name", SETS)
def test_each_arm_takes_the_minutes_of_the_others(name):
    for arm in recipe.ARMS[name]:
        minutes = recipe.steps_of(name, arm, 0.5) * recipe.COST[name][arm]
        assert minutes == pytest.approx(0.5 * recipe.plain_steps(name), rel=1e-3)
    half = recipe.steps_of(name, recipe.PLAIN, 0.5)
    epochs = load_experiment("full_sets").settings[name]["epochs"]
    assert recipe.epochs_of(name, half) == pytest.approx(epochs / 2, rel=2e-3)


def test_half_of_the_tokens_are_kept_while_training_and_all_at_the_end():
    x = torch.arange(7.0)[None, :, None].repeat(5, 1, 3)  # (B, N, D) = (5, 7, 3), each its number
    half = KeepHalf(2).train()
    for _ in range(2):
        kept = half(x)
        assert kept.shape == (5, 3, 3)
        assert (kept == kept[..., :1]).all()  # whole tokens
        assert all(len(row.unique()) == 3 for row in kept[..., 0])  # no token twice
        assert len({tuple(sorted(row.tolist())) for row in kept[..., 0]}) > 1  # each image its own
    assert half(x) is x
    half.seen.zero_()
    assert half.eval()(x) is x
    assert half.seen == 0  # evaluations do not count
    assert not half.state_dict()


def test_the_average_follows_the_weights_as_it_is_defined():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    averaged, expected = Averaged(net, decay=0.3), net[0].weight.detach().clone()
    means = net[1].running_mean.clone()
    for t in range(6):
        keep = min(0.3, (1 + t) / (10 + t))
        expected = keep * expected + (1 - keep) * net[0].weight.detach()
        means = keep * means + (1 - keep) * net[1].running_mean
        averaged.train()(torch.randn(5, 3)).sum().backward()
        with torch.no_grad():
            net[0].weight -= 0.1 * torch.randn(4, 3)
    torch.testing.assert_close(averaged.average[0].weight, expected)
    torch.testing.assert_close(averaged.average[1].running_mean, means)
    assert averaged.average[1].num_batches_tracked == 5  # of the step before
    assert not any(p.requires_grad for p in averaged.average.parameters())
    x = torch.randn(2, 3)
    torch.testing.assert_close(averaged.eval()(x), averaged.average(x))
    assert not torch.allclose(averaged(x), averaged.model(x))


SIZES = {"in_channels": 2, "num_classes": 3, "embed_dim": 8, "depth": 1, "num_heads": 2}


def test_a_small_patch_is_read_as_the_large_kernel_reads_it_enlarged():
    torch.manual_seed(0)
    large = VisionTransformer(image_size=(16, 24), patch_size=8, **SIZES)
    small = refined(large, VisionTransformer(image_size=(16, 24), patch_size=4, **SIZES))
    patch = torch.randn(1, 2, 4, 4)  # one small patch
    enlarged = patch.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)  # (1, 2, 8, 8)
    read = small.patch_embed.proj(patch)
    torch.testing.assert_close(read, large.patch_embed.proj(enlarged), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(small.encoder.state_dict(), large.encoder.state_dict())
    assert len(small.positions.table) == 4 * 6 + 1


def test_no_turn_no_zoom_no_shift_leaves_the_image():
    images = torch.randn(3, 2, 9, 9)
    same = random_affine(images, drawn(), degrees=0, zoom=0, pixels=0, fill=-0.4)
    torch.testing.assert_close(same, images, rtol=1e-4, atol=1e-5)


def test_turned_images_differ_from_each_other_and_show_the_background_at_the_edge():
    images = torch.full((6, 1, 12, 12), 5.0)
    options = {"degrees": 10, "zoom": 0.1, "pixels": 3, "fill": -0.4}
    changed = random_affine(images, drawn(), **options)
    assert changed.min() == pytest.approx(-0.4)
    assert changed.max() == pytest.approx(5.0)
    assert len({tuple(image.flatten().tolist()) for image in changed}) == 6
    torch.testing.assert_close(changed, random_affine(images, drawn(), **options))


def test_a_shift_is_that_many_pixels():
    images = torch.zeros(200, 1, 15, 15)
    images[:, :, 7, 7] = 1.0
    moved = random_affine(images, drawn(), degrees=0, zoom=0, pixels=2)
    places = torch.arange(15.0)
    rows, columns = (
        moved.sum(dim=(1, 3)) @ places,
        moved.sum(dim=(1, 2)) @ places,
    )  # centres, (200,)
    for centre in (rows, columns):
        assert (centre - 7).abs().max() <= 2.001
        assert (centre - 7).abs().max() > 1.8


def test_erasing_puts_one_rectangle_of_zeros_over_so_many_of_the_images():
    images = torch.ones(400, 2, 20, 30)
    erased = random_erase(images, drawn(), sides=(4, 6), share=0.5) == 0
    assert (erased[:, 0] == erased[:, 1]).all()
    hit = erased[:, 0].any(dim=(1, 2))
    assert 0.4 < hit.float().mean() < 0.6
    rows, columns = erased[:, 0].any(dim=2).sum(1), erased[:, 0].any(dim=1).sum(1)  # (400,)
    assert (rows * columns == erased[:, 0].sum(dim=(1, 2))).all()  # a full rectangle
    assert rows.max() == columns.max() == 6
    assert random_erase(images, drawn(), sides=(8, 8))[:, 0].eq(0).any(dim=(1, 2)).all()


@pytest.mark.parametrize("name", SETS)
def test_the_stronger_augmentation_is_a_function_of_the_generator(name):
    images = torch.randn(4, *((3, 32, 32) if name == "cifar10" else (1, 28, 28)))
    first, again, other = (stronger(name)(images, drawn(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == images.shape


def test_the_two_parts_of_a_training_share_one_cosine():
    whole = [recipe.warmup_cosine(step, 1000, 20) for step in range(1000)]
    early, late = recipe.from_step(0, 1000), recipe.from_step(600, 1000)
    assert [early(step, 600, 20) for step in range(600)] == whole[:600]
    shares = [late(step, 400, 20) for step in range(400)]
    assert shares[recipe.WARM_AGAIN :] == whole[600 + recipe.WARM_AGAIN :]
    assert shares[0] == pytest.approx(whole[600] / recipe.WARM_AGAIN)


@pytest.mark.parametrize("arm", recipe.ARMS["mnist"])
def test_a_seed_decides_all_that_is_random_in_an_arm(arm, small_image_files):
    runs = []
    for seed in (0, 0, 1):
        losses = []
        model, history = recipe.fit("mnist", arm, 200, seed, losses.append, 0.05)
        assert len(losses) == len(history) == 10
        runs.append((losses, model.average.state_dict()))
    (first, weights), (again, same), (other, _) = runs
    assert first == again != other
    torch.testing.assert_close(weights, same, rtol=0, atol=0)


def test_the_last_fifth_of_the_steps_sees_all_tokens(small_image_files):
    model, _ = recipe.fit("mnist", f"{recipe.FINE}, {recipe.HALF}", 200, 0, float, 0.05)
    assert model.model.dropout.steps == model.model.dropout.seen == 8


def test_the_validation_images_are_looked_at_as_often_as_asked(small_image_files):
    _, history = recipe.fit("mnist", recipe.PLAIN, 200, 0, float, 0.05, evaluations=5)
    assert [row["step"] for row in history if row["val_loss"] is not None] == [2, 4, 6, 8, 10]


def test_the_best_arm_of_each_set_counts_averaged_weights_too():
    runs = []
    for name in SETS:
        for i, arm in enumerate(recipe.ARMS[name]):
            metrics = {"validation_accuracy": i / 10, "averaged_accuracy": 0.0}
            if (name, arm) == ("mnist", recipe.COARSE):
                metrics["averaged_accuracy"] = 0.9
            runs.append({"condition": {"data": name, "arm": arm}, "seed": 100, "metrics": metrics})
    nothing = {key: {} for key in ("settings", "versions", "data", "weight_files")}
    nothing["metrics"] = dict.fromkeys(("validation_accuracy", "averaged_accuracy"), "share")
    words = dict.fromkeys(("what", "chosen_on", "date"), "")
    record = Record(
        name="toy", runs=runs, machines=[], wall_seconds=0.0, folder=None, **nothing, **words
    )
    expected = {name: recipe.ARMS[name][-1] for name in SETS} | {"mnist": recipe.COARSE}
    assert recipe.best(record) == expected


def test_the_search_never_looks_at_test_images(small_image_files, monkeypatch):
    load_experiment("full_sets_arms")
    script, parts = sys.modules["experiment_full_sets_arms"], []
    for module in (recipe, script):

        def noted(name, part, scale=1.0, *, images_of=module.images_of):
            parts.append(part)
            return images_of(name, part, scale)

        monkeypatch.setattr(module, "images_of", noted)
    metrics = script.run({"data": "cifar10", "arm": recipe.FINE}, 100, float, 0.01).metrics
    assert set(parts) == {"train", "validation"}
    assert set(parts) == {key.split(", ")[1] for key in script.EXPERIMENT.data()}
    assert metrics["parameters"] == count_parameters(recipe.build("cifar10", recipe.FINE, 0))
