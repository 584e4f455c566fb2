"""What deep models do to a branch before it is added: scale it, or leave it out at random."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from vitbook import require


def branch_end(
    embed_dim: int, *, dropout: float, drop_path: float, layer_scale: float | None
) -> nn.Sequential:
    """Dropout, then, where they are asked for, a factor for each channel and stochastic depth."""
    parts: OrderedDict[str, nn.Module] = OrderedDict()
    parts["dropout"] = nn.Dropout(require.fraction("dropout", dropout))
    if layer_scale is not None:
        parts["scale"] = LayerScale(embed_dim, layer_scale)
    if require.fraction("drop_path", drop_path) > 0:
        parts["drop_path"] = DropPath(drop_path)
    return nn.Sequential(parts)


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

    What is kept is divided by the share that is kept, so that the mean stays.

    Args:
        rate: Share of the images that lose the branch.

    Source: Huang et al. 2016, section 3.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = require.fraction("drop_path", rate)

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) -> (B, ...)."""
        if not self.training:
            return x
        kept = torch.rand(len(x), *[1] * (x.ndim - 1), device=x.device) >= self.rate
        return x * kept / (1 - self.rate)
