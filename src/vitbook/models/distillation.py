"""Learn from labels and from what a trained teacher says about the same image."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require


def distillation_loss(
    student: Tensor,
    teacher: Tensor,
    labels: Tensor,
    *,
    share: float = 0.5,
    temperature: float = 2.0,
) -> Tensor:
    """A mix of two losses: against the labels, and against the soft answers of a teacher.

    Args:
        student: Logits (B, K).
        teacher: Logits (B, K) of the teacher; no gradient goes there.
        labels: Class numbers (B,).
        share: Weight of the teacher's part, 0 ... 1.
        temperature: Divides both logits in the teacher's part; above 1, the answers are softer, and
            the unlikely classes count for more. The part is multiplied by its square, so that its
            gradient keeps its size.

    Returns:
        The mean over the batch, ().

    Raises:
        TypeError: Logits that are no floating-point tensors.
        ValueError: Logits of different shapes, or a share or temperature out of range.

    Source: Hinton, Vinyals and Dean 2015, section 2.
    """
    require.floats("student", student, "(B, K)")
    require.floats("teacher", teacher, "(B, K)")
    if student.shape != teacher.shape:
        raise ValueError(
            f"teacher must have the student's shape {tuple(student.shape)}, "
            f"got {tuple(teacher.shape)}"
        )
    T, share = require.real("temperature", temperature, above=0), require.real("share", share)
    if not 0 <= share <= 1:
        raise ValueError(f"share must be at least 0 and at most 1, got {share}")
    told = (teacher.detach() / T).log_softmax(dim=-1)
    said = (student / T).log_softmax(dim=-1)
    soft = F.kl_div(said, told, log_target=True, reduction="batchmean")
    return (1 - share) * F.cross_entropy(student, labels) + share * T**2 * soft


class WithTeacher(nn.Module):
    """A student that hears its teacher on every training image, for ``train(loss_function=...)``.

    While training, it answers with two sets of logits, the student's and the teacher's, of the same
    images, augmented alike; in evaluation mode with the student's. Train it with a loss such as
    ``lambda both, labels: distillation_loss(*both, labels)`` and keep ``student``.

    Args:
        student: Images (B, C, H, W) -> logits (B, K); it is trained.
        teacher: The same, trained before. It is frozen here and stays in evaluation mode.
    """

    def __init__(self, student: nn.Module, teacher: nn.Module):
        super().__init__()
        self.student = require.module("student", student)
        self.teacher = require.module("teacher", teacher).requires_grad_(False).eval()

    def train(self, mode: bool = True) -> "WithTeacher":
        """As for every module, but the teacher stays as it is."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Images (B, C, H, W) -> logits (B, K); while training, of student and teacher."""
        if not self.training:
            return self.student(images)
        with torch.no_grad():
            told = self.teacher(images)
        return self.student(images), told
