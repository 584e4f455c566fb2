"""Images of 3 channels, 8 high and 12 wide, patch size 4: a grid of 2 x 3, N = 6; D = 8, h = 2."""

import itertools

import pytest
import torch
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import attention_maps, record_attention
from vitbook.layers.attention import MultiHeadSelfAttention, causal_mask
from vitbook.layers.positions import POSITIONS
from vitbook.models.conv_mixer import ConvMixer
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.hybrid import LAYERS, STEMS, Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import load_weights

B, C, HEIGHT, WIDTH, P, N, D, H, S, K, CLASSES = 4, 3, 8, 12, 4, 6, 8, 2, 5, 3, 7
RATIO, HIDDEN = 2.5, 20
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


@pytest.mark.parametrize("layers", list(itertools.permutations(LAYERS, 2)), ids="-".join)
def test_any_two_kinds_stand_in_the_order_that_was_asked_for(layers):
    net, other = model(*layers), model(*reversed(layers))
    assert net.layers == layers
    kinds = [[type(getattr(b, "attn", b)) for b in m.encoder.blocks] for m in (net, other)]
    assert kinds[0] == kinds[1][::-1]
    assert len(set(kinds[0])) == 2
    assert isinstance(net.encoder.norm, nn.Identity) == (layers[-1] == "conv")
    assert net.eval()(images()).shape == (B, CLASSES)


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


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "rotary"])
def test_every_stem_goes_with_all_positions(stem, positions):
    net, x = model("attention", stem=stem, positions=positions).eval(), images()
    assert net.embed(x).shape == (B, N, D)
    added = net.embed(x) - net.patch_embed(x)
    assert_close(added, added[:1].expand(B, N, D), atol=1e-5, rtol=0)  # the same for all images
    assert (added.abs().max() > 0.01) == (positions != "none")
    assert net(images(0)).shape == (0, CLASSES)


def test_the_maps_of_a_hybrid_are_those_of_its_attention_layers():
    net, x = model("mixer", "attention", "conv", "attention"), images()
    net(x)  # in training mode, so that the running means are not at their start
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    maps = attention_maps(net, x)
    assert maps.shape == (2, B, H, N, N)
    assert_close(maps.sum(dim=-1), torch.ones(2, B, H, N))
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    with record_attention(net.eval()) as recorded:
        net(x)
    assert list(recorded) == ["encoder.blocks.1.attn", "encoder.blocks.3.attn"]
    assert_close(torch.stack(list(recorded.values())), maps)


def test_controls_are_recorded_too_and_show_whom_they_listen_to():
    net = model("uniform", "none", "attention").eval()
    with record_attention(net) as maps:
        net(images())
    uniform, alone, attention = maps.values()
    assert_close(uniform, torch.full((B, 1, N, N), 1 / N))
    assert_close(alone, torch.eye(N).expand(B, 1, N, N))
    assert attention.shape == (B, H, N, N)


def test_a_mask_holds_where_every_layer_attends():
    net, x = model("attention", "attention").double(), images().double()
    before = net.forward_features(x, causal_mask(N))
    x[:, :, P:, :] += 1  # the last three patches
    changed = (net.forward_features(x, causal_mask(N)) - before).abs().amax(dim=(0, 2)) > 1e-9
    assert changed.nonzero().flatten().tolist() == [3, 4, 5]


MULTIPLIES = {  # for one image, by the formulas of the papers
    "attention": 4 * N * D * D + 2 * N * N * D + 2 * N * D * HIDDEN,
    "mixer": 2 * D * N * S + 2 * N * D * HIDDEN,
    "conv": N * D * K * K + N * D * D,
    "uniform": 2 * N * D * D + 2 * N * D * HIDDEN,  # the value of each token, projected for each
    "none": 2 * N * D * D + 2 * N * D * HIDDEN,
}


@pytest.mark.parametrize("kind", LAYERS)
def test_the_cost_of_a_hybrid_is_the_sum_of_its_layers(kind):
    embedding, head = N * C * P * P * D, D * CLASSES
    net, x = model("mixer", kind).eval(), images()
    layers = MULTIPLIES["mixer"] + MULTIPLIES[kind]
    assert count_multiplies(net, x) == B * (embedding + layers + head)
    parts = [net.patch_embed, net.positions, net.encoder, net.head]
    assert count_parameters(net) == sum(map(count_parameters, parts))
    stem = 4 * 6 * C * (D // 2) * 9 + N * (D // 2) * D * 9 + N * D * D  # in place of the patches
    expected = B * (stem + MULTIPLIES[kind] + head)
    assert count_multiplies(model(kind, stem="conv").eval(), x) == expected


def test_positions_are_resampled_where_no_layer_is_tied():
    weights, larger = model("conv", "attention").state_dict(), {"image_size": (16, 12)}
    notes = load_weights(model("conv", "attention", **larger), weights, old_grid=(2, 3))
    assert notes == ["positions resampled from 2 x 3 to 4 x 3 patches"]
    with pytest.raises(ValueError, match=r"blocks\.0\.attn\.mlp\.fc1\.weight mixes N = 6 tokens"):
        load_weights(model("mixer", **larger), model("mixer").state_dict())


def test_only_attention_layers_need_heads():
    net = model("mixer", "conv", "uniform", "none", num_heads=None)
    assert not any(isinstance(module, MultiHeadSelfAttention) for module in net.modules())
    assert model("mixer", token_dim=None).encoder.blocks[0].attn.mlp.fc1.out_features == D // 2


def maps(*layers):
    return attention_maps(model(*layers), images())


def masked(*layers):
    return model(*layers).forward_features(images(), causal_mask(N))


BAD_INPUT = [
    (lambda: model(), ValueError, "layers must name at least one layer, got none"),
    (lambda: model("mixer", "pool"), ValueError, "layers[1] must be one of 'attention', "),
    (lambda: Hybrid(**SIZES, layers="mixer"), TypeError, "layers must be a list such as ["),
    (lambda: Hybrid(**SIZES, layers=3), TypeError, "got 3"),
    (lambda: model("mixer", stem="resnet"), ValueError, "stem must be one of 'patches', "),
    (lambda: model("attention", positions="rotary"), ValueError, "got 'rotary'"),
    (lambda: model("attention", num_heads=None), TypeError, "num_heads must be a whol"),
    (lambda: model("attention", num_heads=3), ValueError, "must divide embed_dim = 8, go"),
    (lambda: model("conv", kernel_size=2), ValueError, "kernel_size must be odd"),
    (lambda: model("mixer", token_dim=0), ValueError, "token_dim must be at least 1"),
    (lambda: model("conv", "mixer")(images().mT), ValueError, "token mixing is tied"),
    (lambda: masked("attention", "mixer"), ValueError, "mask must be None: token mi"),
    (lambda: masked("conv"), ValueError, "mask must be None: a convolution"),
    (lambda: maps("conv"), ValueError, "(Hybrid) ran, and none of its layers sho"),
    (lambda: maps("uniform", "attention"), ValueError, "shapes: (4, 1, 6, 6) of"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
