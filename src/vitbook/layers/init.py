"""How the weights of a model start."""

import math

from torch import nn


def init_weights(module: nn.Module) -> None:
    """Each linear layer keeps the size of its input (LeCun), at every width; biases are zero.

    For ``model.apply(init_weights)``. At D = 768 this is about what the paper's code does (Xavier,
    0.036); with the 0.02 of timm and DeiT a layer keeps about half of its input's size at that
    width, and a sixth at D = 64.
    """
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.trunc_normal_(module.weight, std=math.sqrt(1 / module.weight[0].numel()))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
