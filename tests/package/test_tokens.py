"""How many tokens stand before the patches, and how long tokens are: of four kinds of models."""

import copy
import warnings
from types import SimpleNamespace

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.testing import assert_close

from tests.package.random_models import all_random
from vitbook.inspection import (
    find_num_prefix,
    image_features,
    token_norms,
)
from vitbook.models.vit import VisionTransformer

B, SIZE, P = 2, (32, 48), 8
TINY = {"patch_size": P, "embed_dim": 32, "depth": 2, "num_heads": 4, "num_classes": 5}


def timm_model(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all_random(timm.create_model(name, img_size=SIZE, **(TINY | options))).eval()


def ours(**options):
    model = VisionTransformer(image_size=SIZE, in_channels=3, **(TINY | options))
    return all_random(model).eval()


def torchvisions():
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 48, "num_classes": 5}
    return all_random(torchvision.models.VisionTransformer(32, P, **sizes)).eval()


class Clip(nn.Module):
    """What of CLIP says that it has a class token: a parameter (D,)."""

    def __init__(self):
        super().__init__()
        self.visual = nn.Module()
        self.visual.class_embedding = nn.Parameter(torch.randn(32))


PREFIXES = {
    "ours with a class token": (ours, 1),
    "ours without": (lambda: ours(pool="mean"), 0),
    "torchvision": (torchvisions, 1),
    "timm": (lambda: timm_model("vit_tiny_patch16_224"), 1),
    "timm, mean of patches": (lambda: timm_model("vit_base_patch16_gap_224"), 0),
    "timm, distilled": (lambda: timm_model("deit_tiny_distilled_patch16_224"), 2),
    "timm, registers": (lambda: timm_model("vit_small_patch14_reg4_dinov2"), 5),
    "CLIP": (Clip, 1),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_prefix_tokens_are_found_where_the_model_says_them_also_inside_another(name):
    build, expected = PREFIXES[name]
    model = build()
    assert find_num_prefix(model) == expected
    assert find_num_prefix(nn.Sequential(nn.Identity(), model)) == expected


def timm_tokens(model, x):
    tokens = [model.norm_pre(model.patch_drop(model._pos_embed(model.patch_embed(x))))]
    for block in model.blocks:
        tokens.append(block(tokens[-1]))
    return torch.stack(tokens)


def our_tokens(model, x):
    with torch.no_grad():
        tokens = []
        model.encoder.blocks[0].register_forward_pre_hook(lambda _, args: tokens.append(args[0]))
        for block in model.encoder.blocks:
            block.register_forward_hook(lambda *call: tokens.append(call[-1]))
        model(x)
        return torch.stack(tokens)


def test_what_is_no_batch_of_images_has_no_tested_prefix():
    with pytest.raises(
        ValueError, match=r"images must be \(B, C, H, W\), got the shape \(2, 4, 3,"
    ):
        find_num_prefix(nn.Identity(), torch.randn(2, 4, 3, 8, 8))


@pytest.mark.parametrize("depth", [1, 2])
def test_norms_are_those_of_the_tokens_between_the_blocks(depth):
    model, x = timm_model("vit_small_patch14_reg4_dinov2", depth=depth), torch.randn(B, 3, *SIZE)
    norms = token_norms(model, x)
    assert norms.shape == (depth + 1, B, 29)
    assert_close(norms, timm_tokens(model, x).norm(dim=-1))
    own = ours(depth=depth)
    assert_close(token_norms(own, x), our_tokens(copy.deepcopy(own), x).norm(dim=-1))


def test_features_are_the_tokens_after_a_block_whatever_the_batch():
    model, x = timm_model("vit_small_patch14_reg4_dinov2", depth=3), torch.randn(5, 3, *SIZE)
    tokens = timm_tokens(model, x)
    assert_close(image_features(model, x, batch_size=2), tokens[-1][:, 0])
    assert_close(image_features(model, x, 0, "mean", batch_size=3), tokens[1][:, 5:].mean(dim=1))
    assert_close(image_features(model, x, -2, 7), tokens[2][:, 7])
    torchs = torchvisions()
    assert image_features(torchs, torch.randn(3, 3, 32, 32), token="mean").shape == (3, 32)
    assert not image_features(model, x).requires_grad
    assert_close(image_features(ours(pool="mean"), x, token="mean").shape, (5, 32))


def silent():
    return nn.Sequential(nn.Linear(3, 3))


class Part(nn.Module):
    """A block that attends; or multiplies by the map of another one, as LazyFormer does."""

    def __init__(self, before=None):
        super().__init__()
        self.qkv, self.mlp, self.before = nn.Linear(32, 96), nn.Linear(32, 32), [before]

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        before = self.before[0]
        self.map = before.map if before else (q @ k.mT / 8**0.5).softmax(-1)
        return x + self.mlp((self.map @ v).transpose(1, 2).flatten(2))


class Between(nn.Module):
    """Blocks between patches and a head; what they take and give is packed."""

    def __init__(self, *blocks, pack=lambda x: x, unpack=lambda x: x):
        super().__init__()
        self.patches, self.head = nn.Conv2d(3, 32, P, P), nn.Linear(32, 5)
        self.blocks = nn.ModuleList(blocks)
        self.pack, self.unpack = pack, unpack

    def forward(self, images):
        self.tokens = [self.patches(images).flatten(2).mT]
        for block in self.blocks:
            self.tokens.append(self.unpack(block(self.pack(self.tokens[-1]))))
        return self.head(self.tokens[-1].mean(1))


def test_blocks_of_one_class_count_also_where_one_shows_no_map():
    first = Part()
    chain = [nn.Sequential(nn.Linear(32, 32), x) for x in (Part(), first, Part(first))]
    for blocks in ([first, Part(first)], [Part(), first, Part(first), Part(first)], chain):
        model = all_random(Between(*blocks)).eval()
        norms = token_norms(model, X)
        assert_close(norms, torch.stack(model.tokens).norm(dim=-1))
        features = image_features(model, X, token="mean", num_prefix=0)
        assert_close(features, model.tokens[-1].mean(dim=1))
    assert len(token_norms(model, X, layers="blocks.0.*")) == 2, "of the one that was named"


def test_what_is_like_a_block_and_has_no_tokens_is_none():
    class Residual(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return x + self.inner(x)

    model = all_random(Between(*(Residual(Part()) for _ in range(2)))).eval()
    model.patches = nn.Sequential(model.patches, Residual(nn.Conv2d(32, 32, 1)))
    model.head = Residual(nn.Linear(32, 32))  # (B, D)
    norms = token_norms(model, X)
    assert_close(norms, torch.stack(model.tokens).norm(dim=-1))


@pytest.mark.parametrize("turned", [False, True])
def test_channels_are_no_tokens_where_they_are_as_many(turned):
    class Channels(Part):
        def forward(self, x):
            return super().forward(x.mT).mT

    blocks = [(Channels if turned else Part)() for _ in range(2)]
    turn = (lambda x: x.mT) if turned else (lambda x: x)
    model = all_random(Between(*blocks, pack=turn, unpack=turn)).eval()
    images = torch.randn(B, 3, 4 * P, 8 * P)
    if turned:
        for layers in (None, "blocks.*"):
            with pytest.raises(ValueError, match=r"seems to take \(B, D, N\) with N = D = 32"):
                token_norms(model, images, layers)
        return
    norms = token_norms(model, images)
    model(images)
    assert_close(norms, torch.stack(model.tokens).norm(dim=-1))


PACKED = {
    "a list": (lambda x: [x], lambda x: x[0]),
    "a tuple": (lambda x: (x, 3), lambda x: x[0]),
    "a dict": (lambda x: {"x": x, "mask": None}, lambda x: x["x"]),
}


@pytest.mark.parametrize("name", PACKED)
def test_tokens_are_found_in_what_packs_them(name):
    pack, unpack = PACKED[name]

    class Packed(Part):
        def forward(self, x):
            return pack(super().forward(unpack(x)))

    model = all_random(Between(Packed(), Packed(), pack=pack, unpack=unpack)).eval()
    norms = token_norms(model, X)
    assert_close(norms, torch.stack(model.tokens).norm(dim=-1))


class Grid(Part):
    def forward(self, x):
        return super().forward(x.flatten(2).mT).mT.unflatten(2, x.shape[2:])


class Kept(Part):
    """Tokens are in an object of its own."""

    def forward(self, x):
        return SimpleNamespace(x=super().forward(x.x))


class Inline(Between):
    """Calls what its blocks hold, and not the blocks."""

    def __init__(self):
        super().__init__(*(nn.ModuleDict({"mix": Part()}) for _ in range(2)))

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        for block in self.blocks:
            x = block["mix"](x)
        return self.head(x.mean(1))


def in_grids():
    return Between(
        Grid(),
        Grid(),
        pack=lambda x: x.mT.unflatten(2, (4, 6)),
        unpack=lambda x: x.flatten(2).mT,
    )


def kept():
    return Between(Kept(), Kept(), pack=lambda x: SimpleNamespace(x=x), unpack=lambda x: x.x)


class Turned(nn.Module):
    """A block that gives (B, D, N)."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0].mT.contiguous()


X = torch.randn(B, 3, *SIZE)


def test_taking_norms_leaves_modes_and_hooks_alone():
    model = timm_model("vit_tiny_patch16_224").train()
    token_norms(model, torch.randn(B, 3, *SIZE))
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())


BAD_INPUT = [
    (lambda: image_features(ours(pool="mean"), X), ValueError, "this model has no class token"),
    (lambda: image_features(ours(), X, 2), ValueError, "layer must be below 2, the number of bl"),
    (lambda: image_features(ours(), X, -3), ValueError, "layer must be at least -2"),
    (lambda: image_features(ours(), X, True), TypeError, "layer must be a whole number"),
    (lambda: image_features(ours(), X, 1.0), TypeError, "layer must be a whole number"),
    (lambda: image_features(ours(), X, token=25), ValueError, "token must be below 25, got 25"),
    (lambda: image_features(ours(), X, token="avg"), ValueError, "token must be one of 'cls', 'm"),
    (lambda: image_features(ours(), X.numpy()), TypeError, "images must be a torch.Tensor"),
    (
        lambda: image_features(ours(), X, token="mean", num_prefix=25),
        ValueError,
        "num_prefix must be below 25, got 25",
    ),
    (lambda: image_features(ours(), X, num_prefix=26), ValueError, "num_prefix must be below 25"),
    (lambda: image_features(ours(), X, num_prefix=-1), ValueError, "num_prefix must be at least 0"),
    (lambda: image_features(ours(), X, token=3, num_prefix="1"), TypeError, "num_prefix must be a"),
    (
        lambda: token_norms(Inline(), X),
        ValueError,
        "model (Inline) must call its blocks, so that tokens enter and leave them; of 'blocks.0', "
        "'blocks.1' it calls parts alone",
    ),
    (lambda: image_features(Inline(), X, 0, 0), ValueError, "model (Inline) must call its blocks"),
    (
        lambda: token_norms(in_grids(), X),
        ValueError,
        "block 'blocks.0' must take and give tokens (B, N, D) with B, N = 2, 24, got (2, 32, 4, 6)",
    ),
    (lambda: token_norms(kept(), X), ValueError, "with B, N = 2, 24, got SimpleNamespace"),
    (lambda: find_num_prefix(torch.relu), TypeError, "model must be"),
    (lambda: find_num_prefix(ours(), X.numpy()), TypeError, "images must be a torch.Tensor"),
    (lambda: find_num_prefix(silent()), ValueError, "before its patches; give num_prefix"),
    (lambda: token_norms(silent(), torch.ones(1, 3)), ValueError, "none of its layers showed"),
    (
        lambda: token_norms(nn.Sequential(Turned()), torch.randn(B, 7, 32)),
        ValueError,
        "block '0' must take and give tokens (B, N, D) with B, N = 2, 7, got (2, 32, 7)",
    ),
]


class Beside(nn.TransformerEncoderLayer):
    """Gives something of another width before its tokens."""

    def forward(self, x):
        x = super().forward(x[1] if isinstance(x, tuple) else x)
        return x.new_zeros(*x.shape[:2], 7), x


class Encoder(nn.Module):
    def __init__(self, layer, batch_first):
        super().__init__()
        self.patches, self.batch_first = nn.Conv2d(3, 32, P, P), batch_first
        self.blocks = nn.ModuleList(layer(32, 4, 48, batch_first=batch_first) for _ in range(2))

    def tokens(self, images):
        x = self.patches(images).flatten(2).mT
        return x if self.batch_first else x.transpose(0, 1)

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("count", [1, 2, 16])  # 16 tokens
@pytest.mark.parametrize("layer", [nn.TransformerEncoderLayer, Beside])
@pytest.mark.parametrize("batch_first", [True, False])
def test_norms_are_of_the_tokens_that_came_in_whichever_axis_is_the_first(
    count, layer, batch_first
):
    model = all_random(Encoder(layer, batch_first)).eval()
    images = torch.randn(count, 3, 32, 32)
    with torch.no_grad():
        x = model.tokens(images)
        x = x if batch_first else x.transpose(0, 1)
        outs = model(images)
        out = outs[1] if layer is Beside else outs
        out = out if batch_first else out.transpose(0, 1)
    norms = token_norms(model, images)
    assert_close(norms[0], x.norm(dim=-1))
    assert_close(norms[-1], out.norm(dim=-1))
