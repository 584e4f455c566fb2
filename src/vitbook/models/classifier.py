"""What every classifier of this package shares: tokens, blocks, one vector that is read, a head."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.encoder import Encoder
from vitbook.layers.init import init_weights, truncated_normal_

# What the logits are read from: the class token, or the mean of the patches.
POOLS = ("cls", "mean")


class TokenClassifier(nn.Module):
    """An image classifier: an embedding makes tokens, blocks change them, one vector is read out.

    Args:
        patch_embed: Images (B, C, H, W) -> tokens (B, N, D); its ``grid`` is (rows, columns).
        blocks: Modules called as ``block(x, mask)``, in their order.
        norm: What follows the last block.
        embed_dim: D, the width of a token.
        num_classes: How many logits come out.
        pool: "cls" reads a class token that stands before the patches, "mean" averages them.
        positions: Added to the tokens before the first block; nothing, if not said.
        dropout: Share dropped after the positions.
        class_token: Whether there is a class token; if not said, where ``pool`` reads it.
        num_registers: How many tokens more stand between the class token and the patches.
        pre_norm: What follows the positions, before the first block; nothing, if not said.
        fc_norm: What follows the vector that is read, before the head; nothing, if not said.

    Source: for registers Darcet et al. 2024, section 2.2.
    """

    def __init__(
        self,
        *,
        patch_embed: nn.Module,
        blocks: Iterable[nn.Module],
        norm: nn.Module,
        embed_dim: int,
        num_classes: int,
        pool: str = "mean",
        positions: nn.Module | None = None,
        dropout: float = 0.0,
        class_token: bool | None = None,
        num_registers: int = 0,
        pre_norm: nn.Module | None = None,
        fc_norm: nn.Module | None = None,
    ):
        super().__init__()
        self.pool = require.one_of("pool", pool, POOLS)
        self.patch_embed: Any = require.module("patch_embed", patch_embed)
        with_class = (
            pool == "cls" if class_token is None else require.truth("class_token", class_token)
        )
        if pool == "cls" and not with_class:
            raise ValueError('class_token must be True where pool is "cls", got False')
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim)) if with_class else None
        R = require.whole("num_registers", num_registers, at_least=0)
        self.reg_token = nn.Parameter(torch.zeros(1, R, embed_dim)) if R else None
        self.positions = nn.Identity() if positions is None else positions
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        self.norm_pre = nn.Identity() if pre_norm is None else pre_norm
        self.encoder = Encoder(blocks, norm)
        self.fc_norm = nn.Identity() if fc_norm is None else fc_norm
        self.head = nn.Linear(embed_dim, require.whole("num_classes", num_classes))
        self.apply(init_weights)
        truncated_normal_(self.head.weight, std=0.02)  # at first all classes are equal
        if self.reg_token is not None:
            nn.init.normal_(self.reg_token, std=0.02)  # equal ones would stay equal

    @property
    def num_prefix(self) -> int:
        """How many tokens stand before the patches: the class token and the registers."""
        return sum(
            token.shape[1] for token in (self.cls_token, self.reg_token) if token is not None
        )

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D), class token first."""
        x = self.patch_embed(images)  # (B, N, D)
        for token in (self.reg_token, self.cls_token):
            if token is not None:
                x = torch.cat([token.expand(x.shape[0], -1, -1), x], dim=1)  # (B, N + 1, D)
        return self.norm_pre(self.dropout(self.positions(x)))

    def forward_features(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """Images (B, C, H, W) -> tokens after the last norm (B, N, D), class token first.

        A mask, broadcastable to (B, h, N, N) and True = may attend, holds in every block; blocks
        that do not attend refuse it.
        """
        return self.encoder(self.embed(images), mask)

    def forward_head(self, features: Tensor) -> Tensor:
        """Tokens (B, N, D) -> logits (B, num_classes)."""
        patches = features[:, self.num_prefix :]  # (B, N, D)
        x = features[:, 0] if self.pool == "cls" else patches.mean(dim=1)  # (B, D)
        return self.head(self.fc_norm(x))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(images))

    def set_image_size(self, image_size: int | tuple[int, int]) -> None:
        """Take images of another size from now on.

        A table of positions is stretched to the new grid, rotations and convolutions take it as it
        is; all other weights are the same. A table that is learned becomes a new parameter: make
        the optimizer afterwards.

        Args:
            image_size: Height and width in pixels; one number means a square.

        Raises:
            ValueError: P does not divide it, or a layer is tied to its grid; nothing is changed.

        Source: Dosovitskiy et al. 2021, section 3.2 (fine-tuning at higher resolution).
        """
        image_size, old = require.pair("image_size", image_size), self.patch_embed.grid
        tied = [module for module in self.modules() if getattr(module, "one_grid", None)]
        if tied and image_size != self.patch_embed.image_size:
            raise ValueError(
                f"image_size must stay {self.patch_embed.image_size}: {tied[0].one_grid}"
            )
        self.patch_embed.set_image_size(image_size)
        placed: list[Any] = [module for module in self.modules() if hasattr(module, "set_grid")]
        for module in placed:
            module.set_grid(old, self.patch_embed.grid, self.num_prefix)
