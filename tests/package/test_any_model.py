"""Maps of models that are not ours, held against another route to the same numbers.

Every tensor of every model is drawn at random: with the libraries' own start a map without any
structure would pass.
"""

import copy
import math
import warnings
from collections import OrderedDict
from functools import partial

import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.testing import assert_close

from tests.package.random_models import all_random
from vitbook.inspection import attention_maps, record_attention
from vitbook.layers.attention import scaled_dot_product_attention
from vitbook.layers.efficient import LinearAttention, WindowAttention
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import from_torchvision

pytestmark = pytest.mark.usefixtures("no_grad")
B, SIZE = 2, (32, 48)
TINY = {"patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4, "num_classes": 5}


def images(size=SIZE, channels=3):
    return torch.randn(B, channels, *size).double()


def drawn(model):
    for parameter in all_random(model).parameters():
        if parameter.ndim > 1:
            parameter.data *= 3  # so that queries and keys are far apart, and maps are not even
    return model.eval().double()


def timm_model(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return drawn(timm.create_model(name, **options))


def assert_equal_maps(maps, expected):
    """And maps that look alike wherever one looks would show nothing."""
    assert (maps - 1 / maps.shape[-1]).abs().max() > 0.1
    assert (maps[0] - maps[-1]).abs().max() > 0.1 or len(maps) == 1
    assert_close(maps, expected, atol=1e-12, rtol=0)


# --- timm ----------------------------------------------------------------------------------------

ALIKE = (
    "vit_tiny_patch16_224",
    "vit_pwee_patch16_reg1_gap_256",  # attention and MLP side by side
    "vit_base_patch16_siglip_gap_224",
    "vit_relpos_small_patch16_224",
    "vit_base_patch16_rope_224",
    "flexivit_small",
    "naflexvit_base_patch16_gap",
    "deit_tiny_distilled_patch16_224",
    "vit_small_patch14_reg4_dinov2",
    "vit_small_patch16_dinov3",
    "beit_base_patch16_224",
)


def without_fusion(model):
    """The same model, whose softmax is seen by its dropout, and what that saw."""
    model, seen = copy.deepcopy(model), []
    for name, module in model.named_modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
        if name.endswith("attn_drop"):
            module.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    return model, seen


@pytest.mark.parametrize("name", ALIKE)
def test_maps_of_timm_fused_or_not_are_those_that_reach_its_dropout(name):
    model, x = timm_model(name, img_size=SIZE, **TINY), images()
    open_, seen = without_fusion(model)
    open_(x)
    expected = torch.stack(seen)
    assert_equal_maps(attention_maps(model, x), expected)
    assert_close(attention_maps(open_, x), expected, atol=0, rtol=0)


# Options; and of the sentence the names, and what says why.
REFUSED = {
    "cait_xxs24_224": (
        {"img_size": SIZE} | TINY | {"patch_size": 16},
        ("'blocks.0.attn', 'blocks.1.attn': it changes its softmax before it is multiplied",),
    ),
    "xcit_nano_12_p16_224": (
        {"img_size": 32, "depth": 2, "embed_dim": 32, "num_heads": 4},
        ("'blocks.0.attn', 'blocks.1.attn': its 8 x 8 weights are not of its 4 tokens: channels",),
    ),
    "vit_base_patch16_siglip_224": (
        {"img_size": SIZE} | TINY,
        ("'attn_pool': 1 queries ask 24 keys", "layers='blocks.*.attn') asks for 'blocks.0.attn'"),
    ),
    "vit_dlittle_patch16_reg1_gap_256": (
        {"img_size": SIZE} | TINY,
        ("'blocks.0.attn#2'", "attends more than once in one call"),
    ),
    "samvit_base_patch16_224": (
        {"img_size": SIZE} | TINY,
        ("'blocks.0.attn', 'blocks.1.attn': it attends within windows of 14 x 14, of a grid of 4",),
    ),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 32, "embed_dim": 16, "depths": (1, 1), "num_heads": (2, 4), "window_size": 4},
        ("'layers.0.blocks.0.attn': it attends within windows or groups, (8, 2, 16, 16)",),
    ),
    "coat_tiny": (
        {"img_size": 32, "serial_depths": (1,) * 4, "parallel_depth": 1, "embed_dims": (16,) * 4},
        ("'serial_blocks1.0.factoratt_crpe'", "softmax over another axis than the last"),
    ),
    "edgenext_xx_small": ({}, ("'stages.1.blocks.1.xca'", "channels attend")),
    "mobilevitv2_050": ({}, ("'stages.2.1.transformer.0.attn'", "none of its layers showed")),
    "swiftformer_xs": (
        {"layers": (1,) * 4, "embed_dims": (8, 16, 16, 16)},
        ("'stages.0.blocks.0.attn'", "no function that it calls is known to attend"),
    ),
    "test_resnet": ({}, ("model (ResNet) ran, and none of its layers showed attention",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_stacked_is_refused_by_name_and_nothing_partial_comes_out(name):
    options, words = REFUSED[name]
    size = options.get("img_size", 32)
    model = timm_model(name, **options)
    x = images(size if isinstance(size, tuple) else (size, size))
    with pytest.raises(ValueError) as refusal:
        attention_maps(model, x)
    for part in words:
        assert part in str(refusal.value)


# --- torchvision and torch -----------------------------------------------------------------------


def by_hand(layer: nn.MultiheadAttention, x, hidden=None):
    """The weights of a layer of torch, from its own parameters; x (B, N, D), hidden: True = no."""
    q, k, _ = F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, dim=-1)
    q, k = (t.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for t in (q, k))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (scores if hidden is None else scores.masked_fill(hidden, -math.inf)).softmax(-1)


def our_vit():
    return VisionTransformer(image_size=32, in_channels=3, mlp_ratio=1.5, **TINY)


def torchvision_vit():
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 48, "num_classes": 5}
    return drawn(torchvision.models.VisionTransformer(image_size=32, patch_size=8, **sizes))


def test_maps_of_torchvisions_vit_are_those_of_our_model_with_its_weights():
    theirs, x = torchvision_vit(), images((32, 32))
    ours = our_vit().double().eval()
    ours.load_state_dict(from_torchvision(theirs.state_dict()))
    assert_close(ours(x), theirs(x))
    assert_equal_maps(attention_maps(theirs, x), attention_maps(ours, x))


def encoder(batch_first=True, norm_first=False, **options):
    sizes = {"d_model": 32, "nhead": 4, "dim_feedforward": 48, "batch_first": batch_first}
    layer = nn.TransformerEncoderLayer(norm_first=norm_first, **sizes, **options)
    return drawn(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first and not norm_first)
    )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("sizes", [(3, 7), (5, 5), (9, 2), (1, 6)])  # images, tokens
def test_maps_of_torchs_encoder_are_those_of_its_parameters(sizes, batch_first, norm_first):
    model, x = encoder(batch_first, norm_first), torch.randn(*sizes, 32).double()
    expected, tokens = [], x
    for layer in model.layers:
        into = layer.norm1(tokens) if norm_first else tokens
        expected.append(by_hand(layer.self_attn, into))
        tokens = layer(tokens if batch_first else tokens.transpose(0, 1))
        tokens = tokens if batch_first else tokens.transpose(0, 1)
    maps = attention_maps(model, x if batch_first else x.transpose(0, 1))
    assert_equal_maps(maps, torch.stack(expected))


def test_images_that_attend_to_each_other_are_no_tokens_where_they_are_as_many():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.encoder = nn.Conv2d(3, 32, 8, 8), encoder(batch_first=False)

        def forward(self, images):
            return self.encoder(self.patches(images).flatten(2).mT)  # (B, N, D), not (N, B, D)

    model = all_random(Model()).eval().double()
    for verify in (True, False):
        with pytest.raises(ValueError, match=r"draws at random|not that of the 1 images"):
            attention_maps(model, torch.randn(16, 3, 32, 32).double(), verify=verify)


@pytest.mark.parametrize("mask", ["padding", "causal", "both"])
def test_masks_of_torchs_encoder_hide_keys_in_its_maps(mask):
    model, x = encoder(), torch.randn(3, 7, 32).double()
    padding = torch.arange(7) >= torch.tensor([7, 5, 3])[:, None]  # (B, N), True = hidden
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    hidden = torch.zeros(3, 1, 7, 7, dtype=torch.bool)
    given = {}
    if mask != "causal":
        hidden, given["src_key_padding_mask"] = hidden | padding[:, None, None], padding
    if mask != "padding":
        hidden, given["mask"] = hidden | later, later
    with record_attention(model) as maps:
        model(x, **given)
    first = model.layers[0].self_attn
    assert_close(maps["layers.0.self_attn"], by_hand(first, x, hidden))
    assert (maps["layers.1.self_attn"][hidden.expand(3, 4, 7, 7)] == 0).all()


def test_windows_of_torchvision_are_refused_and_had_by_name():
    sizes = {"patch_size": [2, 2], "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4]}
    sizes |= {"window_size": [4, 4]}
    model, x = drawn(torchvision.models.SwinTransformer(**sizes)), images((16, 16))
    with pytest.raises(ValueError, match=r"'features.1.0.attn': its 16 x 16 weights are not of i"):
        attention_maps(model, x)
    with pytest.warns(UserWarning, match="'features.1.0.attn'"), record_attention(model) as maps:
        model(x)
    assert [m.shape for m in maps.values()] == [(8, 2, 16, 16), *2 * [(2, 4, 16, 16)]]
    assert attention_maps(model, x, layers="features.3.*").shape == (2, 2, 4, 16, 16)


def test_decoders_have_three_kinds_of_maps_by_name():
    model = drawn(nn.Transformer(32, 4, 1, 1, 48, batch_first=True))
    x, y = torch.randn(3, 7, 32).double(), torch.randn(3, 5, 32).double()
    with record_attention(model) as maps:
        model(x, y)
    assert {name: tuple(weights.shape[2:]) for name, weights in maps.items()} == {
        "encoder.layers.0.self_attn": (7, 7),
        "decoder.layers.0.self_attn": (5, 5),
        "decoder.layers.0.multihead_attn": (5, 7),
    }


# --- bit for bit ---------------------------------------------------------------------------------


NATIVE = {
    "ours": (lambda: drawn(our_vit()), lambda: images((32, 32))),
    "torchvision": (torchvision_vit, lambda: images((32, 32))),
    "encoder": (encoder, lambda: torch.randn(3, 7, 32).double()),
    "timm": (partial(timm_model, "vit_tiny_patch16_224", img_size=SIZE, **TINY), images),
}


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_recording_changes_no_bit_and_native_kernels_stay_in_use(name, dtype):
    build, inputs = NATIVE[name]
    model, x = build().to(dtype), inputs().to(dtype)
    plain = model(x)
    state = torch.random.get_rng_state()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile, record_attention(model) as maps:
        recorded = model(x)
    assert torch.equal(plain, recorded)
    assert torch.equal(state, torch.random.get_rng_state())
    exact = name == "ours" or dtype == torch.float64  # ours answer themselves, as they are
    assert {m.dtype for m in maps.values()} == {dtype if exact else torch.float32}
    ran = {event.key for event in profile.key_averages()}
    native = {"torchvision": "aten::_native_multi_head_attention"}
    native |= {"encoder": "aten::_transformer_encoder_layer_fwd"}
    assert native.get(name, "aten::scaled_dot_product_attention") in ran


@pytest.mark.parametrize("name", NATIVE)
def test_gradients_in_training_are_those_of_a_twin_that_is_not_recorded(name):
    build, inputs = NATIVE[name]
    model, x = build().train(), inputs()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.3
    twin = copy.deepcopy(model)
    with torch.enable_grad():
        torch.manual_seed(1)
        model(x).square().sum().backward()
        torch.manual_seed(1)
        with record_attention(twin) as maps:
            twin(x).square().sum().backward()
    assert len(maps) == 2
    assert not any(weights.requires_grad for weights in maps.values())
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)


@pytest.mark.parametrize("layer", [0, 1])
def test_somebody_elses_hooks_run_once_and_leave_the_other_layers_their_kernels(layer):
    model, x, calls = encoder(), torch.randn(3, 7, 32).double(), []
    model.layers[layer].linear1.register_forward_hook(lambda *_: calls.append(1))
    plain = model(x)
    with record_attention(model):
        assert torch.equal(model(x), plain)
    assert len(calls) == 2


def test_a_checkpoint_that_runs_again_for_the_gradients_is_not_a_second_pass():
    model = timm_model("vit_tiny_patch16_224", img_size=SIZE, **TINY).train()
    model.set_grad_checkpointing()
    with torch.enable_grad(), record_attention(model) as maps:
        model(images()).sum().backward()
    assert list(maps) == ["blocks.0.attn", "blocks.1.attn"]


# --- one's own -----------------------------------------------------------------------------------

Q, K, V = (torch.randn(3, 4, n, 8).double() for n in (5, 7, 7))  # (B, h, N, d)
KEEP = torch.rand(5, 7) > 0.3
KEEP[:, 0] = True
CALLS = {
    "plain": {},
    "scale": {"scale": 0.7},
    "boolean mask": {"attn_mask": KEEP},
    "boolean mask for each image and head": {"attn_mask": torch.rand(3, 4, 5, 7) > 0.2},
    "added mask": {"attn_mask": torch.randn(4, 5, 7).double()},
    "causal": {"is_causal": True},
    "dropout": {"dropout_p": 0.4},
    "grouped keys": {"enable_gqa": True},
}


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs, **options):
        return self.function(*inputs, **options)


@pytest.mark.parametrize("name", CALLS)
def test_weights_are_what_the_fused_function_does_to_the_identity(name):
    options = CALLS[name]
    k = K[:, :2] if name == "grouped keys" else K
    v = torch.eye(7).double().expand(*k.shape[:2], 7, 7)  # then what comes out is the weights
    model = Calls(F.scaled_dot_product_attention)
    with record_attention(model) as maps:
        model(Q, key=k, value=v, **options)
    certain = options | ({"dropout_p": 0.0} if "dropout_p" in options else {})
    assert_close(maps[""], F.scaled_dot_product_attention(Q, k, v, **certain))


def test_a_query_that_may_attend_to_nothing_has_no_weights():
    model, nothing = Calls(F.scaled_dot_product_attention), torch.ones(5, 7, dtype=torch.bool)
    nothing[2] = False
    for mask in (nothing, torch.zeros(5, 7).double().masked_fill(~nothing, -math.inf)):
        with record_attention(model) as maps:
            model(Q, K, V, attn_mask=mask)
        assert (maps[""][:, :, 2] == 0).all()
        assert_close(maps[""].sum(-1)[:, :, [0, 1, 3, 4]], torch.ones(3, 4, 4).double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, "autocast"])
def test_half_precision_is_worked_out_in_float32_from_what_is_given(dtype):
    model, cast = Calls(F.scaled_dot_product_attention), dtype == "autocast"
    q, k, v = (t.to(torch.float32 if cast else dtype) for t in (Q, K, V))
    with torch.autocast("cpu", torch.bfloat16, enabled=cast), record_attention(model) as maps:
        model(q, k, v)
    expected = (q.float() @ k.float().mT / math.sqrt(8)).softmax(-1)
    assert_close(maps[""], expected, rtol=0, atol=1e-6)


def scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


OPEN = {
    "@": lambda q, k, v: scores(q, k).softmax(-1) @ v,
    "matmul, dropout, types": lambda q, k, v: torch.matmul(
        F.dropout(F.softmax(scores(q, k), dim=3).to(v.dtype), 0.5), v
    ),
    "the other way round": lambda q, k, v: v.mT @ nn.Softmax(-1)(scores(q, k)).transpose(-2, -1),
    "einsum": lambda q, k, v: torch.einsum(
        "bhij,bhjd->bihd", torch.einsum("bhid,bhjd->bhij", q, k).div(math.sqrt(8)).softmax(-1), v
    ),
    "this package": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
    "bmm": lambda q, k, v: torch.bmm(
        torch.softmax(scores(q, k), -1).view(12, 5, 7), v.reshape(12, 7, 8)
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_softmax_that_is_multiplied_with_values_is_a_map(name):
    model = Calls(OPEN[name])
    with record_attention(model) as maps:
        model(Q, K, V)
    assert_close(maps[""].view(3, 4, 5, 7), scores(Q, K).softmax(-1))


def changed_in_place(q, k, v):
    weights = scores(q, k).softmax(-1)
    weights[..., 0] = 0
    return weights @ v


def mixed(q, k, v):
    return 0.5 * (scores(q, k).softmax(-1) + 1 / 7) @ v


def by_exponentials(q, k, v):
    weights = scores(q, k).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


@pytest.mark.parametrize("function", [changed_in_place, mixed, by_exponentials])
def test_weights_that_were_changed_or_cannot_be_seen_are_no_map(function):
    class OwnAttention(Calls):
        pass

    model, words = OwnAttention(function), "none of its layers showed attention: ''"
    with pytest.raises(ValueError, match=words), record_attention(model):
        model(Q, K, V)


class Layers(nn.Module):
    """Layers one after the other, on (B, N, D)."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Own(nn.Module):
    """One head of attention by a function of one's own."""

    def __init__(self, function=F.scaled_dot_product_attention, width=32):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.function = function

    def forward(self, x):
        return self.function(*self.qkv(x).chunk(3, -1))


TOKENS = torch.randn(B, 7, 32)


def test_what_seems_to_attend_and_cannot_be_read_is_warned_of_and_refused():
    model = Layers(Own(), Own(lambda q, k, v: (scores(q, k).softmax(-1) ** 2) @ v))
    with pytest.warns(UserWarning, match="'layers.1': it changes its softmax"):  # noqa: SIM117
        with record_attention(model) as maps:
            model(TOKENS)
    assert list(maps) == ["layers.0"]
    with pytest.raises(ValueError, match=r"'layers.1': it changes its softmax"):
        attention_maps(model, TOKENS)
    assert attention_maps(model, TOKENS, layers="layers.0").shape == (1, B, 1, 7, 7)
    assert attention_maps(model, TOKENS, layers=["layers.0"]).shape == (1, B, 1, 7, 7)
    with pytest.raises(ValueError, match=r"match some of 'layers.0', 'layers.1'; got 'blocks.\*'"):
        attention_maps(model, TOKENS, layers="blocks.*")
    with pytest.raises(ValueError, match=r"must each match some of 'layers.0'.*'layers.7'"):
        attention_maps(model, TOKENS, layers=["layers.0", "layers.7"])


def test_a_name_that_is_asked_for_and_showed_nothing_is_not_left_out():
    attn, other = Own(), nn.Sequential(nn.Linear(32, 32))
    model = Layers(*(nn.Sequential(OrderedDict(attn=layer)) for layer in (attn, other)))
    assert len(attention_maps(model, TOKENS, layers="layers.0.attn")) == 1
    with pytest.warns(UserWarning, match="names 'layers.1.attn', too: no attention was seen"):
        attention_maps(model, TOKENS, layers="layers.*.attn")


def test_shared_layers_have_a_map_for_each_time_they_run():
    layer = Own()
    model = Layers(layer, layer, layer)
    with record_attention(model) as maps:
        model(TOKENS)
    assert list(maps) == ["layers.0", "layers.0#2", "layers.0#3"]
    q, k, _ = layer.qkv(layer(TOKENS)).chunk(3, -1)
    assert_close(maps["layers.0#2"][:, 0], scores(q, k).softmax(-1))
    with pytest.raises(RuntimeError, match="ran twice"), record_attention(model):
        [model(TOKENS) for _ in range(2)]


def test_channels_that_attend_are_not_taken_for_tokens():
    turned = Own(lambda q, k, v: F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT)
    with pytest.raises(ValueError, match="32 x 32 weights are not of its 7 tokens: channels"):
        attention_maps(turned, TOKENS)
    square = torch.randn(B, 32, 32)  # as many tokens as channels
    with pytest.raises(ValueError, match="32 tokens and heads of width 32: it is open"):
        attention_maps(turned, square)
    assert attention_maps(Own(), square).shape == (1, B, 1, 32, 32)


def test_heads_folded_into_the_batch_are_read_one_image_at_a_time():
    def folded(q, k, v):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2).flatten(0, 1) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return out.unflatten(0, (-1, 4)).transpose(1, 2).flatten(2)

    model = Layers(Own(folded))
    with pytest.raises(ValueError, match="images and heads share an axis"):
        attention_maps(model, TOKENS)
    q, k, _ = model.layers[0].qkv(TOKENS[:1]).chunk(3, -1)
    q, k = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in (q, k))
    assert_close(attention_maps(model, TOKENS[:1])[0], scores(q, k).softmax(-1))


def test_other_models_in_the_block_are_not_recorded():
    model, other = Layers(Own()), Layers(Own(), Own())
    with record_attention(model) as maps:
        other(TOKENS)
        model(TOKENS)
    assert list(maps) == ["layers.0"]


def test_a_softmax_that_is_taken_once_more_to_be_looked_at_is_no_other_attention():
    def logs(q, k, v):
        logged.append((-scores(q, k).softmax(-1).log()).mean())
        return F.scaled_dot_product_attention(q, k, v)

    logged = []
    model = Layers(Own(logs), Own())
    assert_close(attention_maps(model, TOKENS), attention_maps(model, TOKENS, verify=False))
    model = Layers(Own(lambda q, k, v: logs(q, k, v) + (2 * scores(q, k)).softmax(-1)[..., :1]))
    with pytest.raises(ValueError, match="it changes its softmax"):
        attention_maps(model, TOKENS)


def test_queries_of_fewer_tokens_are_counted_where_there_are_no_heads():
    class Merger(nn.Module):
        def __init__(self):
            super().__init__()
            self.queries = nn.Parameter(torch.randn(3, 32))

        def forward(self, x):
            return (self.queries @ x.mT).softmax(-1) @ x

    for count in (1, 2):
        with pytest.raises(ValueError, match="3 queries ask 7 keys"):
            attention_maps(Layers(Own(), Merger()), TOKENS[:count])


def test_a_forward_that_goes_another_way_than_attention_weights_is_watched_instead():
    sizes = {"embed_dim": 32, "num_heads": 4}
    window = WindowAttention(grid=(2, 4), window=2, num_prefix=0, **sizes)
    with pytest.raises(ValueError, match="attends more than once"):
        attention_maps(window, torch.randn(B, 8, 32))
    with pytest.raises(ValueError, match="none of its layers showed attention: ''"):
        attention_maps(LinearAttention(**sizes), TOKENS)


def test_a_linear_layer_called_attention_weights_is_no_method():
    class Deformable(Own):
        def __init__(self):
            super().__init__()
            self.attention_weights = nn.Linear(32, 4)

    assert attention_maps(Layers(Deformable()), TOKENS).shape == (1, B, 1, 7, 7)


def test_scripted_code_runs_unseen_and_is_refused():
    class Plain(Own):
        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return F.scaled_dot_product_attention(q, k, v)

    model = Layers(Own(), torch.jit.trace(Plain(), TOKENS))
    with pytest.raises(ValueError, match=r"'layers.1': it is TorchScript, which runs unseen"):
        attention_maps(model, TOKENS)
