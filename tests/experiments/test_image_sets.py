"""The 10,000 images: balanced, apart from the others, the same everywhere, missed aloud."""

import hashlib

import pytest
import torch

from experiments.machinery import image_sets
from experiments.machinery.image_sets import checksums, image_set
from vitbook.data import STATISTICS, load_torchvision
from vitbook.data.splits import some_of_each


@pytest.mark.parametrize("name", image_sets.NAMES)
def test_training_images_are_balanced_and_in_no_other_part(name, small_image_files):
    train, validation, test = (image_set(name, part) for part in image_sets.PARTS)
    assert train.images.shape == (200, 1, 28, 28)
    assert train.labels.bincount().tolist() == [20] * 10
    assert validation.labels.bincount().tolist() == [2] * 10
    assert len(test.labels) == 100
    rows = [{image.numpy().tobytes() for image in part.images} for part in (train, validation)]
    assert len(rows[0] | rows[1]) == 220


def test_the_two_sets_are_two_and_their_labels_belong_to_their_images(small_image_files):
    for name in image_sets.NAMES:
        raw = load_torchvision(name, small_image_files)
        label = dict(
            zip((i.numpy().tobytes() for i in raw.images), raw.labels.tolist(), strict=True)
        )
        mean, std = (values[0] for values in STATISTICS[name])
        images, labels = image_set(name, "train")
        pixels = ((images * std + mean) * 255).round().to(torch.uint8)
        assert [label[image.numpy().tobytes()] for image in pixels] == labels.tolist()
    first, second = checksums("mnist"), checksums("fashion-mnist")
    assert list(first) == ["mnist, train", "mnist, validation", "mnist, test"]
    assert not set(first.values()) & set(second.values())


def test_which_images_are_chosen_never_changes():
    places = some_of_each(torch.arange(54_000) * 7 % 10, 1000)
    assert len(places.unique()) == 10_000
    digest = hashlib.sha256(places.numpy().tobytes()).hexdigest()
    assert digest[:16] == "a5865763e5657d0d"


BAD_INPUT = [
    (lambda: image_set("cifar10", "train"), "not 'cifar10' with 'train'"),
    (lambda: image_set("mnist", "trainval"), "not 'mnist' with 'trainval'"),
    (lambda: some_of_each(torch.tensor([3, 3, 5]), 2), "class 5 has 1 images, 2 are needed"),
]


@pytest.mark.parametrize(("call", "words"), BAD_INPUT)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
