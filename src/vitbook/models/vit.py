"""The Vision Transformer classifier and its named sizes."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import Encoder, EncoderBlock
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import (
    FixedPositions,
    LearnedPositions,
    RotaryPositions,
    sincos_1d,
    sincos_2d,
)

# What the logits are read from: the class token, or the mean of the patches.
POOLS = ("cls", "mean")
# How a model is told where its tokens are.
POSITIONS = ("learned", "sincos_1d", "sincos_2d", "rotary", "none")

# Ti and S: Touvron et al. 2021 (DeiT), table 1. B, L and H: Dosovitskiy et al. 2021, table 1.
VIT_VARIANTS = {
    "Ti": {"embed_dim": 192, "depth": 12, "num_heads": 3},
    "S": {"embed_dim": 384, "depth": 12, "num_heads": 6},
    "B": {"embed_dim": 768, "depth": 12, "num_heads": 12},
    "L": {"embed_dim": 1024, "depth": 24, "num_heads": 16},
    "H": {"embed_dim": 1280, "depth": 32, "num_heads": 16},
}


class VisionTransformer(nn.Module):
    """An image classifier: patches become tokens, tokens are mixed, one vector is read out.

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
        position_base: Base of the sin-cos or rotary angles; by default 10000 for "sincos_1d", twice
            the longer side of the grid for "sincos_2d" (published: 10000), 100 for "rotary".
        centred_positions: Whether the mean row is taken off a sin-cos table; by default of
            "sincos_2d" only (published: of neither).
        norm_first: True for pre-norm blocks, False for post-norm.
        dropout: Share dropped after the positions, within the MLP and at the end of each branch.
        attn_layer: Makes what mixes the tokens of one block; called as
            ``attn_layer(embed_dim=D, num_heads=h)``, with rotary positions with ``rotary=`` too.
            Bind further arguments with ``functools.partial``.

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
        position_base: float | None = None,
        centred_positions: bool | None = None,
        norm_first: bool = True,
        dropout: float = 0.0,
        attn_layer: Callable[..., nn.Module] = MultiHeadSelfAttention,
    ):
        super().__init__()
        self.pool = require.one_of("pool", pool, POOLS)
        require.one_of("positions", positions, POSITIONS)
        self.patch_embed = PatchEmbedding(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if pool == "cls" else None
        grid, num_prefix = self.patch_embed.grid, self.num_prefix
        self.positions = _position_layer(
            positions, grid, num_prefix, embed_dim, position_base, centred_positions
        )
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        if positions == "rotary":
            head_dim = embed_dim // require.whole("num_heads", num_heads)
            rotary = RotaryPositions(
                grid=grid, head_dim=head_dim, num_prefix=num_prefix, base=position_base
            )
            attn_layer = partial(attn_layer, rotary=rotary)
        blocks = (
            EncoderBlock(
                embed_dim=embed_dim,
                attn=attn_layer(embed_dim=embed_dim, num_heads=num_heads),
                mlp_ratio=mlp_ratio,
                norm_first=norm_first,
                dropout=dropout,
            )
            for _ in range(require.whole("depth", depth))
        )
        norm = nn.LayerNorm(embed_dim, eps=1e-6) if norm_first else nn.Identity()
        self.encoder = Encoder(blocks, norm)
        self.head = nn.Linear(embed_dim, require.whole("num_classes", num_classes))
        self.apply(_init_weights)
        nn.init.trunc_normal_(self.head.weight, std=0.02)  # at first all classes are equal

    @property
    def num_prefix(self) -> int:
        """How many tokens stand before the patches: 1 with a class token, else 0."""
        return 0 if self.cls_token is None else 1

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D), class token first."""
        x = self.patch_embed(images)  # (B, N, D)
        if self.cls_token is not None:
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)  # (B, N + 1, D)
        return self.dropout(self.positions(x))

    def forward_features(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """Images (B, C, H, W) -> tokens after the last norm (B, N, D), class token first.

        The mask, broadcastable to (B, h, N, N) and True = may attend, holds in every block.
        """
        return self.encoder(self.embed(images), mask)

    def forward_head(self, features: Tensor) -> Tensor:
        """Tokens (B, N, D) -> logits (B, num_classes)."""
        require.tokens("features", features, self.head.in_features)
        x = features[:, 0] if self.pool == "cls" else features.mean(dim=1)  # (B, D)
        return self.head(x)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(images))


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


def _position_layer(
    positions: str,
    grid: tuple[int, int],
    num_prefix: int,
    embed_dim: int,
    base: float | None,
    centred: bool | None,
) -> nn.Module:
    if base is not None and positions in ("learned", "none"):
        raise ValueError(f"position_base must be left out, {positions!r} positions have none")
    asked = centred is not None and require.truth("centred_positions", centred)
    if asked and "sincos" not in positions:
        raise ValueError(f"centred_positions needs a sin-cos table, not positions {positions!r}")
    said = {"base": base, "centred": centred}
    given: Any = {name: value for name, value in said.items() if value is not None}
    num_patches = grid[0] * grid[1]
    if positions == "learned":
        return LearnedPositions(num_tokens=num_prefix + num_patches, embed_dim=embed_dim)
    if positions == "sincos_1d":
        table = sincos_1d(num_patches, embed_dim, **given)
        return FixedPositions(table, num_prefix=num_prefix)
    if positions == "sincos_2d":
        table = sincos_2d(grid, embed_dim, **given)
        return FixedPositions(table, num_prefix=num_prefix)
    return nn.Identity()  # "none", or "rotary", which works inside the attention layers


def _init_weights(module: nn.Module) -> None:
    """Each layer keeps the size of its input (LeCun), at every width.

    At D = 768 this is about what the paper's code does (Xavier, 0.036); with the 0.02 of
    timm and DeiT a layer keeps about half of its input's size at that width, and a sixth at D = 64.
    """
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.trunc_normal_(module.weight, std=math.sqrt(1 / module.weight[0].numel()))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
