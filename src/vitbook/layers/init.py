"""How the weights of a model start."""

import math

import torch
from torch import Tensor, nn


@torch.no_grad()
def truncated_normal_(weight: Tensor, std: float) -> None:
    """Fill ``weight`` with normal numbers; those beyond -2 and 2 are drawn again.

    What ``nn.init.trunc_normal_`` does in torch 2.14. In torch 2.11 that draws other numbers from
    the same seed, and a model would start elsewhere.
    """
    weight.normal_(std=std)
    while not weight.is_meta and (beyond := weight.abs() > 2).any():
        weight.copy_(torch.where(beyond, torch.empty_like(weight).normal_(std=std), weight))


def init_weights(module: nn.Module) -> None:
    """Each linear layer keeps the size of its input (LeCun), at every width; biases are zero.

    For ``model.apply(init_weights)``. At D = 768 this is about what the paper's code does (Xavier,
    0.036); with the 0.02 of timm and DeiT a layer keeps about half of its input's size at that
    width, and a sixth at D = 64.
    """
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        truncated_normal_(module.weight, std=math.sqrt(1 / module.weight[0].numel()))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
