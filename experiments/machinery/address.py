"""A token mixer without keys: the dense synthesizer of Tay et al. 2021, in ten lines."""

from torch import Tensor, nn


class Address(nn.Module):
    """Every token says by itself how much it reads from each place.

    Args:
        embed_dim: D.
        num_tokens: N.
    """

    def __init__(self, embed_dim: int, num_tokens: int):
        super().__init__()
        self.address = nn.Linear(embed_dim, num_tokens)
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        weights = self.address(x).softmax(dim=-1)  # (B, N, N)
        return self.proj(weights @ self.value(x))
