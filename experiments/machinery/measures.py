"""What several experiments measure: sizes, cost, thinned curves, calibration."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook.models.cost import count_multiplies, count_parameters

BINS = 15  # of confidence, as Guo et al. 2017
POINTS = 100  # of a curve


parameters = count_parameters  # as the records name it


def multiplies(model: nn.Module, images: Tensor) -> int:
    """Multiplications of one image's way through a model."""
    return count_multiplies(model, images[:1])


def thin(values: list[float], points: int = POINTS) -> list[float]:
    """A long curve as about that many means over stretches of equal length."""
    width = max(1, len(values) // points)
    return [
        round(mean, 5) for mean in torch.tensor(values).unfold(0, width, width).mean(1).tolist()
    ]


ANSWERS = {  # what `answers` measures
    "test_loss": "mean cross-entropy on them, in nats",
    "calibration_error": "expected calibration error on them: mean distance between confidence "
    f"and accuracy, {BINS} even bins",
    "reliability": "for each bin of confidence: answers, sum of their confidences, right ones",
    "confusion": "test images by class (rows) and answer (columns)",
}


@torch.no_grad()
def probabilities(model: nn.Module, images: Tensor) -> Tensor:
    """What a model gives each class, (n, K), in double precision."""
    return torch.cat([model(x).double().softmax(dim=-1) for x in images.split(500)])


def reliability(given: Tensor, labels: Tensor) -> list[list[float]]:
    """For each bin of confidence: how many answers, the sum of their confidences, how many right.

    Args:
        given: Probabilities (n, K). The confidence of an answer is the largest of its row.
        labels: Class numbers (n,).

    Returns:
        A table (BINS, 3); the bins divide 0 ... 1 evenly.
    """
    confidence, answers = given.max(dim=-1)  # (n,), (n,)
    places = (confidence * BINS).long().clamp(max=BINS - 1)
    columns = (torch.ones_like(confidence), confidence, (answers == labels).to(given.dtype))
    sums = torch.stack([torch.bincount(places, c, minlength=BINS) for c in columns], dim=1)
    return [[round(value, 4) for value in row] for row in sums.tolist()]


def answers(given: Tensor, labels: Tensor) -> dict:
    """What the probabilities (n, K) of test images say."""
    table, chosen, K = reliability(given, labels), given.argmax(dim=-1), given.shape[1]
    return {
        "test_accuracy": (chosen == labels).double().mean().item(),
        "test_loss": F.nll_loss(given.log(), labels).item(),
        "calibration_error": calibration_error(table),
        "reliability": table,
        "confusion": torch.bincount(labels * K + chosen, minlength=K**2).view(K, K).tolist(),
    }


def calibration_error(table: list[list[float]]) -> float:
    """Mean distance of confidence and accuracy over the bins, each weighted by its answers.

    Args:
        table: What `reliability` returns.

    Source: Guo et al. 2017, equation 3.
    """
    return sum(abs(sure - right) for _, sure, right in table) / sum(row[0] for row in table)
