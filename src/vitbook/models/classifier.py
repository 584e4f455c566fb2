"""What the classifiers of this package share, and the plainest of them: it reads the mean."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from torch import Tensor, nn

from vitbook import require
from vitbook.layers.encoder import Encoder
from vitbook.layers.init import init_weights, truncated_normal_

_Model = TypeVar("_Model", bound=nn.Module)


class Resizable(nn.Module):
    """A model that can take images of another size."""

    patch_embed: Any  # its ``grid`` is (rows, columns) of patches
    positions: nn.Module
    num_prefix = 0  # tokens before the patches

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
        tied, kind = _tied(self), type(self.positions)
        if not (hasattr(kind, "set_grid") or kind is nn.Identity):
            tied = tied or f"{kind.__name__} has no set_grid(old, new, num_prefix)"
        if tied and image_size != self.patch_embed.image_size:
            raise ValueError(f"image_size must stay {self.patch_embed.image_size}: {tied}")
        self.patch_embed.set_image_size(image_size)
        placed: list[Any] = [module for module in self.modules() if hasattr(module, "set_grid")]
        for module in placed:
            module.set_grid(old, self.patch_embed.grid, self.num_prefix)


def _tied(model: nn.Module) -> str:
    """Why a model takes images of one size only; empty where it takes others."""
    reasons = (getattr(module, "one_grid", "") for module in model.modules())
    return next(filter(None, reasons), "")


class TokenClassifier(Resizable):
    """An image classifier: an embedding makes tokens, blocks change them, their mean is read.

    Args:
        patch_embed: Images (B, C, H, W) -> tokens (B, N, D); its ``grid`` is (rows, columns).
        blocks: Modules called as ``block(x, mask)``, in their order.
        norm: What follows the last block.
        embed_dim: D, the width of a token.
        num_classes: How many logits come out.
        positions: Added to the tokens before the first block; by default nothing.
        dropout: Share dropped after the positions.
    """

    def __init__(
        self,
        *,
        patch_embed: nn.Module,
        blocks: Iterable[nn.Module],
        norm: nn.Module,
        embed_dim: int,
        num_classes: int,
        positions: nn.Module | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.patch_embed = require.module("patch_embed", patch_embed)
        self.positions = nn.Identity() if positions is None else positions
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        self.encoder = Encoder(blocks, norm)
        self.head = nn.Linear(embed_dim, require.whole("num_classes", num_classes))
        self.tied = _tied(self)
        self.apply(init_weights)
        truncated_normal_(self.head.weight, std=0.02)  # at first all classes are equal

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D)."""
        if self.tied:
            first = self.patch_embed
            require.images(images, first.in_channels, first.image_size, self.tied)
        return self.dropout(self.positions(self.patch_embed(images)))

    def forward_features(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """Images (B, C, H, W) -> tokens after the last norm (B, N, D).

        A mask is for blocks that attend; others refuse it.
        """
        return self.encoder(self.embed(images), mask)

    def forward_head(self, features: Tensor) -> Tensor:
        """Tokens (B, N, D) -> logits (B, num_classes)."""
        return self.head(features.mean(dim=1))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(images))


def build_variant(
    model: Callable[..., _Model],
    variants: Mapping[str, Mapping[str, Any]],
    name: str,
    **options: Any,
) -> _Model:
    """Build a model of a published size, with random weights.

    Args:
        model: Its class.
        variants: The table of sizes.
        name: A row of it; where the rows say no patch size, it follows a slash ("Ti/16").
        options: Further arguments of the model; they overrule the row's. By default there are 224
            pixels a side, 3 channels and 1000 classes.

    Raises:
        ValueError: No such row, or no patch size in the name.
    """
    sizes: dict[str, Any] = {"image_size": 224, "in_channels": 3, "num_classes": 1000}
    row, _, patch_size = str(name).partition("/")
    if row in variants and patch_size.isdecimal():
        sizes |= {**variants[row], "patch_size": int(patch_size)}
    elif "patch_size" in (whole := variants.get(str(name), {})):
        sizes |= whole
    else:
        end = "" if "/" in (first := next(iter(variants))) else f' and a patch size ("{first}/16")'
        raise ValueError(f"name must be one of {', '.join(variants)}{end}, got {name!r}")
    return model(**(sizes | options))
