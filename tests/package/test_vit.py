"""Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 16, h = 2."""

import copy
import hashlib
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.init import truncated_normal_
from vitbook.layers.patches import patchify, unpatchify
from vitbook.layers.positions import POSITIONS, sincos_1d, sincos_2d
from vitbook.models.vit import VIT_VARIANTS, VisionTransformer, vit

B, C, HEIGHT, WIDTH, P, N, D, H, CLASSES = 3, 3, 6, 8, 2, 12, 16, 2, 5


def model(**kwargs):
    sizes = {
        "image_size": (HEIGHT, WIDTH),
        "patch_size": P,
        "in_channels": C,
        "num_classes": CLASSES,
        "embed_dim": D,
        "depth": 2,
        "num_heads": H,
    }
    return VisionTransformer(**(sizes | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


def shuffled(x):
    return unpatchify(patchify(x, P)[:, torch.randperm(N)], P, (HEIGHT, WIDTH), C)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_every_model_overfits_one_batch(positions, pool, norm_first):
    """With and without positions the images differ, so every model can learn them by heart."""
    net = model(positions=positions, pool=pool, norm_first=norm_first)
    x, labels = images(8), torch.arange(8) % CLASSES
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    while len(losses) < 60 and not (losses and losses[-1] < 0.2):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad is not None for p in net.parameters())
    assert losses[0] > 1.2
    assert losses[-1] < 0.2
    assert torch.equal(net(x).argmax(dim=1), labels)


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_without_positions_the_order_of_the_patches_does_not_matter(pool):
    net, x = model(positions="none", pool=pool), images()
    assert_close(net(shuffled(x)), net(x), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("positions", sorted({*POSITIONS} - {"none"}))
def test_with_positions_the_order_of_the_patches_matters(positions, pool):
    net, x = model(positions=positions, pool=pool), images()
    for parameter in net.parameters():  # larger than at the start, so that no effect hides
        nn.init.normal_(parameter, std=0.3)
    assert (net(shuffled(x)) - net(x)).abs().max() > 1e-3


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(("pool", "tokens"), [("cls", N + 1), ("mean", N)])
def test_forward_is_features_then_head(positions, pool, tokens):
    net, x = model(positions=positions, pool=pool), images()
    features = net.forward_features(x)
    assert features.shape == (B, tokens, D)
    assert net.num_prefix == tokens - N
    pooled = features[:, 0] if pool == "cls" else features.sum(dim=1) / N
    assert_close(net.forward_head(features), net.head(pooled))
    assert_close(net(x), net.forward_head(features))
    assert net(x).shape == (B, CLASSES)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize(("pool", "tokens"), [("cls", N + 1), ("mean", N)])
def test_features_are_the_embedded_tokens_after_every_block(positions, pool, tokens):
    net, x = model(positions=positions, pool=pool), images()
    embedded = net.embed(x)
    assert embedded.shape == (B, tokens, D)
    expected = embedded
    for block in net.encoder.blocks:
        expected = block(expected)
    assert_close(net.forward_features(x), net.encoder.norm(expected))
    if positions == "learned":
        patches = embedded[:, net.num_prefix :] - net.positions.table[net.num_prefix :]
        assert_close(patches, net.patch_embed(x))
        assert_close(
            embedded[:, 0] - net.positions.table[0],
            (net.cls_token[:, 0] if pool == "cls" else net.patch_embed(x)[:, 0]).expand(B, D),
        )


def test_a_mask_reaches_every_block_of_the_model():
    net, x = model(pool="mean").double(), images().double()  # rounding is far below 1e-9
    alone = torch.eye(N, dtype=torch.bool)  # every token attends to itself only
    before = net.forward_features(x, alone)
    x[:, :, :P, :P] += 1  # the first patch
    changed = (net.forward_features(x, alone) - before).abs().amax(dim=(0, 2)) > 1e-9
    assert changed.nonzero().tolist() == [[0]]
    assert_close(net.forward_features(x, torch.ones_like(alone)), net.forward_features(x))
    one = torch.ones(B, 1, N, N, dtype=torch.bool)
    one[1, :, :, 5] = False  # in the second image nobody looks at patch 5
    apart = (net.forward_features(x, one) - net.forward_features(x)).abs().amax(dim=(1, 2)) > 1e-9
    assert apart.tolist() == [False, True, False]


def test_images_in_a_batch_do_not_see_each_other():
    net, x = model(), images()
    assert_close(net(x), torch.cat([net(x[i : i + 1]) for i in range(B)]), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_empty_batches_one_patch_and_non_contiguous_images_work(positions):
    net = model(positions=positions)
    assert net(images(0)).shape == (0, CLASSES)
    x = torch.randn(B, WIDTH, HEIGHT, C).permute(0, 3, 2, 1)
    assert_close(net(x), net(x.contiguous()), atol=1e-6, rtol=1e-5)
    one_patch = model(positions=positions, image_size=P, pool="mean")
    assert one_patch.forward_features(images()[..., :P, :P]).shape == (B, 1, D)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_state_dict_is_plain_and_fits_a_fresh_model(positions):
    net = model(positions=positions)
    state = net.state_dict()
    assert set(state) == {name for name, _ in net.named_parameters()}
    assert all(type(t) is torch.Tensor and t.dtype == torch.float32 for t in state.values())
    other = model(positions=positions)
    x = images()
    assert (other(x) - net(x)).abs().max() > 1e-4
    other.load_state_dict(state)
    assert_close(other(x), net(x))
    assert_close(copy.deepcopy(net)(x), net(x))


def test_the_position_table_covers_the_class_token_too():
    assert model().positions.table.shape == (N + 1, D)
    assert model(pool="mean").positions.table.shape == (N, D)
    assert model(pool="mean").cls_token is None


@pytest.mark.parametrize("embed_dim", [64, 256])
def test_at_the_start_every_layer_keeps_the_size_of_its_input(embed_dim):
    net = model(embed_dim=embed_dim, depth=1)
    for name, parameter in net.named_parameters():
        if name.endswith("bias") or name == "cls_token":
            assert (parameter == 0).all(), name
    block, x = net.encoder.blocks[0], torch.randn(8, N, embed_dim)
    assert net.patch_embed(images(64)).std().item() == pytest.approx(1, abs=0.1)
    for layer in (block.attn.qkv, block.attn.proj, block.mlp.fc1):
        assert layer(x).std().item() == pytest.approx(1, abs=0.1)
    assert block.mlp.fc2(torch.randn(8, 4 * embed_dim)).std().item() == pytest.approx(1, abs=0.1)


# Names of the state dict (hashed), its numbers (sum, the i-th tensor i times) and logits, from seed
# 0 and made before the encoder took a list of blocks: recorded runs and saved weights rely on them.
DRAWN = {
    ("learned", "cls", True): ("cea7788e", 1103.378, [0.01015, -0.03052, 0.02308, 0.06987]),
    ("sincos_2d", "mean", True): ("7f57e0f2", 914.2526, [0.00585, 0.09407, 0.03158, 0.04046]),
    ("rotary", "cls", False): ("6b8260b6", 534.7308, [0.05831, -0.03039, 0.00388, 0.02145]),
    ("sincos_1d", "mean", False): ("5207b029", 481.7882, [0.0099, -0.01101, -0.02868, 0.08545]),
}


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_a_seed_draws_what_it_always_drew(case):
    positions, pool, norm_first = case
    names, numbers, logits = DRAWN[case]
    std = 0.5 if positions == "learned" else None
    net = model(positions=positions, pool=pool, norm_first=norm_first, position_std=std)
    state = net.state_dict()
    assert hashlib.sha256(" ".join(state).encode()).hexdigest()[:8] == names
    total = sum(i * tensor.double().sum().item() for i, tensor in enumerate(state.values(), 1))
    assert total == pytest.approx(numbers, abs=2e-3)
    assert net(images())[1, :4].tolist() == pytest.approx(logits, abs=1e-4)


def test_what_a_start_draws_again_is_the_same_in_every_torch():
    """``nn.init.trunc_normal_`` draws others in torch 2.11 than in 2.14."""
    weight = torch.empty(200)
    truncated_normal_(weight, std=1.0)  # 5 in 100 lie beyond 2
    assert weight.abs().max() <= 2
    assert weight.double().sum().item() == pytest.approx(-5.31232, abs=1e-3)


def test_at_the_start_all_classes_are_about_equally_likely():
    assert model(num_classes=50)(images(64)).softmax(dim=1).max() < 0.04


def test_another_mixing_layer_can_take_the_place_of_attention():
    class UniformAttention(nn.Module):
        """Every token gets the mean of all tokens."""

        def __init__(self, *, embed_dim, num_heads):
            super().__init__()
            self.proj = nn.Linear(embed_dim, embed_dim)

        def forward(self, x, mask=None):
            return self.proj(x).mean(dim=1, keepdim=True).expand_as(x)

    net = model(attn_layer=UniformAttention)
    assert net(images()).shape == (B, CLASSES)
    assert not any(isinstance(m, MultiHeadSelfAttention) for m in net.modules())
    with pytest.raises(TypeError, match="rotary"):
        model(attn_layer=UniformAttention, positions="rotary")


def test_the_attention_layer_gets_the_sizes_and_what_is_bound_with_partial():
    net = model(attn_layer=partial(MultiHeadSelfAttention, qkv_bias=False, dropout=0.5))
    for block in net.encoder.blocks:
        assert (block.attn.qkv.in_features, block.attn.num_heads) == (D, H)
        assert (block.attn.qkv.bias, block.attn.dropout) == (None, 0.5)


def test_rotary_reaches_every_layer_and_leaves_the_class_token_alone():
    net = model(positions="rotary")
    layers = [m for m in net.modules() if isinstance(m, MultiHeadSelfAttention)]
    assert len(layers) == 2
    for layer in layers:
        assert layer.rotary.cos.shape == (N + 1, D // H // 2)
        assert (layer.rotary.cos[0] == 1).all()


def test_the_base_of_the_positions_and_a_centred_table_are_options():
    grid = (HEIGHT // P, WIDTH // P)
    net = model(positions="sincos_2d", position_base=10.0, centred_positions=True)
    assert torch.equal(net.positions.table[0], torch.zeros(D))  # the class token's
    assert_close(net.positions.table[1:], sincos_2d(grid, D, base=10.0, centred=True))
    net = model(positions="sincos_1d", position_base=10.0, pool="mean")
    assert_close(net.positions.table, sincos_1d(N, D, base=10.0))
    default = model(positions="sincos_2d", pool="mean").positions.table
    assert torch.equal(default, sincos_2d(grid, D))
    slow, fast = (model(positions="rotary", **k) for k in ({}, {"position_base": 10.0}))
    angles = [net.encoder.blocks[0].attn.rotary.sin[-1, 1].asin() for net in (slow, fast)]
    assert_close(angles[1] / angles[0], torch.tensor((100 / 10) ** 0.5))


def test_dropout_works_while_training_only():
    net, x = model(dropout=0.5), images()
    assert (net(x) - net(x)).abs().max() > 1e-4
    net.eval()
    assert torch.equal(net(x), net(x))


# parameter counts as torchvision publishes them for the same models, and as DeiT's code has them
PUBLISHED = {
    "Ti/16": 5_717_416,
    "S/16": 22_050_664,
    "B/16": 86_567_656,
    "B/32": 88_224_232,
    "L/16": 304_326_632,
    "L/32": 306_535_400,
    "H/14": 632_045_800,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_variants_have_the_published_number_of_parameters(name):
    with torch.device("meta"):  # shapes only, no memory
        net = vit(name)
    assert sum(p.numel() for p in net.parameters()) == PUBLISHED[name]


def test_every_variant_of_the_papers_tables_is_there():
    heads = {name: sizes["embed_dim"] // sizes["num_heads"] for name, sizes in VIT_VARIANTS.items()}
    assert heads == {"Ti": 64, "S": 64, "B": 64, "L": 64, "H": 80}


def test_options_overrule_the_variant():
    net = vit("Ti/4", image_size=(8, 12), num_classes=7, in_channels=1, depth=1, pool="mean")
    assert net(torch.randn(2, 1, 8, 12)).shape == (2, 7)
    assert len(net.encoder.blocks) == 1
    assert net.patch_embed.grid == (2, 3)


BAD_INPUT = [
    ("pool", lambda: model(pool="max"), ValueError, "pool must be one of 'cls', 'mean'; got 'max'"),
    (
        "positions",
        lambda: model(positions="2d"),
        ValueError,
        "positions must be one of 'learned', ",
    ),
    ("positions-none", lambda: model(positions=None), ValueError, "got None"),
    ("classes", lambda: model(num_classes=0), ValueError, "num_classes must be at least 1, got 0"),
    ("classes-float", lambda: model(num_classes=10.0), TypeError, "num_classes must be a whole"),
    ("image", lambda: model(image_size=(7, 8)), ValueError, "height 7 and width 8, got 2"),
    ("width", lambda: model(embed_dim=-16), ValueError, "embed_dim must be at least 1, got -16"),
    ("heads", lambda: model(num_heads=3), ValueError, "num_heads must divide embed_dim = 16, got"),
    ("rotary-heads", lambda: model(positions="rotary", num_heads=8), ValueError, "head_dim must b"),
    (
        "sincos-width",
        lambda: model(positions="sincos_2d", embed_dim=18),
        ValueError,
        "by 4, got 18",
    ),
    ("depth", lambda: model(depth=-1), ValueError, "depth must be at least 1, got -1"),
    ("ratio", lambda: model(mlp_ratio=math.nan), ValueError, "mlp_ratio must be finite and"),
    ("dropout", lambda: model(dropout=2), ValueError, "below 1, got 2"),
    ("norm", lambda: model(norm_first=1), TypeError, "norm_first must be True or False, got 1"),
    ("images-size", lambda: model()(images().mT), ValueError, "(B, 3, 6, 8), got (3, 3, 8, 6)"),
    ("images-axes", lambda: model()(images()[0]), ValueError, "images must have the axes"),
    ("images-bytes", lambda: model()(images().byte()), TypeError, "images must hold floating-po"),
    (
        "mask",
        lambda: model().forward_features(images(), torch.ones(N, N)),
        TypeError,
        "mask must b",
    ),
    ("variant", lambda: vit("XL/16"), ValueError, 'one of Ti, S, B, L, H and a patch size ("Ti/1'),
    ("variant-patch", lambda: vit("Ti"), ValueError, "got 'Ti'"),
    ("variant-zero", lambda: vit("Ti/0"), ValueError, "patch_size must be at least 1"),
    ("variant-number", lambda: vit(16), ValueError, "got 16"),
    ("variant-image", lambda: vit("Ti/16", image_size=100), ValueError, "width 100, got 16"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
