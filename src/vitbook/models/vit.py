"""The Vision Transformer classifier and its named sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import EncoderBlock
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import RotaryPositions, make_positions
from vitbook.models.classifier import POOLS, TokenClassifier

# Ti and S: Touvron et al. 2021 (DeiT), table 1. B, L and H: Dosovitskiy et al. 2021, table 1.
VIT_VARIANTS = {
    "Ti": {"embed_dim": 192, "depth": 12, "num_heads": 3},
    "S": {"embed_dim": 384, "depth": 12, "num_heads": 6},
    "B": {"embed_dim": 768, "depth": 12, "num_heads": 12},
    "L": {"embed_dim": 1024, "depth": 24, "num_heads": 16},
    "H": {"embed_dim": 1280, "depth": 32, "num_heads": 16},
}


class VisionTransformer(TokenClassifier):
    """An image classifier: patches become tokens, tokens are mixed, one vector is read out.

    The defaults are the published model's.

    Args:
        image_size: Height and width in pixels; one number means a square.
        patch_size: P, in pixels; must divide both.
        in_channels: C, the number of channels.
        num_classes: How many logits come out.
        embed_dim: D, the width of a token.
        depth: L, the number of blocks.
        num_heads: h; must divide embed_dim.
        mlp_ratio: Hidden width of the MLP over D.
        pool: "cls" reads a class token that stands before the patches, "mean" averages them.
        positions: "learned", "sincos_1d", "sincos_2d", "rotary" (on the grid) or "none".
        position_std: Standard deviation of the learned table at the start; 0.02, if not said.
        position_base: Base of the sin-cos or rotary angles; by default 10000, for "rotary" 100.
        centred_positions: Whether the mean row is taken off a sin-cos table; no, if not said.
        qkv_bias: Whether queries, keys and values have biases.
        norm_first: True for pre-norm blocks, False for post-norm.
        dropout: Share dropped after the positions, within the MLP and at the end of each branch.
        drop_path: Share of the images for which a branch of the last block is left out while
            training; it grows from 0 in the first block (Huang et al. 2016).
        layer_scale: Where the factor of each channel of a branch starts; None: there is none.
        class_token: Whether there is a class token; if not said, where ``pool`` reads it.
        num_registers: How many further tokens stand before the patches.
        pre_norm: Whether a norm follows the positions, before the first block (CLIP).
        final_norm: Where the last norm stands: after the "tokens", after the one vector that is
            "pooled" from them (timm's fc_norm), or "none"; by default "tokens" for pre-norm
            blocks and "none" for post-norm blocks.
        norm_eps: What the norms add to the variance; many models have 1e-5.
        gelu: "exact", or what the weights were trained with: "tanh" or "quick" (OpenAI's CLIP).
        attn_layer: Makes what mixes the tokens of one block; called as
            ``attn_layer(embed_dim=D, num_heads=h)``, with rotary positions with ``rotary=`` too,
            without biases with ``qkv_bias=False``. Bind further arguments with
            ``functools.partial``.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: Dosovitskiy et al. 2021, section 3.1.
    """

    def __init__(
        self,
        *,
        image_size: int | tuple[int, int],
        patch_size: int,
        in_channels: int,
        num_classes: int,
        embed_dim: int,
        depth: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        pool: str = "cls",
        positions: str = "learned",
        position_std: float | None = None,
        position_base: float | None = None,
        centred_positions: bool | None = None,
        qkv_bias: bool = True,
        norm_first: bool = True,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        layer_scale: float | None = None,
        class_token: bool | None = None,
        num_registers: int = 0,
        pre_norm: bool = False,
        final_norm: str | None = None,
        norm_eps: float = 1e-6,
        gelu: str = "exact",
        attn_layer: Callable[..., nn.Module] = MultiHeadSelfAttention,
    ):
        patch_embed = PatchEmbedding(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        grid = patch_embed.grid
        with_class = require.one_of("pool", pool, POOLS) == "cls" or bool(class_token)
        num_prefix = with_class + require.whole("num_registers", num_registers, at_least=0)
        table = make_positions(
            positions,
            grid=grid,
            embed_dim=embed_dim,
            num_prefix=num_prefix,
            std=position_std,
            base=position_base,
            centred=centred_positions,
        )
        if positions == "rotary":
            head_dim = embed_dim // require.whole("num_heads", num_heads)
            rotary = RotaryPositions(
                grid=grid, head_dim=head_dim, num_prefix=num_prefix, base=position_base
            )
            attn_layer = partial(attn_layer, rotary=rotary)
        if not require.truth("qkv_bias", qkv_bias):
            attn_layer = partial(attn_layer, qkv_bias=False)
        last, depth = require.fraction("drop_path", drop_path), require.whole("depth", depth)
        blocks = (
            EncoderBlock(
                embed_dim=embed_dim,
                attn=attn_layer(embed_dim=embed_dim, num_heads=num_heads),
                mlp_ratio=mlp_ratio,
                norm_first=norm_first,
                dropout=dropout,
                drop_path=last * i / max(1, depth - 1),
                layer_scale=layer_scale,
                norm_eps=norm_eps,
                gelu=gelu,
            )
            for i in range(depth)
        )
        if final_norm is None:
            final_norm = "tokens" if norm_first else "none"
        require.one_of("final_norm", final_norm, ("tokens", "pooled", "none"))
        layer_norm = partial(nn.LayerNorm, embed_dim, eps=norm_eps)
        super().__init__(
            patch_embed=patch_embed,
            blocks=blocks,
            norm=layer_norm() if final_norm == "tokens" else nn.Identity(),
            embed_dim=embed_dim,
            num_classes=num_classes,
            pool=pool,
            positions=table,
            dropout=dropout,
            class_token=class_token,
            num_registers=num_registers,
            pre_norm=layer_norm() if require.truth("pre_norm", pre_norm) else None,
            fc_norm=layer_norm() if final_norm == "pooled" else None,
        )


def vit(
    name: str,
    *,
    image_size: int | tuple[int, int] = 224,
    num_classes: int = 1000,
    **options: Any,
) -> VisionTransformer:
    """Build a Vision Transformer of a published size, with random weights.

    Args:
        name: Variant and patch size, for example "Ti/16", "B/32" or "H/14"; see ``VIT_VARIANTS``.
        image_size: Height and width in pixels; one number means a square.
        num_classes: How many logits come out.
        options: Further arguments of :class:`VisionTransformer`; they overrule the variant's.

    Returns:
        The :class:`VisionTransformer`; images have 3 channels unless ``in_channels`` says else.

    Raises:
        ValueError: No such variant, or no patch size in the name.
    """
    variant, _, patch_size = name.partition("/") if isinstance(name, str) else ("", "", "")
    if variant not in VIT_VARIANTS or not patch_size.isdecimal():
        known = ", ".join(VIT_VARIANTS)
        raise ValueError(f'name must be one of {known} and a patch size ("Ti/16"), got {name!r}')
    sizes = {"patch_size": int(patch_size), "in_channels": 3} | VIT_VARIANTS[variant]
    return VisionTransformer(image_size=image_size, num_classes=num_classes, **(sizes | options))
