"""A model of timm, torchvision or transformers as one of this package: the same, but readable."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.inspection.recording import evaluated
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
    verify: bool = True,
    **changes: Any,
) -> tuple[VisionTransformer, list[str]]:
    """Build the same Vision Transformer in this package and give it the same weights.

    Names and shapes do not tell the number of heads, the eps of the norms or which GELU; these are
    read off the model, in every block. Then both models run on noise, and have to give the same.

    Args:
        theirs: A ``VisionTransformer`` of timm or torchvision, or a ViT, DINOv2 (with registers
            too) or CLIP vision model of transformers.
        channels: As in :func:`~vitbook.models.weights.load_weights`; say ``in_channels`` too.
        verify: Whether both run on noise, with theirs as it is, before anything is changed. Without
            it, equal names, shapes and settings have to do.
        changes: Arguments of :class:`~vitbook.models.vit.VisionTransformer` that shall differ, for
            example ``num_classes`` or ``image_size``.

    Returns:
        The model, in evaluation mode, with the device and number type of theirs; and a sentence
        for each part that was adapted.

    Raises:
        ValueError: Theirs computes something that ours cannot; a reason for each such part. Or on
            noise the two differ; by how much.
    """
    found = {"num_classes": 1000} | arguments_of(theirs)
    height, width = require.pair("image_size", found["image_size"])
    old_grid = height // found["patch_size"], width // found["patch_size"]
    ours, notes = _built(theirs, found | changes, old_grid=old_grid, channels=channels)
    if verify:
        same = (ours, notes)
        if changes or channels:
            same = _built(theirs, found, old_grid=old_grid)
        headed = not any(note.startswith("head ") for note in same[1])
        _require_equal(theirs, same[0], (found["in_channels"], height, width), headed)
    return ours, notes


def _built(theirs: nn.Module, arguments: dict, **how: Any) -> tuple[VisionTransformer, list[str]]:
    first = next(theirs.parameters())
    with torch.device(first.device):
        ours = VisionTransformer(**arguments).to(first.dtype)
    return ours.eval(), load_weights(ours, theirs.state_dict(), **how)


@torch.no_grad()
def _require_equal(
    theirs: Any, ours: VisionTransformer, size: tuple[int, ...], headed: bool
) -> None:
    """Both give the same for two images of noise: the logits, or what a head would read."""
    first = next(theirs.parameters())
    noise = torch.randn(2, *size, generator=torch.Generator().manual_seed(0)).to(first)
    part = getattr(theirs, "vision_model", theirs) if hasattr(theirs, "text_model") else theirs
    part = part if headed else getattr(part, "base_model", part)  # of transformers
    with evaluated(theirs):
        try:
            said = part(noise)
        except Exception as error:  # of a model of anybody
            name, said = type(theirs).__name__, shorten(str(error), 200, placeholder=" ...")
            raise ValueError(f"{name} refuses images of {tuple(noise.shape)}: {said}") from error
    said = list(said.values()) if isinstance(said, dict) else [said]
    tokens = ours.forward_features(noise)
    read: list[Tensor] = []
    handle = ours.head.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    logits = ours.forward_head(tokens)
    handle.remove()
    known = [*read, tokens, *[logits] * headed]
    pairs = [(a, b) for a in said for b in known if isinstance(a, Tensor) and a.shape == b.shape]
    gaps = [float((a - b).abs().max() / a.abs().max()) for a, b in pairs]
    if not gaps:
        name = type(theirs).__name__
        raise ValueError(f"{name} gives nothing that could be compared; verify=False skips it")
    if min(gaps) > min(max(1000 * torch.finfo(first.dtype).eps, 1e-8), 0.05):
        raise ValueError(
            f"{type(theirs).__name__} cannot be rebuilt: with the same weights, on noise, the "
            f"answers differ by {min(gaps):.2g} of the largest; it computes something that is in "
            "none of its settings, or a hook changes it"
        )


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
    _refuse_if(theirs, _no_linear(theirs))
    try:
        return reader(theirs)
    except AttributeError as error:
        raise ValueError(f"{kind.__name__} cannot be rebuilt: it lacks a part ({error})") from None


def _no_linear(m: nn.Module) -> list[str]:
    """Its linear layers that are more than their weights, or less: LoRA, quantized."""
    kinds = {type(x) for x in m.modules() if type(x).__name__.endswith("Linear")}
    other = sorted(f"{x.__module__}.{x.__name__}" for x in kinds if not issubclass(x, nn.Linear))
    return [f"a linear layer is {name}: merge it, or give the model of before" for name in other]


def _of_timm(m: Any) -> dict[str, Any]:
    if type(m).__name__ != "VisionTransformer":
        _refuse_if(m, ["it is no plain VisionTransformer"])
    _refuse_if(m, [why for block in m.blocks for why in _foreign_block(block, m.embed_dim)])
    _refuse_if(m, _foreign_in_timm(m))
    D, patches = m.embed_dim, m.patch_embed
    places = {"tokens": m.norm, "pooled": m.fc_norm}
    found = [place for place, norm in places.items() if not isinstance(norm, nn.Identity)]
    arguments = {
        "image_size": patches.img_size,
        "patch_size": patches.patch_size[0],
        "in_channels": patches.proj.in_channels,
        "embed_dim": D,
        "depth": len(m.blocks),
        "pool": "cls" if m.global_pool == "token" else "mean",
        "positions": "none" if m.pos_embed is None else "learned",
        "class_token": m.cls_token is not None,
        "num_registers": m.num_reg_tokens,
        "pre_norm": not isinstance(m.norm_pre, nn.Identity),
        "final_norm": found[0] if found else "none",
        "norm_eps": _one_eps(m),
    }
    arguments |= _alike(m, [_of_block(block, D) for block in m.blocks])
    return arguments | _classes(m.head)


def _of_block(block: Any, D: int) -> dict[str, Any]:
    gelu = GELUS_OF_TIMM.get(type(block.mlp.act).__name__)
    return {
        "num_heads": block.attn.num_heads,
        "mlp_ratio": (block.mlp.fc1.out_features + 0.5) / D,  # rounded down: hidden
        "qkv_bias": block.attn.qkv.bias is not None,
        "layer_scale": None if isinstance(block.ls1, nn.Identity) else 1.0,
        "gelu": gelu or {"none": "exact", "tanh": "tanh"}[block.mlp.act.approximate],
    }


def _alike(m: nn.Module, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """What holds for every block."""
    differ = {name for found in blocks for name in found if found[name] != blocks[0][name]}
    _refuse_if(m, [f"its blocks differ in {', '.join(sorted(differ))}"] if differ else [])
    return blocks[0]


def _one_eps(m: nn.Module) -> float:
    """The eps of every norm."""
    found = {norm.eps for norm in m.modules() if isinstance(norm, nn.LayerNorm)}
    _refuse_if(m, [] if len(found) == 1 else [f"its norms have the eps {sorted(found)}"])
    return found.pop()


def _has(module: nn.Module, name: str) -> bool:
    return not isinstance(getattr(module, name, None), (nn.Identity, type(None)))


def _foreign_block(block: Any, D: int) -> list[str]:
    """What a block of timm computes that ours cannot."""
    if type(block).__name__ != "Block":
        return [OTHER_BLOCKS.get(type(block).__name__, "its blocks are of another kind")]
    attn, mlp = block.attn, block.mlp
    if type(attn).__name__ != "Attention":
        return [f"its attention is {type(attn).__name__}"]
    if type(mlp).__name__ != "Mlp":
        return ["its MLP has a gate"]
    layers = [attn.qkv, attn.proj, mlp.fc1, mlp.fc2]
    if other := [type(layer).__name__ for layer in layers if type(layer) is not nn.Linear]:
        return [f"a linear layer of its blocks is {other[0]}"]
    plain_gelu = type(mlp.act) is nn.GELU or type(mlp.act).__name__ in ("GELU", *GELUS_OF_TIMM)
    found = {
        "its attention normalizes queries and keys": _has(attn, "q_norm"),
        "a norm or a gate stands within its attention": _has(attn, "norm") or _has(attn, "gate"),
        "its heads together are not as wide as a token": attn.qkv.out_features != 3 * D,
        "a norm stands within its MLP": _has(mlp, "norm"),
        f"its MLP has {type(mlp.act).__name__} for GELU": not plain_gelu,
        f"its norms are {type(block.norm1).__name__}": not isinstance(block.norm1, nn.LayerNorm),
    }
    return [sentence for sentence, is_so in found.items() if is_so]


def _foreign_in_timm(m: Any) -> list[str]:
    """What a model of timm computes round its blocks that ours cannot."""
    found = {
        "its tokens are read by a layer of attention": _has(m, "attn_pool"),
        f"its tokens are pooled as {m.global_pool!r}": m.attn_pool is None
        and m.global_pool not in ("token", "avg"),
        "its mean takes in the class token": m.attn_pool is None and m.pool_include_prefix,
        "its patches come from other layers": type(m.patch_embed).__name__ != "PatchEmbed",
        "its patches pass a norm of their own": _has(m.patch_embed, "norm"),
    }
    return [sentence for sentence, is_so in found.items() if is_so]


def _of_torchvision(m: Any) -> dict[str, Any]:
    plain = type(m).__name__ == "VisionTransformer" and isinstance(m.conv_proj, nn.Conv2d)
    _refuse_if(m, [] if plain else ["it is no plain VisionTransformer"])
    arguments = {
        "image_size": m.image_size,
        "patch_size": m.patch_size,
        "in_channels": m.conv_proj.in_channels,
        "embed_dim": m.hidden_dim,
        "depth": len(m.encoder.layers),
        "norm_eps": _one_eps(m),
    }
    blocks = [
        {
            "num_heads": layer.self_attention.num_heads,
            "mlp_ratio": (layer.mlp[0].out_features + 0.5) / m.hidden_dim,
        }
        for layer in m.encoder.layers
    ]
    return arguments | _alike(m, blocks) | _classes(getattr(m.heads, "head", None))


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
    return arguments | _classes(getattr(m, "classifier", getattr(m, "visual_projection", None)))


def _classes(head: Any) -> dict[str, int]:
    """How many numbers a head gives, which its model may not say where it was replaced."""
    return {"num_classes": head.out_features} if isinstance(head, nn.Linear) else {}


def _refuse_if(m: nn.Module, reasons: list[str]) -> None:
    if reasons:
        said = "; ".join(dict.fromkeys(reasons))
        raise ValueError(f"{type(m).__name__} cannot be rebuilt: {said}")
