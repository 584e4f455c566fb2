"""What MLP-Mixer, ConvMixer and hybrids share: tokens, blocks, the mean of the tokens, a head."""

from collections.abc import Iterable

from torch import Tensor, nn

from vitbook import require
from vitbook.layers.encoder import Encoder
from vitbook.models.vit import _init_weights


class TokenClassifier(nn.Module):
    """An image classifier: an embedding makes tokens, blocks change them, their mean is read out.

    Args:
        patch_embed: Images (B, C, H, W) -> tokens (B, N, D); its ``grid`` is (rows, columns).
        blocks: Modules called as ``block(x, mask)``, in their order.
        norm: What follows the last block.
        embed_dim: D, the width of a token.
        num_classes: How many logits come out.
        positions: Added to the tokens before the first block; nothing, if not said.
        dropout: Share dropped after the positions.
    """

    num_prefix = 0  # there is no class token

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
        self.apply(_init_weights)  # as in the ViT: a layer keeps the size of its input
        nn.init.trunc_normal_(self.head.weight, std=0.02)  # at first all classes are equal

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D)."""
        return self.dropout(self.positions(self.patch_embed(images)))

    def forward_features(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """Images (B, C, H, W) -> tokens after the last norm (B, N, D).

        A mask, broadcastable to (B, h, N, N) and True = may attend, is for models in which every
        block attends; the others refuse it.
        """
        return self.encoder(self.embed(images), mask)

    def forward_head(self, features: Tensor) -> Tensor:
        """Tokens (B, N, D) -> logits (B, num_classes)."""
        require.tokens("features", features, self.head.in_features)
        return self.head(features.mean(dim=1))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(images))
