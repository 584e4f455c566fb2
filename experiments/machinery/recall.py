"""What only the experiments on recall need; the task itself is the package's."""

from torch import nn

from experiments.machinery.baselines import linear
from vitbook.comparison.recall_task import PatchAnswers, answered, fit_recall
from vitbook.data.recall import COLORS, PARTNERS, PATCH, Recall, recall

__all__ = [
    "COLORS",
    "PARTNERS",
    "PATCH",
    "PatchAnswers",
    "Recall",
    "answered",
    "fit_recall",
    "recall",
]


def linear_answers(patches: int) -> nn.Module:
    """Logistic regression on all pixels, with an answer for every patch: logits (B, N, K)."""
    model = linear(patches * 3 * PATCH**2, patches * len(COLORS))
    return nn.Sequential(model, nn.Unflatten(1, (patches, len(COLORS))))
