"""Families of published ViTs: rebuilt, equal in every tensor; what is refused has a reason."""

import pytest
import torch
from timm.layers import GluMlp, QuickGELU
from timm.models import vision_transformer as vision
from torch import nn
from torchvision.models import VisionTransformer as TorchvisionViT

from vitbook.models.published import rebuild
from vitbook.models.transfer import adapt
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import from_transformers, load_weights

TOLERANCE = 1e-8  # relative, in float64
NOTICED = 10 * TOLERANCE  # what a planted fault has to move at least
SIZES = {"img_size": 12, "patch_size": 4, "embed_dim": 12, "depth": 2, "num_heads": 3}
SIZES |= {"num_classes": 5}
EPS5 = {"norm_layer": lambda *a, **k: nn.LayerNorm(*a, eps=1e-5, **k)}
MEAN = {"class_token": False, "global_pool": "avg"}
SCALED = {"init_values": 0.1, "no_embed_class": True}
KINDS = {
    "ViT": {},
    "CLIP": {"pre_norm": True, **EPS5},
    "CLIP of OpenAI": {"pre_norm": True, **EPS5, "act_layer": QuickGELU},
    "DINOv2": {"init_values": 0.1},
    "DINOv2 with registers": SCALED | {"reg_tokens": 4},
    "FlexiViT": {"no_embed_class": True},
    "mean, norm before": MEAN | {"fc_norm": False},
    "SigLIP's mean, tanh": MEAN | {"fc_norm": False, "act_layer": "gelu_tanh"},
    "mean, norm after": MEAN | SCALED | {"reg_tokens": 4},
    "mean, no qkv bias": MEAN | {"reg_tokens": 1, "qkv_bias": False, "init_values": 0.1},
    "RADIO, no last norm": SCALED | {"final_norm": False, "reg_tokens": 7},
    "no positions": {"pos_embed": "none"},
}


@torch.no_grad()
def filled(net: nn.Module, seed: int = 0) -> nn.Module:
    """Every tensor at random: matrices keep the size of what they read, the stream is small.

    So attention is uneven, and the eps of each norm is seen.
    """
    g = torch.Generator().manual_seed(seed)
    for p in net.double().parameters():
        matrix = p.ndim in (2, 4)
        p.copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
        p.mul_(p[0].numel() ** -0.5 if matrix else 0.05 if p.ndim == 3 else 0.5)
    return net.eval()


def of_timm(kind):
    return filled(vision.VisionTransformer(**SIZES, **KINDS[kind]))


def ours(in_channels=3, **options):
    sizes = {"image_size": 12, "patch_size": 4, "in_channels": in_channels, "num_classes": 5}
    return VisionTransformer(**sizes, embed_dim=12, depth=2, num_heads=3, **options)


def images(channels=3):
    g = torch.Generator().manual_seed(1)
    return torch.randn(2, channels, 12, 12, generator=g, dtype=torch.float64)


@torch.no_grad()
def gap(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_a_family_of_timm_is_rebuilt_and_each_planted_fault_is_noticed(kind):
    theirs = of_timm(kind)
    ours, _ = rebuild(theirs)
    wanted = theirs(images())
    assert gap(ours(images()), wanted) < TOLERANCE
    faults = 0
    for name, tensor in ours.state_dict().items():
        whole = tensor.clone()
        for fault in (torch.zeros_like(whole), whole.flatten().roll(1).view_as(whole)):
            if torch.equal(fault, whole):
                continue  # a bias that they do not have is zero already
            tensor.copy_(fault)
            assert gap(ours(images()), wanted) > NOTICED, f"{name} is not looked at"
            faults += 1
            tensor.copy_(whole)
    assert faults > 40
    norms = [layer for layer in ours.modules() if isinstance(layer, nn.LayerNorm)]
    for norm in norms:
        right, norm.eps = norm.eps, 1e-4
        assert gap(ours(images()), wanted) > NOTICED
        norm.eps = right
    for block in ours.encoder.blocks:
        right, block.mlp.gelu = block.mlp.gelu, torch.relu
        assert gap(ours(images()), wanted) > NOTICED
        block.mlp.gelu = right
        block.attn.num_heads, block.attn.head_dim = 2, 6
        assert gap(ours(images()), wanted) > NOTICED
        block.attn.num_heads, block.attn.head_dim = 3, 4
    assert gap(ours(images()), wanted) < TOLERANCE


@torch.no_grad()
def test_torchvisions_model_is_rebuilt_from_its_own_names():
    theirs = filled(TorchvisionViT(12, 4, 2, 3, 12, 24, num_classes=5))
    ours, notes = rebuild(theirs)
    assert notes == []
    assert gap(ours(images()), theirs(images())) < TOLERANCE


@torch.no_grad()
def test_a_head_that_was_replaced_by_hand_is_rebuilt():
    timms, torchvisions = of_timm("ViT"), filled(TorchvisionViT(12, 4, 2, 3, 12, 24))
    timms.head = torchvisions.heads.head = nn.Linear(12, 6, dtype=torch.float64)
    for theirs in (timms, torchvisions):
        ours, notes = rebuild(theirs)
        assert notes == []
        assert gap(ours(images()), theirs(images())) < TOLERANCE


class LoraLinear(nn.Module):
    """More than its weights, as LoRA and quantized layers are."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer

    def forward(self, x):
        return 2 * self.base_layer(x)


def test_a_linear_layer_that_is_more_than_its_weights_is_named():
    theirs = of_timm("DINOv2 with registers")
    theirs.blocks[1].mlp.fc2 = LoraLinear(theirs.blocks[1].mlp.fc2)
    with pytest.raises(ValueError, match=r"a linear layer is .*LoraLinear: merge it"):
        rebuild(theirs)


@torch.no_grad()
def test_the_head_stays_fresh_and_positions_are_resampled_together():
    theirs = of_timm("DINOv2 with registers")
    ours, notes = rebuild(theirs, num_classes=7, image_size=16)
    assert notes == [
        "head left out: it knows 5 classes, the model has 7",
        "positions have no row for 5 tokens before the patches: zeros",
        "positions resampled from 3 x 3 to 4 x 4 patches",
    ]
    theirs.reset_classifier(0)
    ours, notes = rebuild(theirs)
    assert notes[0] == "head left fresh: what is taken has none"
    tokens = theirs.forward_features(images())
    assert gap(ours.forward_features(images()), tokens) < TOLERANCE


def in_the_layout_of_transformers(state):
    """Our tensors of a ViT as a file of transformers holds them, written by hand."""
    names = {
        "cls_token": "embeddings.cls_token",
        "patch_embed.proj.": "embeddings.patch_embeddings.projection.",
        "encoder.norm.": "layernorm.",
        "encoder.blocks.": "encoder.layer.",
        ".norm1.": ".layernorm_before.",
        ".norm2.": ".layernorm_after.",
        ".attn.proj.": ".attention.output.dense.",
        ".mlp.fc1.": ".intermediate.dense.",
        ".mlp.fc2.": ".output.dense.",
    }
    made = {"vit.pooler.dense.weight": torch.randn(12, 12)}
    for name, tensor in state.items():
        if name.startswith("head."):
            made[name.replace("head", "classifier")] = tensor
        elif name == "positions.table":
            made["vit.embeddings.position_embeddings"] = tensor[None]
        elif ".attn.qkv." in name:
            i, part = name.split(".")[2], name.split(".")[-1]
            for which, rows in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                made[f"vit.encoder.layer.{i}.attention.attention.{which}.{part}"] = rows
        else:
            for ours, theirs in names.items():
                name = name.replace(ours, theirs)
            made[f"vit.{name}"] = tensor
    return made


@torch.no_grad()
def test_a_file_of_transformers_gets_its_queries_keys_and_values_joined():
    theirs = of_timm("ViT")
    rebuilt, _ = rebuild(theirs)
    written = in_the_layout_of_transformers(rebuilt.state_dict())
    read = ours().double().eval()
    assert load_weights(read, written) == ["left out, a classifier does not read it: pooler"]
    assert gap(read(images()), theirs(images())) < TOLERANCE
    for name, tensor in from_transformers(written).items():
        assert name.startswith("pooler") or torch.equal(tensor, rebuilt.state_dict()[name])


@torch.no_grad()
def test_a_map_of_channels_gives_the_tokens_of_the_image_it_describes():
    theirs = of_timm("CLIP")
    bands, channels = images(13), (3, (2, 4), None)
    right, notes = rebuild(theirs, in_channels=13, channels=channels)
    assert notes[0] == "patch kernel fitted to 13 channels by the map (3, (2, 4), None)"
    seen = torch.stack([bands[:, 3], bands[:, [2, 4]].mean(1), 0 * bands[:, 0]], 1)
    assert gap(right(bands), theirs(seen)) < TOLERANCE
    wrong, _ = rebuild(theirs, in_channels=13, channels=(2, (3, 4), None))
    assert gap(wrong(bands), theirs(seen)) > NOTICED
    four = ours(in_channels=4, pre_norm=True, norm_eps=1e-5)
    notes = adapt(four, theirs.state_dict(), channels=(0, 1, 2))
    assert notes[0] == "patch kernel fitted to 4 channels by the map (0, 1, 2)"
    assert notes[1] == "head drawn anew: 5 classes"
    assert not four.patch_embed.proj.weight[:, 3].any()


def gated():
    return vision.VisionTransformer(**SIZES, mlp_layer=GluMlp)


def names_of(**options):
    return vision.VisionTransformer(**SIZES, **options).state_dict()


def load(without=None, channels=None, **options):
    """Weights of timm's model with these options, loaded into our plain one."""
    names = {name: tensor for name, tensor in names_of(**options).items() if name != without}
    return load_weights(ours(), names, channels=channels)


@torch.no_grad()
def test_the_mask_token_in_a_model_of_transformers_is_left_out():
    rebuilt, _ = rebuild(of_timm("ViT"))
    written = in_the_layout_of_transformers(rebuilt.state_dict())
    written["vit.embeddings.mask_token"] = torch.randn(1, 12)
    notes = load_weights(read := ours().double().eval(), written)
    assert sorted(notes[0].split(": ")[1].split(", ")) == ["mask_token", "pooler"]
    assert gap(read(images()), rebuilt(images())) < TOLERANCE


@torch.no_grad()
def test_a_tensor_of_no_registers_is_whole_and_one_of_two_projections_is_not_chosen():
    rebuilt, _ = rebuild(of_timm("ViT"))
    written = in_the_layout_of_transformers(rebuilt.state_dict())
    written["vit.embeddings.register_tokens"] = torch.ones(1, 0, 12)
    load_weights(read := ours().double().eval(), written)
    assert gap(read(images()), rebuilt(images())) < TOLERANCE
    with pytest.raises(ValueError, match="reg_token is missing: num_registers decides"):
        load_weights(ours(num_registers=2), written)
    joined = {"vit.encoder.layer.0.attention.attention.qkv.weight": torch.ones(36, 12)}
    with pytest.raises(ValueError, match="hold each tensor once"):
        load_weights(read, written | joined)


BAD_INPUT = [
    (lambda: rebuild(nn.Linear(2, 2)), ValueError, "of timm, torchvision or transform"),
    (lambda: rebuild(gated()), ValueError, "its MLP has a gate"),
    (lambda: load(mlp_layer=GluMlp), ValueError, "has a gate"),
    (lambda: load(global_pool="map"), ValueError, "attn_pool.latent is unk.*: their tokens are"),
    (lambda: load(qk_norm=True), ValueError, "(8 such tensors): their attention normalizes quer"),
    (lambda: load(init_values=0.1), ValueError, "(4 such tensors): layer_scale decides"),
    (lambda: load(pre_norm=True), ValueError, "pre_norm decides"),
    (lambda: load(reg_tokens=2), ValueError, "reg_token is unknown to the model: num_registers d"),
    (lambda: load("blocks.1.attn.qkv.bias"), ValueError, "qkv.bias is missing: qkv_bias decides"),
    (lambda: ours(class_token=False), ValueError, "class_token must be True where pool"),
    (lambda: ours(final_norm="last"), ValueError, "final_norm must be"),
    (lambda: ours(gelu="relu"), ValueError, "gelu must be"),
    (lambda: adapt(ours(13), names_of()), ValueError, "channels= (which of the new ones each of"),
    (lambda: rebuild(of_timm("ViT"), in_channels=4), ValueError, "give channels="),
    (lambda: load(channels=(0, 1)), ValueError, "for each of the 3 channels of the weights"),
    (lambda: load(channels=(0, 1, 3)), ValueError, "channels must hold numbers from 0 to 2"),
]
