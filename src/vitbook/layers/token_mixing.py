"""MLP-Mixer's way of mixing tokens: an MLP across the patches, with weights for each position."""

from torch import Tensor, nn

from vitbook import require
from vitbook.layers.encoder import MLP

# why a Mixer takes one size of images only, and what helps
TIED = (
    "token mixing is tied to its number of patches; scale the images to the size the model "
    "was built for, or build and train one for this size"
)


class TokenMixing(nn.Module):
    """One MLP along the tokens, the same for every channel; it fits ``EncoderBlock(attn=...)``.

    Its matrices have one row or column per token: the weights know where a patch stands, and fit
    no other N. There is no mask.

    Args:
        num_tokens: N, the number of tokens.
        token_dim: Hidden width of the MLP, D_S in the paper.
        dropout: Dropout rate of the hidden values, while training.

    Source: Tolstikhin et al. 2021, equation 1, first line.
    """

    one_grid = TIED

    def __init__(self, *, num_tokens: int, token_dim: int, dropout: float = 0.0):
        super().__init__()
        self.num_tokens = require.whole("num_tokens", num_tokens)
        token_dim = require.whole("token_dim", token_dim)
        self.mlp = MLP(embed_dim=num_tokens, hidden_dim=token_dim, dropout=dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        if mask is not None:
            raise ValueError("mask must be None: token mixing has one fixed weight for each place")
        x = require.num_tokens(x, self.num_tokens, TIED)
        return self.mlp(x.transpose(1, 2)).transpose(1, 2)  # (B, D, N) inside


def default_token_dim(embed_dim: int) -> int:
    """The width of the token mixing that goes with a width of the tokens in the paper: D / 2."""
    return max(1, require.whole("embed_dim", embed_dim) // 2)
