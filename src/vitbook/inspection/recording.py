"""Record attention weights while a model runs, without changing what it computes.

``forward`` keeps its fused kernel; the weights are worked out a second time, on the side, from the
very inputs the layer saw.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the attention weights of one forward pass inside a ``with`` block.

    Every layer that has a method ``attention_weights`` is watched. After the layer ran, that method
    is called with the same inputs, without gradients and without dropout. Logits, gradients and
    random numbers stay the same, bit for bit; the hooks are gone when the block ends, also after
    an error.

    Args:
        model: Any module. It is called by you, once, inside the block.

    Yields:
        A dict, filled while the model runs, layer name -> weights (B, h, N, N), detached, in the
        order in which the layers ran.

    Raises:
        TypeError: ``model`` is no module.
        ValueError: ``model`` has no layer with ``attention_weights``.
        RuntimeError: Nothing was recorded, or a layer ran twice.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    layers = {
        name: layer
        for name, layer in model.named_modules()
        if callable(getattr(layer, "attention_weights", None))
    }
    if not layers:
        raise ValueError(
            f"model ({type(model).__name__}) has no layer with a method attention_weights, so "
            "there is nothing to record; vitbook's attention layers have one"
        )
    maps: dict[str, Tensor] = {}
    handles = [_watch(name, layer, maps) for name, layer in layers.items()]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
    if not maps:
        raise RuntimeError(
            "nothing was recorded: call the model inside the with block. A compiled model skips "
            "hooks; record the model that was compiled instead"
        )


def _watch(name: str, layer: nn.Module, maps: dict[str, Tensor]) -> RemovableHandle:
    def hook(layer: Any, args: tuple, kwargs: dict, output: Any) -> None:
        if name in maps:
            raise RuntimeError(
                f"layer {name!r} ran twice inside one record_attention block; "
                "use one block for each forward pass"
            )
        with torch.no_grad():
            maps[name] = layer.attention_weights(*args, **kwargs)

    return layer.register_forward_hook(hook, with_kwargs=True)


def attention_maps(model: nn.Module, images: Tensor) -> Tensor:
    """The attention weights of all layers and heads for a batch of images.

    The model runs once, in evaluation mode and without gradients; afterwards each of its modules
    is in the mode it was in before.

    Args:
        model: A model whose attention layers all see the same N tokens.
        images: What the model takes, for a ViT (B, C, H, W).

    Returns:
        The weights (L, B, h, N, N); ``maps[l, b, i, q]`` is the row of query q, how much it takes
        from each token.

    Raises:
        TypeError: ``images`` is no tensor.
        ValueError: The layers' maps differ in shape, so that they cannot be stacked.
        RuntimeError: Some layer did not run.
    """
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, got {type(images).__name__}")
    with torch.no_grad(), record_attention(model) as maps:
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            model(images)
        finally:
            for module in training:
                module.training = True
    shapes = {name: tuple(weights.shape) for name, weights in maps.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(
            f"model has maps of different shapes, {shapes}; stack those that belong together "
            "after record_attention(model)"
        )
    return torch.stack(list(maps.values()))  # (L, B, h, N, N)
