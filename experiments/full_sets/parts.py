"""What makes training on whole data sets cheaper or better: a stem, fewer tokens, averages."""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.stems import ConvStem, GridNorm
from vitbook.models.weights import load_weights


class CoarseStem(ConvStem):
    """Two convolutions with a BatchNorm and a ReLU each, then a 1 x 1 one: 28 -> 14 -> 4 pixels.

    The 16 tokens have the grid of patches of 7, but each sees 11 x 11 pixels, and two neighbours
    share 5 columns or rows of them. In all else it is a `ConvStem`.

    Args:
        in_channels: C, the number of channels.
        embed_dim: D, the width of a token; an even number.
    """

    def __init__(self, *, in_channels: int, embed_dim: int) -> None:
        nn.Module.__init__(self)  # not ConvStem's: its layers are others
        self.in_channels = C = require.whole("in_channels", in_channels)
        D = require.whole("embed_dim", embed_dim)
        if D % 2:
            raise ValueError(f"embed_dim must be even, got {D}")
        self.image_size, self.patch_size, self.grid, self.num_patches = (28, 28), 7, (4, 4), 16
        self.layers = nn.Sequential(
            nn.Conv2d(C, D // 2, kernel_size=3, stride=2, padding=1, bias=False),  # 14 x 14
            GridNorm(D // 2),
            nn.ReLU(),
            nn.Conv2d(D // 2, D, kernel_size=5, stride=3, bias=False),  # 4 x 4
            GridNorm(D),
            nn.ReLU(),
        )
        self.proj = nn.Conv2d(D, D, kernel_size=1)


class KeepHalf(nn.Module):
    """While training, each image keeps a random half of its tokens; in the last steps, all.

    It stands where a model drops out after its positions, so that each kept token knows its place.

    Args:
        steps: How many forward passes in training mode drop tokens.
        prefix: How many tokens at the front are always kept, besides half of the others.

    Source: Liu et al. 2023 (PatchDropout), section 3.
    """

    seen: Tensor

    def __init__(self, steps: int, prefix: int = 0) -> None:
        super().__init__()
        self.steps, self.prefix = steps, prefix
        # not saved: the weights fit the same model without it
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N / 2, D); all of them in evaluation and at the end."""
        if not self.training or self.seen >= self.steps:
            return x
        self.seen += 1
        front, x = x[:, : self.prefix], x[:, self.prefix :]
        B, N, D = x.shape
        kept = torch.rand(B, N, device=x.device).argsort(dim=1)[:, : N // 2]  # (B, N / 2)
        return torch.cat([front, x.gather(1, kept[..., None].expand(-1, -1, D))], dim=1)


class Averaged(nn.Module):
    """A model, and a second one with the running average of its weights.

    In training mode `model` answers; in evaluation mode `average` does. The average moves at the
    start of each training step, so it lacks the very last one. Statistics of a BatchNorm are
    averaged like weights.

    Args:
        model: Any module; it is trained in place.
        decay: What the average keeps of itself in a step; less in the first ones.

    Source: Polyak and Juditsky 1992; with this decay, Szegedy et al. 2016, section 8.
    """

    seen: Tensor

    def __init__(self, model: nn.Module, decay: float = 0.999) -> None:
        super().__init__()
        self.model, self.decay = model, decay
        self.average = copy.deepcopy(model).requires_grad_(False)
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, K)."""
        if not self.training:
            return self.average(images)
        self._follow()
        return self.model(images)

    @torch.no_grad()
    def _follow(self) -> None:
        t = int(self.seen)
        keep = min(self.decay, (1 + t) / (10 + t))
        now = self.model.state_dict()
        for name, mean in self.average.state_dict().items():
            if mean.is_floating_point():
                mean.lerp_(now[name], 1 - keep)
            else:
                mean.copy_(now[name])
        self.seen += 1


@torch.no_grad()
def refined(large: Any, small: nn.Module) -> nn.Module:
    """The weights of a model with patches of 2 P pixels in a model with patches of P; returns it.

    The new kernel reads a small patch as the old one reads the same patch with each pixel twice as
    high and twice as wide. The table of positions is resampled to the finer grid.
    """
    weights = large.state_dict()
    kernel = weights["patch_embed.proj.weight"]  # (D, C, 2 P, 2 P)
    weights["patch_embed.proj.weight"] = F.avg_pool2d(kernel, 2, divisor_override=1)  # sums of four
    load_weights(small, weights, old_grid=large.patch_embed.grid)
    return small
