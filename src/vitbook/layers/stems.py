"""Other beginnings than a linear map of each patch: ConvMixer's, and a stack of convolutions."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.patches import PatchEmbedding


class NormedPatchEmbedding(PatchEmbedding):
    """Patches mapped to tokens, then GELU and a BatchNorm: how ConvMixer begins.

    Arguments as for :class:`~vitbook.layers.patches.PatchEmbedding`. While training, the BatchNorm
    takes mean and variance of each channel over all tokens of the batch; in evaluation mode it
    takes the running ones, so that images in a batch do not see each other.

    Source: Trockman and Kolter 2023, equation 1.
    """

    def __init__(self, **sizes: Any):
        super().__init__(**sizes)
        self.norm = nn.BatchNorm1d(self.proj.out_channels)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens (B, N, D)."""
        x = F.gelu(super().forward(images))  # (B, N, D)
        return self.norm(x.transpose(1, 2)).transpose(1, 2)  # (B, D, N) inside


class GridNorm(nn.BatchNorm1d):
    """A BatchNorm of each channel over all images and places: (B, D, rows, columns), same out.

    ``nn.BatchNorm2d`` says the same, but on the CPU torch 2.14 gives it a wrong gradient for a
    batch of one image when the gradient that comes in is laid out token by token.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        """Nothing to check: ``forward`` makes the shape, and a tracer cannot ask for it."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, D, rows, columns) -> (B, D, rows, columns)."""
        return super().forward(x.flatten(2)).unflatten(2, x.shape[2:])


class ConvStem(nn.Module):
    """Convolutions of 3 x 3 pixels, each of which halves height and width, instead of patches.

    For the patch size P = 2^k there are k of them, with a BatchNorm and a ReLU each; the width
    doubles up to D. A 1 x 1 convolution ends them. The grid is that of patches of P pixels, but
    what a token sees overlaps with what its neighbours see.

    Args:
        image_size, in_channels: As for :class:`~vitbook.layers.patches.PatchEmbedding`.
        patch_size: P, in pixels; a power of two that divides both.
        embed_dim: D, the width of a token; P / 2 must divide it.

    Source: Xiao et al. 2021, section 3.1 and appendix A (24, 48, 96 and 192 channels for D = 192).
    """

    def __init__(
        self,
        *,
        image_size: int | tuple[int, int],
        patch_size: int,
        in_channels: int,
        embed_dim: int,
    ):
        super().__init__()
        P, D = require.whole("patch_size", patch_size, 2), require.whole("embed_dim", embed_dim)
        if D % (P // 2):
            raise ValueError(f"embed_dim must be divisible by patch_size / 2 = {P // 2}, got {D}")
        self.patch_size = P
        self.set_image_size(require.pair("image_size", image_size))
        self.in_channels = width_in = require.whole("in_channels", in_channels)
        layers = []
        for i in reversed(range(P.bit_length() - 1)):  # D / 2^i channels, at last D
            conv = nn.Conv2d(width_in, D >> i, kernel_size=3, stride=2, padding=1, bias=False)
            layers += [conv, GridNorm(D >> i), nn.ReLU()]
            width_in = D >> i
        self.layers = nn.Sequential(*layers)
        self.proj = nn.Conv2d(D, D, kernel_size=1)

    def set_image_size(self, image_size: tuple[int, int]) -> None:
        """Take images of another size from now on; the weights are the same."""
        (H, W), P = image_size, self.patch_size
        if P & (P - 1) or H % P or W % P:
            raise ValueError(
                "patch_size must be a power of two for a convolutional stem, and divide the "
                f"image's height {H} and width {W}, got {P}"
            )
        self.image_size, self.grid = image_size, (H // P, W // P)
        self.num_patches = self.grid[0] * self.grid[1]

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens (B, N, D)."""
        require.images(images, self.in_channels, self.image_size)
        x = self.proj(self.layers(images))  # (B, D, H / P, W / P)
        return x.flatten(2).transpose(1, 2)  # (B, N, D)
