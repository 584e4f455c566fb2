"""``examine`` on models and loaders that are not ours, with faults that it was not written for.

The faults were planted, and the trial that should name each was written down, before anything of
``examine`` but its signature and its table of trials had been read. Digits; the models are torch's
and torchvision's.
"""

from dataclasses import dataclass
from functools import cache

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


def cut(images):
    """(B, 1, 8, 8) -> patches of 2 x 2 pixels (B, 16, 4)."""
    return F.unfold(images, 2, stride=2).transpose(1, 2)


class TorchViT(nn.Module):
    """nn.TransformerEncoder on patches, as its tutorial has it: post-norm, dropout 0.1."""

    def __init__(self, batch_first=True, positions=True, std=0.02, frozen=False, ends=None):
        super().__init__()
        self.embed = nn.Linear(4, 32)
        self.pos = nn.Parameter(torch.randn(1, 16, 32) * 0.5) if positions else None
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, K)
        nn.init.normal_(self.head.weight, std=std)
        self.ends = ends or nn.Identity()
        if frozen:
            self.requires_grad_(False)

    def forward(self, images):
        x = self.embed(cut(images))
        if self.pos is not None:
            x = x + self.pos
        return self.ends(self.head(self.encoder(x).mean(dim=1)))


class SoftmaxOverTheBatch(TorchViT):
    """Attention of one head by hand, with the softmax over the first axis, that of the images."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Identity()
        self.qkv = nn.Linear(32, 96)

    def forward(self, images):
        x = self.embed(cut(images)) + self.pos
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        x = x + (q @ k.mT / 32**0.5).softmax(dim=0) @ v
        return self.head(x.mean(dim=1))


class SmallCNN(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d, drop=0.0, always=False, ends=None, detach=False):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), norm(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), norm(32), nn.ReLU())
        self.head = nn.Linear(32, K)
        self.drop, self.always, self.detach = drop, always, detach
        self.ends = ends or nn.Identity()

    def forward(self, images):
        x = F.max_pool2d(self.first(images), 2)
        x = self.second(x).mean(dim=(2, 3))
        if self.detach:  # `with torch.no_grad()` from the fine-tuning tutorial
            x = x.detach()
        x = F.dropout(x, self.drop, training=self.training or self.always)
        return self.ends(self.head(x))


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
    vit = torchvision.models.VisionTransformer(
        image_size=8,
        patch_size=2,
        num_layers=2,
        num_heads=4,
        hidden_dim=32,
        mlp_dim=64,
        num_classes=K,
    )
    return nn.Sequential(Repeat(), vit)


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
    resnet = torchvision.models.ResNet(
        torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=K
    )
    return nn.Sequential(Repeat(), nn.Upsample(scale_factor=4), resnet)


def with_old_head():
    """The optimizer was made before the head was exchanged for one of ten classes."""
    model = SmallCNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.head = nn.Linear(32, K)
    return model, optimizer


def with_rate(rate):
    model = SmallCNN()
    return model, torch.optim.Adam(model.parameters(), lr=rate)


def loader(images, labels, shuffle=True):
    return DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=shuffle)


def sorted_by_class():
    """As ImageFolder lists them, with shuffle=True forgotten."""
    images, labels = digits()
    order = labels.argsort(stable=True)
    return loader(images[order], labels[order], shuffle=False)


def paths_sorted_as_words():
    """Images in the order of their numbers, labels in that of their names "img_10", "img_2"."""
    images, labels = digits()
    order = sorted(range(len(labels)), key=lambda i: f"img_{i}")
    return loader(images, labels[torch.tensor(order)])


def one_image_again_and_again():
    """A dataset whose __getitem__ forgets its index, but not for the labels."""
    images, labels = digits()
    return loader(images[:1].expand(len(images), -1, -1, -1), labels)


def from_one_to_ten():
    images, labels = digits()
    return images, labels + 1


def one_hot():
    images, labels = digits()
    return images, F.one_hot(labels, K).float()


def one_folder():
    """The loader reads every image, and the label from the root folder's name."""
    images, labels = digits()
    return images, torch.zeros_like(labels)


def as_bytes():
    images, labels = load_digits("train")
    return 255 * images, labels


@dataclass(frozen=True)
class Patient:
    """A model, its data, and the trial that should name its fault; None where it is healthy."""

    model: object
    trial: str | None
    data: object = digits
    updates: int = 50


PATIENTS = {
    # healthy
    "torch's encoder": Patient(TorchViT, None),
    "torchvision's ViT": Patient(torchvision_vit, None),
    "torchvision's ResNet": Patient(small_resnet, None),
    "a CNN with BatchNorm": Patient(SmallCNN, None),
    "a CNN with dropout, from a loader": Patient(
        lambda: SmallCNN(drop=0.2), None, lambda: loader(*digits())
    ),
    # the data
    "raw bytes as floats": Patient(SmallCNN, "pixels are scaled", as_bytes),
    "labels from 1": Patient(SmallCNN, "labels are class numbers", from_one_to_ten),
    "one image for all labels": Patient(
        SmallCNN, "each image once, with one label", one_image_again_and_again
    ),
    "names sorted as words": Patient(
        SmallCNN, "labels belong to their images", paths_sorted_as_words
    ),
    "one-hot labels": Patient(SmallCNN, "labels are class numbers", one_hot),
    "one label for all images": Patient(SmallCNN, "labels are class numbers", one_folder),
    "sorted by class": Patient(SmallCNN, "batches are shuffled", sorted_by_class),
    # the model
    "logits and features": Patient(WithFeatures, "the model gives logits"),
    "logarithms of pixels": Patient(LogPixels, "the model gives logits"),
    "batch_first forgotten": Patient(
        lambda: TorchViT(batch_first=False), "the rest of the batch does not count"
    ),
    "softmax over the images": Patient(SoftmaxOverTheBatch, "the rest of the batch does not count"),
    "BatchNorm without running statistics": Patient(
        lambda: SmallCNN(norm=lambda n: nn.BatchNorm2d(n, track_running_stats=False)),
        "the rest of the batch does not count",
    ),
    "BatchNorm that remembers nothing": Patient(
        lambda: SmallCNN(norm=lambda n: nn.BatchNorm2d(n, momentum=0.0)),
        "evaluation mode agrees",
    ),
    "a softmax at the end": Patient(
        lambda: TorchViT(ends=nn.Softmax(dim=-1)), "the model gives logits"
    ),
    "a sigmoid at the end": Patient(lambda: SmallCNN(ends=nn.Sigmoid()), "the model gives logits"),
    "a ReLU at the end": Patient(lambda: SmallCNN(ends=nn.ReLU()), "the model gives logits"),
    "a head that is sure": Patient(lambda: TorchViT(std=5.0), "first loss"),
    "dropout in every mode": Patient(
        lambda: SmallCNN(drop=0.5, always=True), "the same answer twice"
    ),
    "no positions": Patient(lambda: TorchViT(positions=False), "places count", updates=100),
    # learning
    "all frozen": Patient(lambda: TorchViT(frozen=True), "all weights move"),
    "no_grad over forward": Patient(NoGrad, "all weights move"),
    "a rate of 3": Patient(lambda: with_rate(3.0), "the learning rate suits"),
    "a rate of 1e-7": Patient(lambda: with_rate(1e-7), "the learning rate suits"),
    "a detached trunk": Patient(lambda: SmallCNN(detach=True), "all weights move"),
    "an optimizer of the old head": Patient(with_old_head, "the optimizer has all weights"),
    "layers in a list": Patient(Unregistered, "all weights move"),
    "twelve sigmoids": Patient(deep_sigmoids, "the model gives logits"),
}


def examined(patient):
    torch.manual_seed(0)
    options = {"updates": patient.updates, "progress": False}
    model, data = patient.model(), patient.data()
    if isinstance(model, tuple):
        model, options["optimizer"] = model
    return examine(model, *(data if isinstance(data, tuple) else (data,)), **options)


SOME = list(PATIENTS)[1::3]  # of each kind


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SOME else pytest.mark.deep) for n in PATIENTS]
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch's, of batch_first=False
def test_what_is_named_first_is_the_fault_and_healthy_models_are_left_in_peace(name):
    found = examined(PATIENTS[name])
    named = [one.trial for one in found.findings if one.verdict != "fine"]
    assert named[:1] == ([PATIENTS[name].trial] if PATIENTS[name].trial else []), found
