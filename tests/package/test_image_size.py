"""Images of another size: a table is stretched, rotations and convolutions take them as is."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from vitbook.layers.positions import POSITIONS, resample_positions
from vitbook.models.conv_mixer import ConvMixer
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import POOLS, VisionTransformer

SIZES = {"patch_size": 4, "in_channels": 2, "num_classes": 3, "embed_dim": 16}
OLD, NEW = (8, 12), (16, 8)


def vit(size=OLD, **other):
    return VisionTransformer(image_size=size, **SIZES, depth=2, num_heads=2, **other).eval()


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_all_positions_take_another_size(positions, pool):
    model = vit(positions=positions, pool=pool)
    model.set_image_size(NEW)
    x = torch.randn(2, 2, *NEW)
    assert model(x).isfinite().all()
    assert model.embed(x).shape == (2, model.num_prefix + 8, 16)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("positions", ["learned", "sincos_2d"])
def test_a_table_is_stretched_and_all_other_weights_are_the_same(positions, pool):
    model = vit(positions=positions, pool=pool)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    table = model.positions.table.detach().clone()
    model.set_image_size(NEW)
    prefix = 1 if pool == "cls" else 0
    assert_close(model.positions.table, resample_positions(table, (2, 3), (4, 2), prefix))
    after = model.state_dict()
    assert [n for n in before if not torch.equal(before[n], after[n])] in ([], ["positions.table"])
    assert model(torch.randn(5, 2, *NEW)).shape == (5, 3)


def conv_mixer(size=OLD):
    return ConvMixer(image_size=size, **SIZES, depth=2, kernel_size=3).eval()


@pytest.mark.parametrize("make", [partial(vit, positions="rotary"), conv_mixer])
def test_rotations_and_convolutions_are_those_of_a_model_built_for_the_size(make):
    model, built = make(), make(NEW)
    built.load_state_dict(model.state_dict())
    model.set_image_size(NEW)
    x = torch.randn(5, 2, *NEW)
    assert torch.equal(model(x), built(x))


def test_a_mixer_refuses_and_stays_as_it_was(refused):
    model = MlpMixer(image_size=OLD, **SIZES, depth=1).eval()
    x = torch.randn(5, 2, *OLD)
    before = model(x)
    refused(lambda: model.set_image_size(NEW), ValueError, "tied to its number of patches")
    assert torch.equal(model(x), before)
    model.set_image_size(OLD)


@pytest.mark.parametrize("stem", ["patches", "conv"])
def test_a_size_that_the_patches_do_not_divide_is_refused_before_anything_changes(stem, refused):
    model = Hybrid(image_size=OLD, **SIZES, layers=["attention"], num_heads=2, stem=stem).eval()
    x = torch.randn(5, 2, *OLD)
    before = model(x)
    refused(lambda: model.set_image_size(10), ValueError, "10")
    assert torch.equal(model(x), before)
    refused(lambda: model(torch.randn(5, 2, *NEW)), ValueError, "images must have the shape")


def test_a_conv_stem_goes_with_the_stack_behind_it():
    model = Hybrid(image_size=OLD, **SIZES, layers=["conv", "attention"], num_heads=2, stem="conv")
    model.eval().set_image_size(NEW)
    assert model(torch.randn(5, 2, *NEW)).shape == (5, 3)
