"""What deep models do to a branch before it is added: scale it, or leave it out at random."""

import torch
import torch.fx
from torch import Tensor, nn

from vitbook import require


class LayerScale(nn.Module):
    """Multiply each channel of a branch by a number that is learned and starts small.

    Args:
        embed_dim: D, the width of a token.
        init: Where all D numbers start, for example 1e-5.

    Source: Touvron et al. 2021 (CaiT), section 2.1.
    """

    def __init__(self, embed_dim: int, init: float):
        super().__init__()
        start = require.real("layer_scale", init, above=0)
        self.gamma = nn.Parameter(torch.full((require.whole("embed_dim", embed_dim),), start))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, D) -> (B, N, D)."""
        return x * self.gamma


class DropPath(nn.Module):
    """While training, leave a branch out for some images of a batch: stochastic depth.

    Kept branches are scaled by 1 / (1 - rate), so the expectation is unchanged.

    Args:
        rate: Probability of dropping the branch, per sample.

    Source: Huang et al. 2016, section 3.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = require.fraction("drop_path", rate)

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) -> (B, ...)."""
        return _drop_path(x, self.rate) if self.training else x


@torch.fx.wrap  # its draws depend on how many axes x has, which a tracer does not know
def _drop_path(x: Tensor, rate: float) -> Tensor:
    kept = torch.rand(len(x), *[1] * (x.ndim - 1), device=x.device) >= rate
    return x * kept / (1 - rate)
