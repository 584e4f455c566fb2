"""The Vision Transformer classifier and its named sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import Encoder, EncoderBlock
from vitbook.layers.init import init_weights, truncated_normal_
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import RotaryPositions, make_positions
from vitbook.models.classifier import Resizable, build_variant

# What the logits are read from: the class token, or the mean of the patches.
POOLS = ("cls", "mean")
# Ti and S: Touvron et al. 2021 (DeiT), table 1. B, L and H: Dosovitskiy et al. 2021, table 1.
VIT_VARIANTS = {
    "Ti": {"embed_dim": 192, "depth": 12, "num_heads": 3},
    "S": {"embed_dim": 384, "depth": 12, "num_heads": 6},
    "B": {"embed_dim": 768, "depth": 12, "num_heads": 12},
    "L": {"embed_dim": 1024, "depth": 24, "num_heads": 16},
    "H": {"embed_dim": 1280, "depth": 32, "num_heads": 16},
}


class VisionTransformer(Resizable):
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
        positions: "learned", "sincos_1d", "sincos_2d", "rotary" (on the grid) or "none"; or what
            makes another module, as in :func:`~vitbook.layers.positions.make_positions`.
        qkv_bias: Whether queries, keys and values have biases.
        norm_first: True for pre-norm blocks, False for post-norm.
        dropout: Share dropped after the positions, within the MLP and at the end of each branch.
        drop_path: Stochastic-depth rate of the last block; it grows from 0 in the first one
            (Huang et al. 2016).
        layer_scale: Where the factor of each channel of a branch starts; None: there is none.
        class_token: Whether there is a class token; by default where ``pool`` reads it.
        num_registers: Number of register tokens, inserted after the class token.
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
        position_options: Of the positions: ``position_std``, the standard deviation of a learned
            table at the start, 0.02 by default; ``position_base`` of sin-cos or rotary angles, by
            default 10000 and 100; ``centred_positions``, whether the mean row is taken off a
            sin-cos table.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: Dosovitskiy et al. 2021, section 3.1; for registers Darcet et al. 2024, section 2.2.
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
        positions: str | Callable[..., nn.Module] = "learned",
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
        **position_options: Any,
    ):
        super().__init__()
        self.pool = require.one_of("pool", pool, POOLS)
        with_class = pool == "cls"
        if class_token is not None:
            with_class = require.truth("class_token", class_token)
        if pool == "cls" and not with_class:
            raise ValueError('class_token must be True where pool is "cls", got False')
        R = require.whole("num_registers", num_registers, at_least=0)
        self.num_prefix = with_class + R
        self.patch_embed = PatchEmbedding(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if with_class else None
        self.reg_token = nn.Parameter(torch.zeros(1, R, embed_dim)) if R else None
        added = make_positions(
            positions,
            grid=self.patch_embed.grid,
            embed_dim=embed_dim,
            num_heads=num_heads,
            num_prefix=self.num_prefix,
            **position_options,
        )
        if isinstance(added, RotaryPositions):  # they turn queries and keys in each block
            attn_layer, added = partial(attn_layer, rotary=added), nn.Identity()
        if not require.truth("qkv_bias", qkv_bias):
            attn_layer = partial(attn_layer, qkv_bias=False)
        if final_norm is None:
            final_norm = "tokens" if norm_first else "none"
        require.one_of("final_norm", final_norm, ("tokens", "pooled", "none"))
        layer_norm = partial(nn.LayerNorm, embed_dim, eps=norm_eps)
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
        self.positions = added
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        self.norm_pre = layer_norm() if require.truth("pre_norm", pre_norm) else nn.Identity()
        self.encoder = Encoder(blocks, layer_norm() if final_norm == "tokens" else nn.Identity())
        self.fc_norm = layer_norm() if final_norm == "pooled" else nn.Identity()
        self.head = nn.Linear(embed_dim, require.whole("num_classes", num_classes))
        self.apply(init_weights)
        truncated_normal_(self.head.weight, std=0.02)  # at first all classes are equal
        if self.reg_token is not None:
            nn.init.normal_(self.reg_token, std=0.02)  # equal ones would stay equal

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D), class token first."""
        x = self.patch_embed(images)  # (B, patches, D)
        for token in (self.reg_token, self.cls_token):  # each goes before what is there
            if token is not None:
                x = torch.cat([token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.dropout(self.positions(x))  # (B, N, D)
        return self.norm_pre(x)

    def forward_features(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """Images (B, C, H, W) -> tokens after the last norm (B, N, D), class token first.

        A mask, broadcastable to (B, h, N, N) and True = may attend, holds in every block.
        """
        x = self.embed(images)  # (B, N, D)
        return self.encoder(x, mask)  # block after block, then the norm

    def forward_head(self, features: Tensor) -> Tensor:
        """Tokens (B, N, D) -> logits (B, num_classes)."""
        patches = features[:, self.num_prefix :]
        x = features[:, 0] if self.pool == "cls" else patches.mean(dim=1)  # (B, D)
        return self.head(self.fc_norm(x))  # (B, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(images))


def vit(name: str, **options: Any) -> VisionTransformer:
    """Build a Vision Transformer of a published size, with random weights.

    Args:
        name: Variant and patch size, for example "Ti/16", "B/32" or "H/14"; see ``VIT_VARIANTS``.
        options: Further arguments, as for :func:`~vitbook.models.classifier.build_variant`.
    """
    return build_variant(VisionTransformer, VIT_VARIANTS, name, **options)
