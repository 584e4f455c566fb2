"""Ways to let a trained ViT compute less, each with a control that chooses badly.

All have the weights of the untouched model under the same names.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.efficient import LinearAttention, WindowAttention
from vitbook.layers.token_merging import ShrinkingEncoder, merge_tokens, prune_tokens
from vitbook.models.vit import VisionTransformer

WAYS = {  # what is done in every block
    "untouched": "nothing",
    "windows": "attention within windows of 4 x 4 patches, the class token apart",
    "random groups": "control: the same with 16 patches drawn at random in place of a window",
    "merging": "of the patches that are left, a sixth of those at the start are merged with "
    "similar ones",
    "random merging": "control: the same with partners drawn at random",
    "pruning": "as many patches are dropped, those that the class token looks at least",
    "random pruning": "control: as many patches are dropped, drawn at random",
    "linear": "phi(q) phi(k) in place of the softmax",
    "uniform": "control: every token takes the mean of all values",
}
WINDOW = 4
SHARE = 6  # one sixth of the patches goes in each block


class RandomGroups(WindowAttention):
    """Windows over patches that were shuffled, each layer in an order of its own."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.order = torch.randperm(self.grid[0] * self.grid[1]) + self.num_prefix
        self.order = torch.cat([torch.arange(self.num_prefix), self.order])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x[:, self.order], mask)[:, self.order.argsort()]


class Uniform(MultiHeadSelfAttention):
    """Every token takes the mean of the values."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        _, _, v = self.project(x)  # (B, h, N, d)
        mean = v.mean(dim=2, keepdim=True).expand_as(v)
        return self.proj(mean.transpose(1, 2).reshape(x.shape))


def random_merging(x: Tensor, size: Tensor, q: Tensor, k: Tensor, *, r: int) -> Any:
    return merge_tokens(x, size, q, torch.randn_like(k), r=r)


def random_pruning(x: Tensor, size: Tensor, q: Tensor, k: Tensor, *, r: int) -> Any:
    return prune_tokens(x, size, torch.randn_like(q), torch.randn_like(k), r=r)


def with_way(
    way: str, settings: dict, weights: dict[str, Tensor] | None = None, *, seed: int = 0
) -> VisionTransformer:
    """A model that goes one of the `WAYS`.

    Args:
        way: Its name.
        settings: Arguments of `VisionTransformer`; the model has a class token.
        weights: A trained state dict; without it they are random.
        seed: Of random groups and random weights.
    """
    torch.manual_seed(seed)
    side = settings["image_size"] // settings["patch_size"]
    windows: dict = {"grid": (side, side), "window": WINDOW}
    layers: dict[str, Any] = {
        "windows": partial(WindowAttention, **windows),
        "random groups": partial(RandomGroups, **windows),
        "linear": LinearAttention,
        "uniform": Uniform,
    }
    shrinks = {
        "merging": merge_tokens,
        "random merging": random_merging,
        "pruning": prune_tokens,
        "random pruning": random_pruning,
    }
    layer = layers.get(way, MultiHeadSelfAttention)
    model: Any = VisionTransformer(**settings, attn_layer=layer)
    if weights is not None:
        model.load_state_dict(weights)
    if way in shrinks:
        shrink = partial(shrinks[way], r=side * side // SHARE)
        model.encoder = ShrinkingEncoder(model.encoder, shrink)
    return model
