"""Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 10, S = 7, hidden 25."""

import pytest
import timm
import torch
import torch.nn.functional as F
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.inspection import attention_maps, record_attention
from vitbook.layers.attention import causal_mask
from vitbook.layers.patches import patchify, unpatchify
from vitbook.layers.token_mixing import TokenMixing
from vitbook.models.cost import count_multiplies, count_parameters
from vitbook.models.mlp_mixer import MIXER_VARIANTS, MlpMixer, mlp_mixer
from vitbook.models.weights import from_timm, load_weights, save_weights
from vitbook.training import RunFolder, TrainConfig, train

B, C, HEIGHT, WIDTH, P, N, D, S, L, CLASSES = 4, 3, 6, 8, 2, 12, 10, 7, 2, 5
RATIO, HIDDEN = 2.5, 25


def model(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
    sizes |= {"num_classes": CLASSES, "embed_dim": D, "depth": L}
    return MlpMixer(**(sizes | {"token_dim": S, "mlp_ratio": RATIO} | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


# token mixing


def test_token_mixing_is_one_mlp_along_the_tokens_of_each_channel():
    layer, x = all_random(TokenMixing(num_tokens=N, token_dim=S)), torch.randn(B, N, D)
    first, second = layer.mlp.fc1, layer.mlp.fc2
    assert (first.weight.shape, second.weight.shape) == ((S, N), (N, S))
    for channel in range(D):
        column = F.gelu(x[:, :, channel] @ first.weight.T + first.bias)  # (B, S)
        assert_close(layer(x)[:, :, channel], column @ second.weight.T + second.bias)


def test_a_changed_token_reaches_all_tokens_and_no_other_channel():
    layer, x = all_random(TokenMixing(num_tokens=N, token_dim=S)), torch.randn(B, N, D)
    before = layer(x)
    x[1, 3, 6] += 1
    changed = (layer(x) - before).abs() > 1e-7  # (B, N, D)
    assert changed.any(dim=1).nonzero().tolist() == [[1, 6]]
    assert changed[1, :, 6].all()


# the model


def test_logits_agree_with_timms_mixer():
    sizes = {"img_size": (HEIGHT, WIDTH), "patch_size": P, "num_blocks": L, "embed_dim": D}
    theirs = timm.models.MlpMixer(num_classes=CLASSES, mlp_ratio=(S / D, RATIO), **sizes)
    theirs, ours = all_random(theirs).eval(), model().eval()
    assert load_weights(ours, from_timm(theirs.state_dict())) == []
    x = images()
    assert theirs(x).std() > 0.1
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=0)
    assert_close(ours.forward_features(x), theirs.forward_features(x), atol=1e-4, rtol=0)


# Parameters in millions: Tolstikhin et al. 2021, table 1; without a head, as the paper counts
PUBLISHED = {"S/32": 19, "S/16": 18, "B/32": 60, "B/16": 59, "L/32": 206, "L/16": 207, "H/14": 431}


@pytest.mark.parametrize("name", PUBLISHED)
def test_variants_have_the_published_number_of_parameters(name):
    with torch.device("meta"):
        net = mlp_mixer(name)
    assert round((count_parameters(net) - count_parameters(net.head)) / 1e6) == PUBLISHED[name]


@pytest.mark.parametrize(("name", "theirs"), [("S/16", "mixer_s16_224"), ("B/32", "mixer_b32_224")])
def test_variants_have_as_many_parameters_as_timms(name, theirs):
    with torch.device("meta"):
        assert count_parameters(mlp_mixer(name)) == count_parameters(timm.create_model(theirs))


def test_every_variant_of_the_papers_table_is_there():
    assert set(MIXER_VARIANTS) == {name.partition("/")[0] for name in PUBLISHED}
    for sizes in MIXER_VARIANTS.values():
        assert sizes["token_dim"] == sizes["embed_dim"] / 2
    assert model(token_dim=None).encoder.blocks[0].attn.mlp.fc1.out_features == D // 2


def test_options_overrule_the_variant():
    net = mlp_mixer("S/4", image_size=(8, 12), num_classes=7, in_channels=1, depth=1, embed_dim=16)
    assert net(torch.randn(2, 1, 8, 12)).shape == (2, 7)
    assert (len(net.encoder.blocks), net.patch_embed.grid) == (1, (2, 3))


def test_the_cost_is_that_of_the_formula():
    embedding, head = N * C * P * P * D, D * CLASSES
    tokens, channels = 2 * D * N * S, 2 * N * D * HIDDEN
    assert count_multiplies(model(), images()) == B * (embedding + L * (tokens + channels) + head)
    weights = C * P * P * D + L * (2 * N * S + 2 * D * HIDDEN) + D * CLASSES
    biases = D + L * (S + N + HIDDEN + D) + CLASSES
    assert count_parameters(model()) == weights + biases + (2 * L + 1) * 2 * D


def test_forward_is_features_then_head():
    net, x = model().eval(), images()
    features = net.forward_features(x)
    assert features.shape == (B, N, D)
    assert_close(features, net.encoder(net.patch_embed(x)))
    assert_close(net.forward_head(features), net.head(features.sum(dim=1) / N))
    assert_close(net(x), net.forward_head(features))
    assert net(x).shape == (B, CLASSES)


def test_the_order_of_the_patches_matters_though_no_position_is_added():
    net, x = all_random(model()), images()
    before, order = net(x), torch.randperm(N)
    shuffled = unpatchify(patchify(x, P)[:, order], P, (HEIGHT, WIDTH), C)
    assert (net(shuffled) - before).abs().max() > 1e-2
    for block in net.encoder.blocks:  # the weights of the places, shuffled likewise
        mlp = block.attn.mlp
        mlp.fc1.weight.data = mlp.fc1.weight[:, order]
        mlp.fc2.weight.data, mlp.fc2.bias.data = mlp.fc2.weight[order], mlp.fc2.bias[order]
    assert_close(net(shuffled), before, atol=1e-4, rtol=1e-4)


def test_a_mixer_learns_one_batch_by_heart():
    net, x, labels = model(), images(8), torch.arange(8) % CLASSES
    config = TrainConfig(steps=60, batch_size=8, learning_rate=1e-2, warmup_steps=5)
    history = train(net, x, labels, config, evaluate_on=(x, labels), progress=False)
    assert history[0]["loss"] > 1.2
    assert history[-1]["val_accuracy"] == 1
    assert all(parameter.grad.abs().max() > 0 for parameter in net.parameters())


def test_images_in_a_batch_do_not_see_each_other():
    net, x = model(), images()
    assert_close(net(x), torch.cat([net(x[i : i + 1]) for i in range(B)]), atol=1e-6, rtol=1e-5)


def test_empty_batches_one_patch_and_non_contiguous_images_work():
    assert model()(images(0)).shape == (0, CLASSES)
    assert model(image_size=P)(images()[..., :P, :P]).shape == (B, CLASSES)
    x = torch.randn(B, WIDTH, HEIGHT, C).permute(0, 3, 2, 1)
    net = model()
    assert_close(net(x), net(x.contiguous()), atol=1e-6, rtol=1e-5)


def test_dropout_works_in_all_its_places_while_training_only():
    net, x = model(dropout=0.5), images()
    assert sum(m.p == 0.5 for m in net.modules() if isinstance(m, nn.Dropout)) == 1 + 4 * L
    assert (net(x) - net(x)).abs().max() > 1e-4
    assert torch.equal(net.eval()(x), net(x))


def test_weights_and_checkpoints_come_back_bit_by_bit(tmp_path):
    trained, x, labels = model(), images(), torch.tensor([0, 1, 2, 0])
    config = TrainConfig(steps=2, batch_size=2)
    train(trained, x, labels, config, folder=RunFolder(tmp_path), progress=False)
    save_weights(trained, tmp_path / "saved.safetensors")
    for name in ("saved", "checkpoint"):
        fresh = all_random(model())
        assert load_weights(fresh, tmp_path / f"{name}.safetensors") == []
        assert torch.equal(fresh(x), trained(x))


x = torch.randn(B, N, D)


def on_another_grid():
    return load_weights(model(image_size=(8, 10)), model().state_dict())


def recorded(net, x):
    with record_attention(net):
        net(x)


BAD_INPUT = [
    ("tokens", lambda: TokenMixing(num_tokens=0, token_dim=S), ValueError, "num_tokens must be at"),
    (
        "hidden",
        lambda: TokenMixing(num_tokens=N, token_dim=2.5),
        TypeError,
        "token_dim must be a whole number, got 2.5",
    ),
    (
        "another-n",
        lambda: TokenMixing(num_tokens=9, token_dim=S)(x),
        ValueError,
        "x must hold N = 9 tokens, got 12: token mixing is tied to its number of patches; scale",
    ),
    (
        "mask",
        lambda: model().forward_features(images(), causal_mask(N)),
        ValueError,
        "mask must be None: token mixing",
    ),
    (
        "another-size",
        lambda: model()(torch.randn(B, C, 8, 10)),
        ValueError,
        "images must have the shape (B, C, H, W) = (B, 3, 6, 8), got (4, 3, 8, 10): token "
        "mixing is tied to its number of patches; scale the images",
    ),
    ("turned", lambda: model()(images().mT), ValueError, "tied to its number of patches"),
    ("weights", on_another_grid, ValueError, "mixes N = 12 tokens, the model has 20: token mixing"),
    ("images-axes", lambda: model()(images()[0]), ValueError, "images must have the axes"),
    ("images-bytes", lambda: model()(images().byte()), TypeError, "images must hold floating-po"),
    ("channels", lambda: model()(images()[:, :1]), ValueError, "(B, 3, 6, 8), got (4, 1, 6, 8)"),
    ("image", lambda: model(image_size=(7, 8)), ValueError, "height 7 and width 8, got 2"),
    ("width", lambda: model(embed_dim=-16), ValueError, "embed_dim must be at least 1, got -16"),
    ("depth", lambda: model(depth=0), ValueError, "depth must be at least 1, got 0"),
    ("token-dim", lambda: model(token_dim=0), ValueError, "token_dim must be at least 1, got 0"),
    ("ratio", lambda: model(mlp_ratio=0), ValueError, "mlp_ratio must be finite and greater"),
    ("classes", lambda: model(num_classes=10.0), TypeError, "num_classes must be a whole"),
    ("dropout", lambda: model(dropout=2), ValueError, "below 1, got 2"),
    ("variant", lambda: mlp_mixer("XL/16"), ValueError, 'one of S, B, L, H and a patch size ("S/1'),
    ("variant-patch", lambda: mlp_mixer("S"), ValueError, "got 'S'"),
    ("variant-number", lambda: mlp_mixer(16), ValueError, "got 16"),
    ("maps", lambda: attention_maps(model(), images()), ValueError, "none of its layers showed"),
    (
        "record",
        lambda: recorded(model(), images()),
        ValueError,
        "(MlpMixer) ran, and none of its layers showed attention",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [row[1:] for row in BAD_INPUT],
    ids=[row[0] for row in BAD_INPUT],
)
def test_bad_input_is_named(call, kind, words):
    with pytest.raises(kind) as refusal:
        call()
    assert words in str(refusal.value)
