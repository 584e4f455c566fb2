"""ConvMixer: tokens are mixed with their neighbours on the grid, by convolutions."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.stems import GridNorm, NormedPatchEmbedding
from vitbook.models.classifier import TokenClassifier, build_variant

# Trockman and Kolter 2023, table 1; the last one is from the appendix. The weights that timm offers
# for 768/32 were trained with ReLU: they load, but this model has GELU, as the paper's equations.
CONV_MIXER_VARIANTS = {
    "1536/20": {"embed_dim": 1536, "depth": 20, "kernel_size": 9, "patch_size": 7},
    "768/32": {"embed_dim": 768, "depth": 32, "kernel_size": 7, "patch_size": 7},
    "1024/20": {"embed_dim": 1024, "depth": 20, "kernel_size": 9, "patch_size": 14},
}


class ConvMixerBlock(nn.Module):
    """Mix each channel over the neighbourhood of a token, then mix the channels of each token.

    Called as ``block(x, mask)`` like an ``EncoderBlock``, with tokens, which it lays out on their
    grid; no weight depends on the size of the grid. Only the first half is an addition to the
    residual stream. The BatchNorms follow the mode of the model: while training they take mean and
    variance over all tokens of the batch, in evaluation mode the running ones.

    Args:
        embed_dim: D, the width of a token.
        grid: (rows, columns) of the tokens.
        kernel_size: k, side of the neighbourhood in tokens; an odd number. Beyond the edge of the
            grid there are zeros.

    Source: Trockman and Kolter 2023, equations 2 and 3.
    """

    def __init__(self, *, embed_dim: int, grid: tuple[int, int], kernel_size: int):
        super().__init__()
        D, self.grid = require.whole("embed_dim", embed_dim), require.pair("grid", grid)
        k = require.whole("kernel_size", kernel_size)
        if k % 2 == 0:
            raise ValueError(f"kernel_size must be odd, so that it has a middle, got {k}")
        self.depthwise = nn.Conv2d(D, D, kernel_size=k, padding=k // 2, groups=D)
        self.norm1 = GridNorm(D)
        self.pointwise = nn.Conv2d(D, D, kernel_size=1)
        self.norm2 = GridNorm(D)

    def set_grid(self, old: tuple[int, int], new: tuple[int, int], num_prefix: int) -> None:
        """Lay the tokens out on another grid from now on."""
        self.grid = new

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        if mask is not None:
            raise ValueError("mask must be None: a convolution has one fixed weight per neighbour")
        rows, cols = self.grid
        x = require.num_tokens(x, rows * cols, f"the grid is {rows} x {cols}; set_grid changes it")
        x = x.transpose(1, 2).unflatten(2, self.grid)  # (B, D, rows, columns)
        x = x + self.norm1(F.gelu(self.depthwise(x)))
        x = self.norm2(F.gelu(self.pointwise(x)))
        return x.flatten(2).transpose(1, 2)  # (B, N, D)


class ConvMixer(TokenClassifier):
    """The classifier of the paper: patches, blocks of two convolutions, the mean, a linear layer.

    Its weights do not depend on the size of the images: ``set_image_size`` takes another.

    Args:
        image_size, patch_size, in_channels, num_classes, embed_dim, depth: As for
            :class:`~vitbook.models.vit.VisionTransformer`.
        kernel_size: k, side of the neighbourhood in tokens; an odd number.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: Trockman and Kolter 2023, section 2.
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
        kernel_size: int,
    ):
        patch_embed = NormedPatchEmbedding(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        blocks = (
            ConvMixerBlock(embed_dim=embed_dim, grid=patch_embed.grid, kernel_size=kernel_size)
            for _ in range(require.whole("depth", depth))
        )
        super().__init__(
            patch_embed=patch_embed,
            blocks=blocks,
            norm=nn.Identity(),  # the last block ends with a norm
            embed_dim=embed_dim,
            num_classes=num_classes,
        )


def conv_mixer(name: str, **options: Any) -> ConvMixer:
    """Build a ConvMixer of a published size, with random weights.

    Args:
        name: D/L, for example "768/32"; see ``CONV_MIXER_VARIANTS`` for kernel and patch size.
        options: Further arguments, as for :func:`~vitbook.models.classifier.build_variant`.
    """
    return build_variant(ConvMixer, CONV_MIXER_VARIANTS, name, **options)
