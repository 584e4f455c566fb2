"""A small ViT, and twelve faults that raise no error.

Ten of them are layers with one thing changed. A sick layer has the weights of the healthy one, by
the same names: so a patient's weights also fit the healthy model, and a model with any other fault.
The other two are faults of the training; their models are healthy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.encoder import EncoderBlock
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.positions import LearnedPositions
from vitbook.models.vit import VisionTransformer

SIZES: dict[str, Any] = {
    "image_size": 24,
    "patch_size": 8,
    "in_channels": 1,
    "num_classes": 4,
    "embed_dim": 32,
    "depth": 2,
    "num_heads": 2,
    "mlp_ratio": 2.0,
    "position_std": 0.5,
    "dropout": 0.1,
}
# Mean of the pixels of pointer images, of 0 to 1.
MEAN = 0.17
# Their standard deviation.
STD = 0.33
_Model = TypeVar("_Model", bound=nn.Module)


class ClinicViT(VisionTransformer):
    """The healthy model: it takes pixels from 0 to 1 and normalises them itself."""

    def normalized(self, images: Tensor) -> Tensor:
        """Pixels from 0 to 1 -> about mean 0 and standard deviation 1."""
        return (images - MEAN) / STD

    def embed(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> tokens before the first block (B, N, D), class token first."""
        return super().embed(self.normalized(images))


class _NormalizedTwice(ClinicViT):
    def normalized(self, images: Tensor) -> Tensor:
        once = super().normalized(images)
        return once if self.training else super().normalized(once)


class _NeverInEvaluationMode(ClinicViT):
    def train(self, mode: bool = True) -> _NeverInEvaluationMode:
        return super().train(True)


class _LastTokenRead(ClinicViT):
    def forward_head(self, features: Tensor) -> Tensor:
        return self.head(features[:, -1])


class _PatchesByReshape(PatchEmbedding):
    def forward(self, images: Tensor) -> Tensor:
        patches = images.reshape(len(images), self.num_patches, -1)  # (B, N, C * P * P)
        return F.linear(patches, self.proj.weight.flatten(1), self.proj.bias)


class _PositionsMissing(LearnedPositions):
    def forward(self, x: Tensor) -> Tensor:
        return x


class _PositionsTwice(LearnedPositions):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(super().forward(x))


class _NoResidual(EncoderBlock):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.drop_path1(self.ls1(self.dropout(self.attn(self.norm1(x), mask))))
        return self.drop_path2(self.ls2(self.dropout(self.mlp(self.norm2(x)))))


class _HeadsByView(MultiHeadSelfAttention):
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (B, N, _), h, d = x.shape, self.num_heads, self.head_dim
        q, k, v = (part.reshape(B, h, N, d) for part in self.qkv(x).chunk(3, dim=-1))
        return q, k, v


class _WrittenOut(MultiHeadSelfAttention):
    """Attention that uses its own ``attention_weights``, so that they can be wrong."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        out = self.attention_weights(x) @ self.project(x)[2]  # (B, h, N, d)
        return self.proj(out.transpose(1, 2).flatten(2))  # (B, N, D)


class _SoftmaxOverQueries(_WrittenOut):
    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, _ = self.project(x)
        return (q @ k.mT / math.sqrt(self.head_dim)).softmax(dim=-2)


class _NotScaled(_WrittenOut):
    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, _ = self.project(x)
        return (q @ k.mT).softmax(dim=-1)


# Faults of a layer: what is wrong, and the layer that has it.
LAYERS: dict[str, type[nn.Module]] = {
    "softmax over the queries": _SoftmaxOverQueries,
    "heads split by view alone": _HeadsByView,
    "scores not divided by sqrt(d)": _NotScaled,
    "positions missing": _PositionsMissing,
    "positions added twice": _PositionsTwice,
    "no residual around the MLP": _NoResidual,
    "patches cut by reshape alone": _PatchesByReshape,
    "last token read as class token": _LastTokenRead,
    "never in evaluation mode": _NeverInEvaluationMode,
    "normalised twice in tests": _NormalizedTwice,
}
# Faults of the training: the model is healthy.
LABELS, SCHEDULE = "labels shuffled in a quarter of batches", "schedule stepped once per epoch"
# All twelve of the clinic.
FAULTS = (*LAYERS, LABELS, SCHEDULE)


def with_fault(model: _Model, fault: str) -> _Model:
    """Give a healthy model a fault, in place: sick layers with the weights that are there.

    Args:
        model: What is to fall ill: a :class:`ClinicViT`, or one block of it.
        fault: One of ``FAULTS``. A fault of the training leaves the model healthy.

    Returns:
        The same model.
    """
    sick = LAYERS.get(require.one_of("fault", fault, FAULTS))
    for module in model.modules():
        if sick is not None and type(module) in sick.__mro__:
            module.__class__ = sick
    return model


def model_with(weights: Mapping[str, Tensor], fault: str | None = None) -> ClinicViT:
    """The healthy model with these weights, or one with a fault; in evaluation mode."""
    model = ClinicViT(**SIZES)
    model.load_state_dict(weights)
    return (model if fault is None else with_fault(model, fault)).eval()
