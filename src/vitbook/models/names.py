"""What torchvision, timm and transformers call the tensors of a model, and what they are here."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from vitbook.layers.encoder import name_today

# Their name -> ours. A name that begins with a dot is replaced anywhere, others at the start only.
TORCHVISION_NAMES = {
    "class_token": "cls_token",
    "conv_proj.": "patch_embed.proj.",
    "encoder.pos_embedding": "positions.table",
    "encoder.layers.encoder_layer_": "encoder.blocks.",
    "encoder.ln.": "encoder.norm.",
    "heads.head.": "head.",
    ".ln_": ".norm",
    ".self_attention.in_proj_": ".attn.qkv.",
    ".self_attention.out_proj.": ".attn.proj.",
    ".mlp.0.": ".mlp.fc1.",
    ".mlp.3.": ".mlp.fc2.",
    ".mlp.linear_1.": ".mlp.fc1.",  # the two names used before torchvision 0.12
    ".mlp.linear_2.": ".mlp.fc2.",
}
# The same for timm, and for the files of DINOv2, which say register_tokens.
TIMM_NAMES = {
    "pos_embed": "positions.table",
    "register_tokens": "reg_token",
    "blocks.": "encoder.blocks.",
    "norm.": "encoder.norm.",
}
TIMM_MIXER_NAMES = {
    "stem.": "patch_embed.",
    "blocks.": "encoder.blocks.",
    "norm.": "encoder.norm.",
    ".mlp_tokens.": ".attn.mlp.",
    ".mlp_channels.": ".mlp.",
}
TIMM_CONV_MIXER_NAMES = {
    "stem.0.": "patch_embed.proj.",
    "stem.2.": "patch_embed.norm.",
    "blocks.": "encoder.blocks.",
    ".0.fn.0.": ".depthwise.",
    ".0.fn.2.": ".norm1.",
    ".1.weight": ".pointwise.weight",
    ".1.bias": ".pointwise.bias",
    ".3.weight": ".norm2.weight",
    ".3.bias": ".norm2.bias",
    ".3.running": ".norm2.running",
    ".3.num": ".norm2.num",
}
# The same for ViT, DeiT, DINOv2 and CLIP of transformers: its files, and its models since 5.0.
TRANSFORMERS_NAMES = {
    "embeddings.cls_token": "cls_token",
    "embeddings.class_embedding": "cls_token",
    "embeddings.register_tokens": "reg_token",
    "embeddings.mask_token": "mask_token",  # of DINOv2: for its training alone
    "embeddings.position_embeddings": "positions.table",
    "embeddings.position_embedding.weight": "positions.table",
    "embeddings.patch_embeddings.projection.": "patch_embed.proj.",
    "embeddings.patch_embedding.": "patch_embed.proj.",
    "pre_layrnorm.": "norm_pre.",  # their spelling
    "encoder.layers.": "encoder.blocks.",
    "encoder.layer.": "encoder.blocks.",
    "layers.": "encoder.blocks.",
    "post_layernorm.": "encoder.norm.",
    "layernorm.": "encoder.norm.",
    "classifier.": "head.",
    "visual_projection.": "head.",
    ".layernorm_before.": ".norm1.",
    ".layernorm_after.": ".norm2.",
    ".layer_norm": ".norm",
    ".attention.attention.": ".attn.",
    ".attention.output.dense.": ".attn.proj.",
    ".attention.": ".attn.",
    ".self_attn.": ".attn.",
    ".attn.query.": ".attn.q_proj.",
    ".attn.key.": ".attn.k_proj.",
    ".attn.value.": ".attn.v_proj.",
    ".attn.out_proj.": ".attn.proj.",
    ".attn.o_proj.": ".attn.proj.",
    ".intermediate.dense.": ".mlp.fc1.",
    ".output.dense.": ".mlp.fc2.",
    ".layer_scale1.lambda1": ".ls1.gamma",
    ".layer_scale2.lambda1": ".ls2.gamma",
}
# A name that only this architecture has -> its names.
TORCHVISION = {"encoder.pos_embedding": TORCHVISION_NAMES}
TIMM = {
    "pos_embed": TIMM_NAMES,
    "blocks.0.mlp_tokens.fc1.weight": TIMM_MIXER_NAMES,
    "blocks.0.0.fn.0.weight": TIMM_CONV_MIXER_NAMES,
    "blocks.0.norm1.weight": TIMM_NAMES,  # a ViT without positions
}
TRANSFORMERS_PATCHES = re.compile(r"(.*)embeddings\.patch_embeddings?\.(projection\.)?weight")


def from_torchvision(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of torchvision's ``vit_b_16`` and its relatives to ours.

    Args:
        state_dict: As ``torchvision.models.vit_b_16().state_dict()`` gives it.

    Returns:
        The same tensors under our names; ``positions.table`` loses its batch axis.

    Raises:
        TypeError: Not a mapping.
        ValueError: Not the weights of a Vision Transformer of torchvision.
    """
    return _rename(state_dict, TORCHVISION, "torchvision's VisionTransformer")


def from_timm(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of timm's ViTs, MLP-Mixers and ConvMixers to ours.

    Args:
        state_dict: As ``timm.create_model("vit_small_patch16_224").state_dict()`` gives it.

    Returns:
        The same tensors under our names; ``positions.table`` loses its batch axis.

    Raises:
        TypeError: Not a mapping.
        ValueError: Not the weights of one of these models of timm.
    """
    return _rename(state_dict, TIMM, "timm's VisionTransformer, MlpMixer or ConvMixer")


def from_transformers(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of transformers' ViT, DINOv2 or CLIP (its images' part) to ours.

    Args:
        state_dict: Of such a model, or of its file.

    Returns:
        The same tensors under our names; queries, keys and values are joined to ``qkv``.

    Raises:
        TypeError: Not a mapping.
        ValueError: Not the weights of such a model.
    """
    _require_mapping(state_dict)
    patches = [match for name in state_dict if (match := TRANSFORMERS_PATCHES.fullmatch(name))]
    start = patches[0][1] if patches else ""  # "vit.", "vision_model." or nothing
    bare = renamed(state_dict, lambda name: name.removeprefix(start))
    names = {f"embeddings.{m[0].split('embeddings.', 1)[1]}": TRANSFORMERS_NAMES for m in patches}
    signs = names or {"embeddings.patch_embeddings.projection.weight": {}}
    found = _rename(bare, signs, "a ViT, DINOv2 or CLIP of transformers")
    for name in [name for name in found if ".attn.q_proj." in name]:
        parts = [found.pop(name.replace("q_proj", part), None) for part in QKV]
        if (query := parts[0]) is not None:  # a projection without a bias beside some with: zeros
            joined = torch.cat([torch.zeros_like(query) if x is None else x for x in parts])
            whole = name.replace("q_proj", "qkv")
            found = renamed({**found, name: joined}, {name: whole}.get)
    if (token := found.get("cls_token")) is not None and token.ndim == 1:
        found["cls_token"] = token.reshape(1, 1, -1)
    return found


QKV = ("q_proj", "k_proj", "v_proj")


def to_ours(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights under our names, whichever of the four sets of names they come with."""
    _require_mapping(weights, "weights must be a mapping or a path")
    if any(TRANSFORMERS_PATCHES.fullmatch(name) for name in weights):
        return from_transformers(weights)
    for signs, translate in ((TORCHVISION, from_torchvision), (TIMM, from_timm)):
        if any(sign in weights for sign in signs):
            return translate(weights)
    return renamed(weights, name_today)


def renamed(
    tensors: Mapping[Any, Tensor], rename: Callable[[Any], str | None]
) -> dict[str, Tensor]:
    """Tensors under other names; those for which there is none keep theirs.

    Raises:
        ValueError: Two come to the same name; the message tells both.
    """
    found, old = dict[str, Tensor](), dict[str, Any]()
    for name, tensor in tensors.items():
        new = rename(name) or name
        if new in found:
            raise ValueError(
                f"weights must hold each tensor once: {old[new]} and {name} are both {new} here"
            )
        found[new], old[new] = tensor, name
    return found


def _rename(
    state_dict: Mapping[str, Tensor], architectures: dict[str, dict[str, str]], models: str
) -> dict[str, Tensor]:
    _require_mapping(state_dict)
    names = next((names for sign, names in architectures.items() if sign in state_dict), None)
    if names is None:
        first, signs = ", ".join(list(state_dict)[:3]), " or ".join(map(repr, architectures))
        raise ValueError(
            f"state_dict must be that of {models} and hold {signs}, got the names {first} ..."
        )

    def here(name: str) -> str:
        for theirs, ours in names.items():
            if name.startswith(theirs):
                name = ours + name.removeprefix(theirs)
            elif theirs.startswith("."):
                name = name.replace(theirs, ours)
        return name

    found = renamed(state_dict, here)
    if (table := found.get("positions.table")) is not None and table.ndim == 3:
        found["positions.table"] = table.squeeze(0)
    return found


def _require_mapping(
    weights: Mapping[str, Tensor], words: str = "state_dict must be a mapping"
) -> None:
    if not isinstance(weights, Mapping):
        raise TypeError(f"{words}, got {type(weights).__name__}")
    if other := [name for name, x in weights.items() if not isinstance(x, Tensor)]:
        kind = type(weights[other[0]]).__name__
        raise TypeError(f"{words.split()[0]} must hold tensors, {other[0]} is of {kind}")
