"""What only the experiments on recall need; the task itself is the package's."""

from __future__ import annotations

from torch import Tensor, nn

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


class LinearAnswers(nn.Module):
    """Logistic regression on all pixels, with an answer for every patch."""

    def __init__(self, patches: int) -> None:
        super().__init__()
        self.patches = patches
        self.linear = nn.Linear(patches * 3 * PATCH**2, patches * len(COLORS))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> logits (B, N, K)."""
        return self.linear(images.flatten(1)).unflatten(1, (self.patches, len(COLORS)))
