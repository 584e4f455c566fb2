"""MLP-Mixer: tokens are mixed by an MLP across the patches, with weights for each position."""

from typing import Any

from torch import nn

from vitbook import require
from vitbook.layers.encoder import EncoderBlock
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.token_mixing import TokenMixing, default_token_dim
from vitbook.models.classifier import TokenClassifier, build_variant

# Tolstikhin et al. 2021, table 1. Their D_S and D_C are token_dim and mlp_ratio * embed_dim.
MIXER_VARIANTS = {
    "S": {"embed_dim": 512, "depth": 8, "token_dim": 256, "mlp_ratio": 4.0},
    "B": {"embed_dim": 768, "depth": 12, "token_dim": 384, "mlp_ratio": 4.0},
    "L": {"embed_dim": 1024, "depth": 24, "token_dim": 512, "mlp_ratio": 4.0},
    "H": {"embed_dim": 1280, "depth": 32, "token_dim": 640, "mlp_ratio": 4.0},
}


class MlpMixer(TokenClassifier):
    """The classifier of the paper: patches, blocks of two MLPs, a norm, the mean, a linear layer.

    There are no positions to add: the token mixing has a weight for each.

    Args:
        image_size, patch_size, in_channels, num_classes, embed_dim, depth: As for
            :class:`~vitbook.models.vit.VisionTransformer`.
        token_dim: Hidden width of the MLP along the tokens; by default D / 2, as in the paper.
        mlp_ratio: Hidden width of the MLP along the channels over D.
        dropout: Share dropped before the first block, within both MLPs and at the end of each
            branch.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: Tolstikhin et al. 2021, section 2.
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
        token_dim: int | None = None,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
    ):
        patch_embed = PatchEmbedding(
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        N = patch_embed.num_patches
        S = default_token_dim(embed_dim) if token_dim is None else token_dim
        blocks = (
            EncoderBlock(
                embed_dim=embed_dim,
                attn=TokenMixing(num_tokens=N, token_dim=S, dropout=dropout),
                mlp_ratio=mlp_ratio,
                dropout=dropout,
            )
            for _ in range(require.whole("depth", depth))
        )
        super().__init__(
            patch_embed=patch_embed,
            blocks=blocks,
            norm=nn.LayerNorm(embed_dim, eps=1e-6),
            embed_dim=embed_dim,
            num_classes=num_classes,
            dropout=dropout,
        )


def mlp_mixer(name: str, **options: Any) -> MlpMixer:
    """Build an MLP-Mixer of a published size, with random weights.

    Args:
        name: Variant and patch size, for example "S/16" or "B/32"; see ``MIXER_VARIANTS``.
        options: Further arguments, as for :func:`~vitbook.models.classifier.build_variant`.
    """
    return build_variant(MlpMixer, MIXER_VARIANTS, name, **options)
