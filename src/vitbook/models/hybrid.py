"""Hybrids: a stack whose every layer is chosen, and the controls as layers among them."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from vitbook import require
from vitbook.layers.ablations import NoMixing, UniformAttention
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import EncoderBlock
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import RotaryPositions, make_positions
from vitbook.layers.stems import ConvStem, NormedPatchEmbedding
from vitbook.layers.token_mixing import TokenMixing, default_token_dim
from vitbook.models.classifier import TokenClassifier
from vitbook.models.conv_mixer import ConvMixerBlock

LAYERS = ("attention", "mixer", "conv", "uniform", "none")
STEMS = {"patches": PatchEmbedding, "normed": NormedPatchEmbedding, "conv": ConvStem}


class Hybrid(TokenClassifier):
    """An image classifier whose layers are chosen one by one.

    - "attention" is a block of the ViT, "mixer" one of MLP-Mixer, "conv" one of ConvMixer;
    - "uniform" and "none" are blocks of the ViT in which every token listens to all tokens equally
      or to itself only: the controls.

    All layers alike give back the models themselves, tensor names included: attention the
    VisionTransformer with the mean as its pool; mixer without positions the MlpMixer; conv with the
    stem "normed" and without positions the ConvMixer.

    Args:
        image_size, patch_size, in_channels, num_classes, embed_dim: As for
            :class:`~vitbook.models.vit.VisionTransformer`.
        layers: One word for each layer, in their order; see ``LAYERS``.
        num_heads: h, where a layer is "attention"; must divide embed_dim.
        mlp_ratio: Hidden width of the MLP over D, in all layers but "conv".
        token_dim: Hidden width of the MLP along the tokens in "mixer" layers; by default D / 2.
        kernel_size: k, side of the neighbourhood in tokens where a layer is "conv".
        stem: "patches" as in ViT and Mixer, "normed" as in ConvMixer (GELU and BatchNorm after
            them) or "conv", a convolutional stem.
        positions, position_options: As for :class:`~vitbook.models.vit.VisionTransformer`, but not
            rotary: not every layer has queries and keys.
        dropout: Share dropped after the positions, within the MLPs and at the end of each branch;
            "conv" has none.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: parts of Dosovitskiy et al. 2021, Tolstikhin et al. 2021, Trockman and Kolter 2023; the
    convolutional stem before a ViT: Xiao et al. 2021.
    """

    def __init__(
        self,
        *,
        image_size: int | tuple[int, int],
        patch_size: int,
        in_channels: int,
        num_classes: int,
        embed_dim: int,
        layers: Sequence[str],
        num_heads: int | None = None,
        mlp_ratio: float = 4.0,
        token_dim: int | None = None,
        kernel_size: int = 5,
        stem: str = "patches",
        positions: str | Callable[..., nn.Module] = "learned",
        dropout: float = 0.0,
        **position_options: Any,
    ):
        layers = _require_layers(layers)
        patch_embed: Any = STEMS[require.one_of("stem", stem, tuple(STEMS))](
            image_size=image_size,
            patch_size=patch_size,
            in_channels=in_channels,
            embed_dim=embed_dim,
        )
        grid, N = patch_embed.grid, patch_embed.num_patches
        added = make_positions(
            positions, grid=grid, embed_dim=embed_dim, num_heads=num_heads, **position_options
        )
        if isinstance(added, RotaryPositions):
            raise ValueError("positions must be added to the tokens of a hybrid, got 'rotary'")
        S = default_token_dim(embed_dim) if token_dim is None else token_dim
        heads: Any = num_heads  # a layer that needs them refuses None
        mixing = {
            "attention": lambda: MultiHeadSelfAttention(embed_dim=embed_dim, num_heads=heads),
            "mixer": lambda: TokenMixing(num_tokens=N, token_dim=S, dropout=dropout),
            "uniform": lambda: UniformAttention(embed_dim=embed_dim),
            "none": lambda: NoMixing(embed_dim=embed_dim),
        }
        blocks = (
            ConvMixerBlock(embed_dim=embed_dim, grid=grid, kernel_size=kernel_size)
            if kind == "conv"
            else EncoderBlock(
                embed_dim=embed_dim, attn=mixing[kind](), mlp_ratio=mlp_ratio, dropout=dropout
            )
            for kind in layers
        )
        # a ConvMixer block ends with its own norm, the others leave the residual stream raw
        norm = nn.Identity() if layers[-1] == "conv" else nn.LayerNorm(embed_dim, eps=1e-6)
        super().__init__(
            patch_embed=patch_embed,
            positions=added,
            blocks=blocks,
            norm=norm,
            embed_dim=embed_dim,
            num_classes=num_classes,
            dropout=dropout,
        )
        self.layers = layers


def _require_layers(layers: Sequence[str]) -> tuple[str, ...]:
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        raise TypeError(f'layers must be a list such as ["mixer", "attention"], got {layers!r}')
    if not layers:
        raise ValueError("layers must name at least one layer, got none")
    return tuple(require.one_of(f"layers[{i}]", kind, LAYERS) for i, kind in enumerate(layers))
