"""``examine`` on models and loaders that are not ours, with faults that it was not written for.

Digits; the models are torch's and torchvision's. `test_examination.py` plants the others.
"""

from functools import cache, partial

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from vitbook.data import load_digits
from vitbook.training import examine

K = 10


@cache
def digits():
    """Images (n, 1, 8, 8) with mean 0 and standard deviation 1, and labels (n,)."""
    images, labels = load_digits("train")
    return (images - images.mean()) / images.std(), labels


class TorchViT(nn.Module):
    """nn.TransformerEncoder on patches, as its tutorial has it: post-norm, dropout 0.1."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 32)
        self.pos = nn.Parameter(torch.randn(1, 16, 32) * 0.5)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, K)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, images):
        patches = F.unfold(images, 2, stride=2).transpose(1, 2)  # (B, 16, 4)
        return self.head(self.encoder(self.embed(patches) + self.pos).mean(dim=1))


class SmallCNN(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d, drop=0.0):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), norm(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), norm(32), nn.ReLU())
        self.drop, self.head = nn.Dropout(drop), nn.Linear(32, K)

    def forward(self, images):
        x = F.max_pool2d(self.first(images), 2)
        return self.head(self.drop(self.second(x).mean(dim=(2, 3))))


class Unregistered(nn.Module):
    """Its layers are in a list, so the optimizer never hears of them."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(64, 64) for _ in range(2)]
        self.head = nn.Linear(64, K)

    def forward(self, images):
        x = images.flatten(1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def deep_sigmoids():
    """Twelve layers of sigmoids: the gradient vanishes."""
    layers = [nn.Flatten()]
    for _ in range(12):
        layers += [nn.Linear(64, 64), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(64, K))


def torchvision_vit():
    """torchvision's VisionTransformer, for three channels."""
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 64, "num_classes": K}
    return nn.Sequential(Repeat(), torchvision.models.VisionTransformer(8, 2, **sizes))


class WithFeatures(SmallCNN):
    """Returns logits and features, as many published models do."""

    def forward(self, images):
        return super().forward(images), images


class NoGrad(SmallCNN):
    """``forward`` was copied from the code for predictions."""

    @torch.no_grad()
    def forward(self, images):
        return super().forward(images)


class LogPixels(SmallCNN):
    """Takes the logarithm of normalised pixels, of which half are below zero."""

    def forward(self, images):
        return super().forward(images.log())


class Repeat(nn.Module):
    def forward(self, images):
        return images.repeat(1, 3, 1, 1)


def small_resnet():
    """torchvision's ResNet, one block for each width."""
    block = torchvision.models.resnet.BasicBlock
    resnet = torchvision.models.ResNet(block, [1, 1, 1, 1], num_classes=K)
    return nn.Sequential(Repeat(), nn.Upsample(scale_factor=4), resnet)


def loader(images, labels):
    return DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)


def paths_sorted_as_words():
    """Images in the order of their numbers, labels in that of their names "img_10", "img_2"."""
    images, labels = digits()
    order = sorted(range(len(labels)), key=lambda i: f"img_{i}")
    return loader(images, labels[torch.tensor(order)])


def one_folder():
    """The loader reads every image, and the label from the root folder's name."""
    images, labels = digits()
    return images, torch.zeros_like(labels)


def norm_that(**options):
    """A CNN whose norms have these options."""
    return lambda: SmallCNN(norm=partial(nn.BatchNorm2d, **options))


# A model, its data, and the trial that should name its fault; None where it is healthy.
PATIENTS = {
    "torch's encoder": (TorchViT, digits, None),
    "torchvision's ViT": (torchvision_vit, digits, None),
    "torchvision's ResNet": (small_resnet, digits, None),
    "a CNN with BatchNorm": (SmallCNN, digits, None),
    "a CNN with dropout": (lambda: SmallCNN(drop=0.2), lambda: loader(*digits()), None),
    "names sorted as words": (SmallCNN, paths_sorted_as_words, "labels belong to their images"),
    "one label for all images": (SmallCNN, one_folder, "labels are class numbers"),
    "logits and features": (WithFeatures, digits, "the model gives logits"),
    "logarithms of pixels": (LogPixels, digits, "the model gives logits"),
    "twelve sigmoids": (deep_sigmoids, digits, "the model gives logits"),
    "BatchNorm without running statistics": (
        norm_that(track_running_stats=False),
        digits,
        "the rest of the batch does not count",
    ),
    "BatchNorm that remembers nothing": (norm_that(momentum=0.0), digits, "evaluation mode agrees"),
    "no_grad over forward": (NoGrad, digits, "all weights move"),
    "layers in a list": (Unregistered, digits, "all weights move"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PATIENTS)
def test_what_is_named_first_is_the_fault_and_healthy_models_are_left_in_peace(name):
    torch.manual_seed(0)
    build, make, trial = PATIENTS[name]
    model, data = build(), make()
    given = data if isinstance(data, tuple) else (data,)
    found = examine(model, *given, updates=50, progress=False)
    named = [one.trial for one in found.findings if one.verdict != "fine"]
    assert named[:1] == ([trial] if trial else []), found
