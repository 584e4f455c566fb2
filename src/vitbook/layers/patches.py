"""From an image to a sequence of patches, and back."""

from einops import rearrange
from torch import Tensor, nn

from vitbook import require


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into square patches and lay each patch out as one row.

    Args:
        images: (B, C, H, W), any number type.
        patch_size: P, in pixels; must divide H and W.

    Returns:
        Patches (B, N, C * P * P) with N = H / P * W / P, read row by row like a page. Within a
        row the order is channel, pixel row, pixel column: that of a convolution's weight.

    Raises:
        TypeError: Not a tensor, or a patch size that is no whole number.
        ValueError: Wrong number of axes, or sizes that P does not divide.

    Source: Dosovitskiy et al. 2021, section 3.1.
    """
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, got {type(images).__name__}")
    if images.ndim != 4:
        raise ValueError(f"images must have the axes (B, C, H, W), got {tuple(images.shape)}")
    rows, cols = _patch_grid(images.shape[2:], patch_size)
    return rearrange(
        images,
        "b c (rows p) (cols q) -> b (rows cols) (c p q)",
        rows=rows,
        cols=cols,
        p=patch_size,
        q=patch_size,
    )


def unpatchify(
    patches: Tensor, patch_size: int, image_size: int | tuple[int, int], channels: int
) -> Tensor:
    """Put the patches back where they came from; the inverse of :func:`patchify`.

    Args:
        patches: (B, N, C * P * P).
        patch_size: P, in pixels.
        image_size: Height and width in pixels; one number means a square.
        channels: C, the number of channels.

    Returns:
        Images (B, C, H, W).

    Raises:
        TypeError: Not a tensor, or a size that is no whole number.
        ValueError: N or the row length does not fit the image's size.
    """
    rows, cols = _patch_grid(require.pair("image_size", image_size), patch_size)
    channels = require.whole("channels", channels)
    if not isinstance(patches, Tensor):
        raise TypeError(f"patches must be a torch.Tensor, got {type(patches).__name__}")
    expected = (rows * cols, channels * patch_size**2)
    if patches.ndim != 3 or patches.shape[1:] != expected:
        raise ValueError(
            f"patches must have the shape (B, N, C * P * P) = (B, {expected[0]}, {expected[1]}), "
            f"got {tuple(patches.shape)}"
        )
    return rearrange(
        patches,
        "b (rows cols) (c p q) -> b c (rows p) (cols q)",
        rows=rows,
        cols=cols,
        c=channels,
        p=patch_size,
        q=patch_size,
    )


class PatchEmbedding(nn.Module):
    """Cut the image into patches and map each one linearly to a token.

    A convolution whose stride is its kernel size does both at once: it is ``patchify`` and a
    linear layer with the same weight, ``proj.weight.flatten(1)``.

    Args:
        image_size: Height and width in pixels; one number means a square.
        patch_size: P, in pixels; must divide both.
        in_channels: C, the number of channels.
        embed_dim: D, the width of a token.

    Source: Dosovitskiy et al. 2021, equation 1.
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
        self.image_size = require.pair("image_size", image_size)
        self.grid = _patch_grid(self.image_size, patch_size)  # (rows, columns) of patches
        self.num_patches = self.grid[0] * self.grid[1]
        self.patch_size = patch_size
        self.in_channels = C = require.whole("in_channels", in_channels)
        embed_dim = require.whole("embed_dim", embed_dim)
        self.proj = nn.Conv2d(C, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens (B, N, D)."""
        require.images(images, self.in_channels, self.image_size)
        x = self.proj(images)  # (B, D, H / P, W / P)
        return x.flatten(2).transpose(1, 2)  # (B, N, D)

    def set_image_size(self, image_size: tuple[int, int]) -> None:
        """Take images of another size from now on; the weights are the same."""
        self.grid = _patch_grid(image_size, self.patch_size)
        self.image_size, self.num_patches = image_size, self.grid[0] * self.grid[1]


def _patch_grid(image_size: tuple[int, ...], patch_size: int) -> tuple[int, int]:
    P = require.whole("patch_size", patch_size)
    H, W = image_size
    if H % P or W % P:
        raise ValueError(f"patch_size must divide the image's height {H} and width {W}, got {P}")
    return H // P, W // P
