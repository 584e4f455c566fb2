"""The clinic: twelve trained models, each with one fault, as black boxes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from vitbook import require
from vitbook.book.faults import FAULTS, ClinicViT, model_with
from vitbook.book.records import load_record
from vitbook.inspection import attention_maps

# Which patient has which: shuffled, so that a number says nothing.
PATIENTS = dict(
    enumerate((FAULTS[i] for i in (3, 8, 10, 1, 9, 4, 6, 0, 11, 5, 7, 2)), start=1),
)


@dataclass(frozen=True)
class Patient:
    """A trained model with a fault, as a black box with the record of its training.

    Args:
        number: From 1 on.
        weights: Its state dict.
        loss: Training loss, 100 means over equally many steps.
        accuracy: On the validation images, every 50 steps.
        test_accuracy: On the test images, at the end.
    """

    number: int
    weights: dict[str, Tensor] = field(repr=False)
    loss: list[float] = field(repr=False)
    accuracy: list[float] = field(repr=False)
    test_accuracy: float

    @torch.no_grad()
    def logits(self, images: Tensor) -> Tensor:
        """Pixels from 0 to 1, (B, 1, 24, 24) -> logits (B, 4), as the sick model gives them."""
        return self._model()(images)

    def maps(self, images: Tensor) -> Tensor:
        """Pixels (B, 1, 24, 24) -> the attention in use (L, B, h, N, N), class token first."""
        return attention_maps(self._model(), images, verify=False)  # a sick model is not refused

    def _model(self) -> ClinicViT:
        return model_with(self.weights, PATIENTS[self.number])


def load_patient(number: int) -> Patient:
    """A patient of the clinic.

    Args:
        number: 1 ... 12.

    Returns:
        The :class:`Patient`.
    """
    require.one_of("number", number, tuple(PATIENTS))
    fault, record = PATIENTS[number], load_record("clinic")
    loss, accuracy = (record.values(m, fault=fault)[0].tolist() for m in ("loss", "accuracy"))
    return Patient(
        number=number,
        weights=record.weights(f"patient_{number}"),
        loss=loss,
        accuracy=accuracy,
        test_accuracy=float(record.values("test_accuracy", fault=fault)[0]),
    )
