"""What is done to a branch: a learned factor, and leaving it out at random."""

import re

import pytest
import torch
from random_models import all_random
from safetensors.torch import save_file
from torch.testing import assert_close

from vitbook.layers.residual import DropPath, LayerScale
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import load_weights
from vitbook.training.checkpoints import restore

B, N, D = 4, 6, 12


def test_a_layer_scale_multiplies_each_channel_by_its_own_number():
    layer, x = LayerScale(D, 1e-2), torch.randn(B, N, D)
    assert_close(layer(x), 0.01 * x)
    with torch.no_grad():
        layer.gamma.copy_(torch.arange(float(D)))
    assert_close(layer(x)[..., 3], 3 * x[..., 3])


def test_drop_path_leaves_out_whole_images_while_training_and_keeps_the_mean():
    torch.manual_seed(0)
    layer, x = DropPath(0.25), torch.ones(4000, 2, 3)
    out = layer(x)
    each = out.flatten(1)
    assert (each == each[:, :1]).all()  # an image loses all of the branch, or nothing
    assert sorted(set(each[:, 0].tolist())) == pytest.approx([0, 1 / 0.75])
    assert out.mean() == pytest.approx(1, abs=0.05)
    assert torch.equal(layer.eval()(x), x)


def sizes(**other):
    given = {"image_size": 8, "patch_size": 4, "in_channels": 1, "num_classes": 3}
    return given | {"embed_dim": D, "depth": 3, "num_heads": 2} | other


def test_the_rate_grows_from_nothing_to_that_of_the_last_block():
    model = VisionTransformer(**sizes(drop_path=0.2))
    blocks = model.encoder.blocks
    rates = [[m.rate for m in block.modules() if isinstance(m, DropPath)] for block in blocks]
    assert rates == [[], [0.1, 0.1], [0.2, 0.2]]


def of_0_1_1(weights):
    """Weights as releases up to 0.1.1 named them."""
    return {re.sub(r"ls([12])\.", r"end\1.scale.", name): t for name, t in weights.items()}


def test_weights_load_that_call_ls1_as_it_was_called(tmp_path):
    model, fresh = (all_random(VisionTransformer(**sizes(layer_scale=0.1))) for _ in range(2))
    old, x = of_0_1_1(model.state_dict()), torch.randn(B, 1, 8, 8)
    assert sum("end" in name for name in old) == 2 * 3
    save_file(old, tmp_path / "weights.safetensors")
    assert load_weights(fresh, tmp_path / "weights.safetensors") == []
    assert torch.equal(fresh.eval()(x), model.eval()(x))
    optimizer = torch.optim.AdamW(fresh.parameters())
    restore({f"model.{name}": t for name, t in old.items()}, tmp_path, fresh, optimizer)


def test_bad_input_is_named(refused):
    refused(lambda: DropPath(1.0), ValueError, "drop_path must be at least 0 and below 1")
    refused(lambda: LayerScale(D, 0), ValueError, "layer_scale must be finite and greater than 0")
    refused(lambda: VisionTransformer(**sizes(drop_path=-0.1)), ValueError, "drop_path must")
    refused(lambda: VisionTransformer(**sizes(qkv_bias=1)), TypeError, "qkv_bias must be True")
