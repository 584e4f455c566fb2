"""What a model costs: the numbers it holds and the multiplications it makes, counted in one way."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def count_parameters(*modules: nn.Module) -> int:
    """Numbers in the parameters of some modules together; one that is shared counts once.

    Args:
        modules: Any modules, on the ``meta`` device too.

    Raises:
        TypeError: Something else than a module.
    """
    for module in modules:
        if not isinstance(module, nn.Module):
            raise TypeError(f"modules must be torch.nn.Modules, got {type(module).__name__}")
    return sum({p: p.numel() for module in modules for p in module.parameters()}.values())


@torch.no_grad()
def count_multiplies(call: Callable[..., Any], *inputs: Any) -> int:
    """Multiplications in the matrix products and convolutions of a call.

    A multiplication and the addition after it are one multiply-add and count as one; that is two
    FLOPs. All else (softmax, norms, GELU, additions) is little beside them and is left out. Inside
    fused kernels the counter sees nothing, so attention runs as two products here, also that of
    ``nn.MultiheadAttention``.

    Args:
        call: A module or a function.
        inputs: What it is called with. On the ``meta`` device (tensors with a shape and no
            numbers; the module there too) nothing is computed, so that a large model costs nothing.

    Returns:
        The number for these inputs, of the whole batch, in the forward pass only.

    Raises:
        TypeError: It cannot be called.
    """
    if not callable(call):
        raise TypeError(f"call must be a module or a function, got {type(call).__name__}")
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            call(*inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    return counter.get_total_flops() // 2
