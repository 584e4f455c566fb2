"""Start from a trained model: other channels, other statistics, another image size, a new head."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.models.channels import KERNEL, adapt_channels, kernel_name
from vitbook.models.foreign import grid_of, state_dicts, take_ours
from vitbook.models.names import to_ours
from vitbook.models.weights import load_weights, read_weights, unwrapped

__all__ = ["adapt", "adapt_channels", "fold_normalization", "head_inputs"]
BIAS = "patch_embed.proj.bias"


def fold_normalization(
    weights: Mapping[str, Tensor], mean: Sequence[float], std: Sequence[float]
) -> dict[str, Tensor]:
    """Put (x - mean) / std into the patch embedding, so that it takes pixels in 0 ... 1.

    Args:
        weights: Tensors under our names, of a model that was trained on normalized images.
        mean, std: One number for each channel, as the images were normalized with.

    Returns:
        The tensors by name, with another patch kernel and another bias.

    Raises:
        TypeError: Not a mapping.
        ValueError: There is no patch kernel with a bias (a convolutional stem pads with zeros, so
            a mean cannot be folded into it), or the numbers do not fit its channels.
    """
    if kernel_name(weights) != KERNEL or BIAS not in weights:
        raise ValueError(f"weights must hold {KERNEL} and {BIAS}, and no convolutional stem")
    kernel = weights[KERNEL]
    offset, divisor = (torch.as_tensor(s).to(kernel) for s in (mean, std))
    for name, value in (("mean", offset), ("std", divisor)):
        if value.shape != kernel.shape[1:2] or not value.isfinite().all():
            raise ValueError(
                f"{name} must have one number for each of the {kernel.shape[1]} channels, "
                f"got {value.tolist()}"
            )
    if not (divisor > 0).all():
        raise ValueError(f"std must be positive, got {divisor.tolist()}")
    scaled = kernel / divisor[:, None, None]  # (D, C, P, P)
    lost = (scaled * offset[:, None, None]).sum(dim=(1, 2, 3))  # (D,)
    return {**weights, KERNEL: scaled, BIAS: weights[BIAS] - lost}


def adapt(
    model: nn.Module,
    weights: Mapping[str, Tensor] | str | os.PathLike,
    *,
    old_grid: tuple[int, int] | None = None,
    new_head: bool = True,
    channels: Sequence[int | Sequence[int] | None] | None = None,
) -> list[str]:
    """Start a model from the weights of another one that was trained on other images.

    What :func:`~vitbook.models.weights.load_weights` does (a table of positions is resampled,
    everything else has to fit), and two things more: the patch kernel is fitted to the model's
    channels, and the head stays the model's own even where the number of classes is the same.

    Args:
        model: A model built by this package for the new images and the new classes.
        weights: As for ``load_weights``.
        old_grid: (rows, columns) of patches the weights were trained on. Default: what the file
            says, else a square.
        new_head: Whether the model keeps its own head, as it was drawn.
        channels: What each channel of the weights sees of the model's images, as in
            :func:`~vitbook.models.channels.adapt_channels`.

    Returns:
        One sentence for each part that was adapted.

    Raises:
        FileNotFoundError: No such file.
        TypeError: The weights are neither a mapping nor a path.
        ValueError: Something else does not fit. The message names it.
    """
    if isinstance(weights, (str, os.PathLike)):
        weights, metadata = read_weights(weights)
        old_grid = old_grid or grid_of(metadata)
    parts: Any = unwrapped(model)
    own, taken = parts.state_dict(), list[str]()
    if found := dict(state_dicts(weights)):
        weights, taken = take_ours(found, own, "weights")
    weights = to_ours(weights)
    name = kernel_name(weights)
    if name not in own:
        raise ValueError(f"weights must fit the model: {name} is unknown to the model")
    wanted, known = own[name].shape[1], weights[name].shape[1]
    adapted, notes = adapt_channels(weights, wanted, channels), []
    if channels is not None:
        notes = [f"patch kernel fitted to {wanted} channels by the map {channels}"]
    elif known != wanted:
        how = "summed" if wanted == 1 else "shared out"
        notes = [f"patch kernel {how}: from {known} channels to {wanted}"]
    if require.truth("new_head", new_head):
        head = {f"head.{name}": tensor for name, tensor in parts.head.state_dict().items()}
        notes += [f"head drawn anew: {parts.head.out_features} classes"]
        adapted |= head
    return taken + notes + load_weights(model, adapted, old_grid=old_grid)


@torch.no_grad()
def head_inputs(model: nn.Module, images: Tensor, *, batch_size: int = 500) -> Tensor:
    """What the head of a model reads: the features for a linear probe.

    Args:
        model: With a linear layer called ``head``, as all classifiers of this package have.
        images: (n, C, H, W).
        batch_size: Images at a time; changes nothing but memory and time.

    Returns:
        (n, D), in evaluation mode; the mode the model was in comes back.
    """
    require.floats("images", images, "(n, C, H, W)")
    require.whole("batch_size", batch_size)
    head = getattr(model, "head", None)
    if not isinstance(head, nn.Linear):
        raise ValueError(f"model must have a linear layer called head, got {head!r} there")
    seen: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    was_training = model.training
    try:
        model.eval()
        for batch in images.split(batch_size):
            model(batch)
    finally:
        hook.remove()
        model.train(was_training)
    return torch.cat(seen)
