"""How good a model is."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.data.room import Images
from vitbook.training import processes
from vitbook.training.batches import batch, device_of, require_data


class Evaluation(NamedTuple):
    """Mean cross-entropy in nats, accuracy, and over how many images."""

    loss: float
    accuracy: float
    count: int  # type: ignore[assignment]  # tuples count too, but who counts in these three?


@torch.no_grad()
def evaluate(
    model: nn.Module, images: Images, labels: Tensor, *, batch_size: int = 500
) -> Evaluation:
    """Loss and accuracy of a model, in evaluation mode; its own mode comes back afterwards.

    Args:
        model: Images (B, C, H, W) -> logits (B, K).
        images: (n, C, H, W), float, or uint8 that stands for 0 ... 1.
        labels: Class numbers (n,).
        batch_size: Images at a time; changes nothing but memory and time.

    Returns:
        Evaluation(loss, accuracy, count).
    """
    require.whole("batch_size", batch_size)
    require_data(images, labels)
    was_training = model.training
    model.eval()
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        x, y = batch(model, images, labels, slice(start, start + batch_size))
        logits = model(x)  # (B, K)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=-1) == y).sum().item()
    model.train(was_training)
    return Evaluation(loss / len(labels), correct / len(labels), len(labels))


def evaluate_together(model: nn.Module, images: Images, labels: Tensor) -> Evaluation:
    """``evaluate``, each process on its part of the images."""
    rank, world = processes.rank(), processes.world()
    sums = torch.zeros(3, dtype=torch.float64)
    if rank < len(images):
        part = evaluate(model, images[rank::world], labels[rank::world])
        sums += torch.tensor([part.loss * part.count, part.accuracy * part.count, part.count])
    loss, correct, count = processes.total(sums.to(device_of(model))).tolist()
    return Evaluation(loss / count, correct / count, int(count))
