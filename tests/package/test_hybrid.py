"""Images of 3 channels, 8 high and 12 wide, patch size 4: a grid of 2 x 3, N = 6; D = 8, h = 2."""

import pytest
import torch
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import attention_maps, record_attention
from vitbook.layers.ablations import NoMixing, UniformAttention
from vitbook.layers.attention import causal_mask
from vitbook.models.conv_mixer import ConvMixer
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import load_weights

B, C, HEIGHT, WIDTH, P, N, D, H, S, K, CLASSES = 4, 3, 8, 12, 4, 6, 8, 2, 5, 3, 7
RATIO = 2.5
SIZES = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
SIZES |= {"num_classes": CLASSES, "embed_dim": D}


def model(*layers, **kwargs):
    parts = {"num_heads": H, "mlp_ratio": RATIO, "token_dim": S, "kernel_size": K}
    return Hybrid(layers=layers, **(SIZES | parts | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


ALIKE = {
    "vit": (
        lambda: VisionTransformer(
            **SIZES, depth=2, num_heads=H, mlp_ratio=RATIO, pool="mean", positions="learned"
        ),
        lambda: model("attention", "attention"),
    ),
    "mixer": (
        lambda: MlpMixer(**SIZES, depth=2, token_dim=S, mlp_ratio=RATIO),
        lambda: model("mixer", "mixer", positions="none"),
    ),
    "conv-mixer": (
        lambda: ConvMixer(**SIZES, depth=2, kernel_size=K),
        lambda: model("conv", "conv", positions="none", stem="normed"),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_layers_that_are_all_alike_give_back_the_model_itself(name):
    plain, hybrid = (all_random(make()).eval() for make in ALIKE[name])
    assert list(plain.state_dict()) == list(hybrid.state_dict())
    load_weights(hybrid, plain.state_dict())
    x = images()
    assert torch.equal(hybrid(x), plain(x))
    assert torch.equal(hybrid.forward_features(x), plain.forward_features(x))


REACH = {  # which tokens hear of a change in the patch in the corner
    "attention": [0, 1, 2, 3, 4, 5],
    "mixer": [0, 1, 2, 3, 4, 5],
    "uniform": [0, 1, 2, 3, 4, 5],
    "conv": [0, 1, 3, 4],  # its neighbours on the grid of 2 x 3
    "none": [0],
}


@pytest.mark.parametrize("kind", REACH)
def test_each_kind_reaches_as_far_as_its_name_says(kind):
    net, x = all_random(model(kind)).eval().double(), images().double()
    before = net.forward_features(x)
    x[:, :, :P, :P] += torch.randn(C, P, P)
    changed = (net.forward_features(x) - before).abs().amax(dim=(0, 2)) > 1e-9  # rounding: 1e-13
    assert changed.nonzero().flatten().tolist() == REACH[kind]


def test_the_maps_of_a_hybrid_are_those_of_its_attention_layers():
    net, x = model("mixer", "attention", "conv", "attention"), images()
    net(x)  # in training mode, so that the running means are not at their start
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(ValueError, match=r"'encoder.blocks.0.attn.*', 'encoder.blocks.2\S* moves"):
        attention_maps(net, x)
    maps = attention_maps(net, x, "*")
    assert maps.shape == (2, B, H, N, N)
    assert_close(maps.sum(dim=-1), torch.ones(2, B, H, N))
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    with record_attention(net.eval()) as recorded:
        net(x)
    assert list(recorded) == ["encoder.blocks.1.attn", "encoder.blocks.3.attn"]
    assert_close(torch.stack(list(recorded.values())), maps)


@pytest.mark.parametrize("control", [UniformAttention, NoMixing])
def test_a_control_gives_its_weights_times_the_values(control):
    layer, x = control(embed_dim=D), torch.randn(B, N, D)
    weights = layer.attention_weights(x)
    assert_close(weights.sum(dim=-1), torch.ones(B, 1, N))
    assert_close(layer(x), layer.proj(weights[:, 0] @ layer.value(x)))


@pytest.mark.parametrize(("first", "last"), [("conv", "mixer"), ("mixer", "conv")])
def test_a_norm_follows_the_last_layer_unless_that_ends_with_one(first, last):
    norm = nn.Identity if last == "conv" else nn.LayerNorm
    assert isinstance(model(first, last).encoder.norm, norm)


def test_positions_are_resampled_where_no_layer_is_tied():
    weights, larger = model("conv", "attention").state_dict(), {"image_size": (16, 12)}
    notes = load_weights(model("conv", "attention", **larger), weights, old_grid=(2, 3))
    assert notes == ["positions resampled from 2 x 3 to 4 x 3 patches"]
    with pytest.raises(ValueError, match=r"blocks\.0\.attn\.mlp\.fc1\.weight mixes N = 6 tokens"):
        load_weights(model("mixer", **larger), model("mixer").state_dict())


def maps(*layers):
    return attention_maps(model(*layers), images())


def masked(*layers):
    return model(*layers).forward_features(images(), causal_mask(N))


BAD_INPUT = [
    (lambda: model(), ValueError, "layers must name at least one layer, got none"),
    (lambda: model("mixer", "pool"), ValueError, "layers[1] must be one of 'attention', "),
    (lambda: Hybrid(**SIZES, layers="mixer"), TypeError, "layers must be a list such as ["),
    (lambda: model("attention", positions="rotary"), ValueError, "got 'rotary'"),
    (lambda: model("attention", num_heads=None), TypeError, "num_heads must be a whol"),
    (lambda: model("conv", "mixer")(images().mT), ValueError, "token mixing is tied"),
    (lambda: masked("attention", "mixer"), ValueError, "mask must be None: token mi"),
    (lambda: masked("conv"), ValueError, "mask must be None: a convolution"),
    (lambda: maps("uniform", "attention"), ValueError, "shapes: (4, 1, 6, 6) of"),
]
