"""From a data set in memory to the batch a model takes."""

import torch
from torch import Tensor, nn

from vitbook.data.room import Images, NormalizedImages


def batch(
    model: nn.Module, images: Images, labels: Tensor, index: Tensor | slice
) -> tuple[Tensor, Tensor]:
    """Some images in float and their labels, on the device of the model."""
    device = device_of(model)
    x, y = images[index].to(device), labels[index].to(device)
    return (x if x.is_floating_point() else x.float() / 255), y


def device_of(model: nn.Module) -> torch.device:
    """Where a model is; the CPU if it has no parameters."""
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def require_data(images: Images, labels: Tensor, where: str = "", *, classes: bool = True) -> None:
    """Refuse what is not a data set, with a sentence; targets that are no classes may be floats."""
    if not isinstance(images, NormalizedImages) and (
        not isinstance(images, Tensor)
        or not (images.is_floating_point() or images.dtype == torch.uint8)
    ):
        kind = images.dtype if isinstance(images, Tensor) else type(images).__name__
        raise TypeError(f"{where}images must be a float or uint8 tensor, got {kind}")
    if len(images) == 0:
        raise ValueError(f"{where}images must not be empty")
    if not isinstance(labels, Tensor) or (classes and labels.is_floating_point()):
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        what = "class numbers" if classes else "targets"
        raise TypeError(f"{where}labels must be a tensor of {what}, got {kind}")
    if (labels.shape if classes else labels.shape[:1]) != images.shape[:1]:
        shape = f"({len(images)},)" if classes else f"({len(images)}, ...)"
        raise ValueError(
            f"{where}labels must have the shape {shape}, one for each image, "
            f"got {tuple(labels.shape)}"
        )
