"""A model of timm, torchvision or transformers as one of this package: the same, but readable."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from vitbook import require
from vitbook.models.vit import VisionTransformer
from vitbook.models.weights import load_weights

# What timm's other blocks do that ours do not.
OTHER_BLOCKS = {
    "ParallelScalingBlock": "attention and MLP work side by side on the same tokens",
    "ParallelThingsBlock": "several attentions work side by side",
    "DiffParallelScalingBlock": "attention, a difference of two maps, and MLP work side by side",
    "ResPostBlock": "the norms stand at the end of the branches",
}
GELUS_OF_TIMM = {"GELUTanh": "tanh", "QuickGELU": "quick"}
GELUS_OF_TRANSFORMERS = {
    "gelu": "exact",
    "quick_gelu": "quick",
    "gelu_pytorch_tanh": "tanh",
    "gelu_new": "tanh",
}


def rebuild(
    theirs: nn.Module,
    *,
    channels: Sequence[int | Sequence[int] | None] | None = None,
    **changes: Any,
) -> tuple[VisionTransformer, list[str]]:
    """Build the same Vision Transformer in this package and give it the same weights.

    Names and shapes do not tell the number of heads, the eps of the norms or which GELU; these are
    read off the model.

    Args:
        theirs: A ``VisionTransformer`` of timm or torchvision, or a ViT, DINOv2 (with registers
            too) or CLIP vision model of transformers.
        channels: As in :func:`~vitbook.models.weights.load_weights`; say ``in_channels`` too.
        changes: Arguments of :class:`~vitbook.models.vit.VisionTransformer` that shall differ, for
            example ``num_classes`` or ``image_size``.

    Returns:
        The model, in evaluation mode, with the device and number type of theirs; and a sentence
        for each part that was adapted.

    Raises:
        ValueError: Theirs computes something that ours cannot; a reason for each such part.
    """
    found = {"num_classes": 1000} | arguments_of(theirs)
    height, width = require.pair("image_size", found["image_size"])
    old_grid = height // found["patch_size"], width // found["patch_size"]
    first = next(theirs.parameters())
    with torch.device(first.device):
        ours = VisionTransformer(**(found | changes)).to(first.dtype)
    notes = load_weights(ours, theirs.state_dict(), old_grid=old_grid, channels=channels)
    return ours.eval(), notes


def arguments_of(theirs: nn.Module) -> dict[str, Any]:
    """The arguments of VisionTransformer that make the same model; no num_classes without a head.

    Raises:
        ValueError: None can; the message gives each reason.
    """
    kind = type(theirs)
    readers = {"timm": _of_timm, "torchvision": _of_torchvision, "transformers": _of_transformers}
    reader = readers.get(kind.__module__.split(".")[0])
    if reader is None:
        raise ValueError(
            f"theirs must be a model of timm, torchvision or transformers, got {kind.__name__}"
        )
    return reader(theirs)


def _of_timm(m: Any) -> dict[str, Any]:
    _refuse_if(m, _foreign_in_timm(m))
    block, patches = m.blocks[0], m.patch_embed
    D, hidden = m.embed_dim, block.mlp.fc1.out_features
    gelu = GELUS_OF_TIMM.get(type(block.mlp.act).__name__)
    places = {"tokens": m.norm, "pooled": m.fc_norm}
    found = [place for place, norm in places.items() if not isinstance(norm, nn.Identity)]
    arguments = {
        "image_size": patches.img_size,
        "patch_size": patches.patch_size[0],
        "in_channels": patches.proj.in_channels,
        "embed_dim": D,
        "depth": len(m.blocks),
        "num_heads": block.attn.num_heads,
        "mlp_ratio": (hidden + 0.5) / D,  # rounded down: hidden
        "pool": "cls" if m.global_pool == "token" else "mean",
        "positions": "none" if m.pos_embed is None else "learned",
        "qkv_bias": block.attn.qkv.bias is not None,
        "layer_scale": None if isinstance(block.ls1, nn.Identity) else 1.0,
        "class_token": m.cls_token is not None,
        "num_registers": m.num_reg_tokens,
        "pre_norm": not isinstance(m.norm_pre, nn.Identity),
        "final_norm": found[0] if found else "none",
        "norm_eps": block.norm1.eps,
        "gelu": gelu or {"none": "exact", "tanh": "tanh"}[block.mlp.act.approximate],
    }
    return arguments | ({"num_classes": m.num_classes} if isinstance(m.head, nn.Linear) else {})


def _foreign_in_timm(m: Any) -> list[str]:
    """What a model of timm computes that ours cannot."""
    if type(m).__name__ != "VisionTransformer":
        return ["it is no plain VisionTransformer"]
    block, patches = m.blocks[0], m.patch_embed
    if type(block).__name__ != "Block":
        return [OTHER_BLOCKS.get(type(block).__name__, "its blocks are of another kind")]
    attn, mlp = block.attn, block.mlp
    plain_gelu = type(mlp.act) is nn.GELU or type(mlp.act).__name__ in ("GELU", *GELUS_OF_TIMM)

    def has(module: nn.Module, name: str) -> bool:
        return not isinstance(getattr(module, name, None), (nn.Identity, type(None)))

    found = {
        f"its attention is {type(attn).__name__}": type(attn).__name__ != "Attention",
        "its attention normalizes queries and keys": has(attn, "q_norm"),
        "a norm or a gate stands within its attention": has(attn, "norm") or has(attn, "gate"),
        "its heads together are not as wide as a token": attn.qkv.out_features != 3 * m.embed_dim,
        "its MLP has a gate": type(mlp).__name__ != "Mlp",
        "a norm stands within its MLP": has(mlp, "norm"),
        f"its MLP has {type(mlp.act).__name__} for GELU": not plain_gelu,
        f"its norms are {type(block.norm1).__name__}": not isinstance(block.norm1, nn.LayerNorm),
        "its tokens are read by a layer of attention": has(m, "attn_pool"),
        f"its tokens are pooled as {m.global_pool!r}": m.attn_pool is None
        and m.global_pool not in ("token", "avg"),
        "its mean takes in the class token": m.attn_pool is None and m.pool_include_prefix,
        "its patches come from other layers": type(patches).__name__ != "PatchEmbed",
        "its patches pass a norm of their own": has(patches, "norm"),
    }
    return [sentence for sentence, is_so in found.items() if is_so]


def _of_torchvision(m: Any) -> dict[str, Any]:
    plain = type(m).__name__ == "VisionTransformer" and isinstance(m.conv_proj, nn.Conv2d)
    _refuse_if(m, [] if plain else ["it is no plain VisionTransformer"])
    return {
        "image_size": m.image_size,
        "patch_size": m.patch_size,
        "in_channels": m.conv_proj.in_channels,
        "num_classes": m.num_classes,
        "embed_dim": m.hidden_dim,
        "depth": len(m.encoder.layers),
        "num_heads": m.encoder.layers[0].num_heads,
        "mlp_ratio": (m.mlp_dim + 0.5) / m.hidden_dim,
        "norm_eps": m.encoder.ln.eps,
    }


def _of_transformers(m: Any) -> dict[str, Any]:
    config = getattr(m.config, "vision_config", m.config)
    kind = config.model_type
    known = ("vit", "dinov2", "dinov2_with_registers", "clip_vision_model")
    if kind not in known:
        _refuse_if(m, [f"its kind is {kind!r}, known are {', '.join(known)}"])
    D, act = config.hidden_size, config.hidden_act
    dino, clip = kind.startswith("dinov2"), kind.startswith("clip")
    wrong = [] if act in GELUS_OF_TRANSFORMERS else [f"its MLP has {act} for GELU"]
    if dino and config.use_swiglu_ffn:
        wrong.append("its MLP has a gate")
    _refuse_if(m, wrong)
    hidden = D * config.mlp_ratio if dino else config.intermediate_size
    arguments = {
        "image_size": config.image_size,
        "patch_size": config.patch_size,
        "in_channels": config.num_channels,
        "embed_dim": D,
        "depth": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "mlp_ratio": (int(hidden) + 0.5) / D,
        "qkv_bias": getattr(config, "qkv_bias", True),
        "layer_scale": 1.0 if dino else None,
        "num_registers": getattr(config, "num_register_tokens", 0),
        "pre_norm": clip,
        "norm_eps": config.layer_norm_eps,
        "gelu": GELUS_OF_TRANSFORMERS[act],
    }
    head = getattr(m, "classifier", getattr(m, "visual_projection", None))
    return arguments | ({"num_classes": head.out_features} if isinstance(head, nn.Linear) else {})


def _refuse_if(m: nn.Module, reasons: list[str]) -> None:
    if reasons:
        raise ValueError(f"{type(m).__name__} cannot be rebuilt: {'; '.join(reasons)}")
