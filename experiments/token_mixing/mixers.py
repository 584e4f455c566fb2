"""Token mixers that are not in the package: two opponents of attention, in ten lines each."""

import torch.nn.functional as F
from torch import Tensor, nn


class Address(nn.Module):
    """Every token says by itself how much it reads from each place.

    The dense synthesizer of Tay et al. 2021, section 3.2: no keys.

    Args:
        embed_dim: D.
        num_tokens: N.
    """

    def __init__(self, embed_dim: int, num_tokens: int) -> None:
        super().__init__()
        self.address = nn.Linear(embed_dim, num_tokens)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        weights = self.address(x).softmax(dim=-1)  # (B, N, N)
        return self.proj(weights @ self.value(x))


class Gated(nn.Module):
    """One fixed matrix mixes all tokens, and each token gates what comes with a product.

    The spatial gating unit of gMLP, Liu et al. 2021, section 2.1; it begins as no mixing at all.

    Args:
        embed_dim: D.
        num_tokens: N.
    """

    def __init__(self, embed_dim: int, num_tokens: int) -> None:
        super().__init__()
        self.own = nn.Linear(embed_dim, embed_dim)
        self.others = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        self.mix = nn.Linear(num_tokens, num_tokens)
        self.proj = nn.Linear(embed_dim, embed_dim)
        nn.init.normal_(self.mix.weight, std=1e-3)
        nn.init.ones_(self.mix.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        others = self.norm(F.gelu(self.others(x))).transpose(1, 2)  # (B, D, N)
        return self.proj(F.gelu(self.own(x)) * self.mix(others).transpose(1, 2))
