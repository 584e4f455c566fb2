"""What was learned on other images fits the new ones, and nothing else about it changes."""

import pytest
import torch
from random_models import all_random
from test_weights import small
from torch import nn
from torch.testing import assert_close

from vitbook.data import normalize
from vitbook.layers.positions import resample_positions
from vitbook.layers.stems import ConvStem
from vitbook.models.transfer import (
    BIAS,
    KERNEL,
    adapt,
    adapt_channels,
    fold_normalization,
    head_inputs,
)
from vitbook.models.weights import save_weights

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def state(**kwargs):
    return all_random(small(**kwargs)).state_dict()


def with_stem(in_channels=3):
    model = small(image_size=8, in_channels=in_channels)
    sizes = {"image_size": 8, "patch_size": 2, "embed_dim": 12}
    model.patch_embed = ConvStem(in_channels=in_channels, **sizes)
    return model.eval()


@pytest.mark.parametrize(
    ("before", "now", "seen"),
    [
        (3, 1, lambda images: images.expand(-1, 3, -1, -1)),  # as three copies
        (1, 4, lambda images: images.mean(dim=1, keepdim=True)),
        (3, 3, lambda images: images),
    ],
)
def test_a_kernel_for_other_channels_sees_what_the_one_before_saw(before, now, seen):
    trained, model = all_random(small(in_channels=before)), small(in_channels=now)
    weights = trained.state_dict()
    adapted = adapt_channels(weights, now)
    model.load_state_dict(adapted)
    images = torch.randn(2, now, 6, 8)
    assert_close(model(images), trained(seen(images)))
    if before <= now:  # and back again
        assert_close(adapt_channels(adapted, before)[KERNEL], weights[KERNEL])


def test_folded_statistics_take_raw_pixels():
    normalized, raw = all_random(small()), small()
    raw.load_state_dict(fold_normalization(normalized.state_dict(), MEAN, STD))
    images = torch.rand(2, 3, 6, 8)
    assert_close(raw(images), normalized(normalize(images, MEAN, STD)), atol=1e-4, rtol=1e-4)


def test_everything_is_adapted_at_once_and_said(tmp_path):
    trained, model = all_random(small()), small(image_size=(8, 10), in_channels=1, num_classes=7)
    weights, head = trained.state_dict(), model.head.weight.clone()
    save_weights(trained, tmp_path / "model.safetensors")  # which says its grid
    notes = adapt(model, tmp_path / "model.safetensors")
    assert notes == [
        "patch kernel summed: from 3 channels to 1",
        "head drawn anew: 7 classes",
        "positions resampled from 3 x 4 to 4 x 5 patches",
    ]
    assert torch.equal(model.head.weight, head)
    expected = resample_positions(weights["positions.table"], (3, 4), (4, 5), 1)
    assert_close(model.positions.table, expected)
    name = "encoder.blocks.1.mlp.fc2.weight"
    assert torch.equal(model.state_dict()[name], weights[name])


def test_a_head_for_as_many_classes_is_new_unless_it_is_to_be_kept():
    trained, fresh, other = all_random(small()), small(), small()
    own = fresh.head.weight.clone()
    assert adapt(fresh, trained.state_dict(), old_grid=(3, 4)) == ["head drawn anew: 5 classes"]
    assert torch.equal(fresh.head.weight, own)
    assert adapt(other, trained.state_dict(), old_grid=(3, 4), new_head=False) == []
    images = torch.randn(2, 3, 6, 8)
    assert_close(other(images), trained(images))


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_the_head_of_its_inputs_is_the_model(pool):
    model, images = all_random(small(pool=pool)), torch.randn(5, 3, 6, 8)
    model.train()
    features = head_inputs(model, images, batch_size=2)
    assert features.shape == (5, 12)
    assert not features.requires_grad
    with pytest.raises(ValueError, match="images must have the shape"):
        head_inputs(model, torch.randn(2, 3, 8, 8))
    assert model.training
    assert not model.head._forward_pre_hooks
    assert_close(model.head(features), model.eval()(images))


def fold(mean=MEAN, std=STD, without=None):
    weights = {name: tensor for name, tensor in state().items() if name != without}
    return fold_normalization(weights, mean, std)


PIXELS, STEM = torch.randn(1, 3, 6, 8), with_stem().state_dict()
BAD_INPUT = [
    (lambda: adapt(small(), [1]), TypeError, "weights must be a mapping or a path, got list"),
    (lambda: adapt_channels({}, 1), ValueError, "weights must hold a kernel (D, C, P, P)"),
    (lambda: fold_normalization(STEM, MEAN, STD), ValueError, "no convolutional stem"),
    (lambda: adapt(small(image_size=8), STEM), ValueError, "layers.0.weight is unknown to the m"),
    (lambda: adapt_channels(state(), 4), ValueError, "3 as in the weights, or 1, got 4"),
    (lambda: fold(mean=[0.5]), ValueError, "mean must have one number for each of the 3 channels"),
    (lambda: fold(std=[1.0, 0.0, 1.0]), ValueError, "std must be positive"),
    (lambda: fold(without=BIAS), ValueError, "patch_embed.proj.weight and patch_embed.proj.bias"),
    (lambda: adapt(small(), state(), new_head=1), TypeError, "new_head must be True"),
    (lambda: head_inputs(small(), PIXELS[0]), ValueError, "images must have the axes"),
    (lambda: head_inputs(nn.Identity(), PIXELS), ValueError, "must have a linear layer called he"),
    (lambda: head_inputs(small(), PIXELS, batch_size=0), ValueError, "batch_size must be at lea"),
]
