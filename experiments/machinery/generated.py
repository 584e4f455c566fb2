"""MNIST, Fashion-MNIST and CIFAR-10 with noise instead of images: small, made here, no download."""

import hashlib
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from torchvision.datasets import CIFAR10

from experiments.machinery import image_sets

PER_CLASS = {"train": 30, "t10k": 10}  # images in the files
LEARNED: dict = {
    "train": 20,
    "validation": 2,
}  # of a class, instead of the thousands of `image_sets`


@contextmanager
def generated_sets(folder: Path) -> Iterator[Path]:
    """Write the three sets in their real formats; inside the block the experiments read them.

    Without archives beside them the files of the first two are only checked for their length, and
    torchvision takes the checksums of the third for the right ones.
    """
    random = np.random.default_rng(0)
    for name in ("MNIST", "FashionMNIST"):
        raw = folder / name / "raw"
        raw.mkdir(parents=True)
        for part, per_class in PER_CLASS.items():
            labels = random.permutation(np.arange(10 * per_class) % 10)
            images = random.integers(0, 256, (len(labels), 28, 28))
            for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
                sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
                data = bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()
                (raw / f"{part}-{kind}-ubyte").write_bytes(data)
    lists = _write_cifar(folder / "cifar-10-batches-py", random)
    with (
        patch.dict(os.environ, VITBOOK_DATA=str(folder)),
        patch.dict(image_sets.PER_CLASS, LEARNED),
        patch.multiple(CIFAR10, **lists),
    ):
        yield folder


def _write_cifar(folder: Path, random: np.random.Generator) -> dict:
    """CIFAR-10 with as many images; returns what torchvision has to believe of the files."""
    contents: dict[str, dict] = {"batches.meta": {"label_names": list("abcdefghij")}}
    for name, per_class in (
        ("data_batch_1", PER_CLASS["train"]),
        ("test_batch", PER_CLASS["t10k"]),
    ):
        labels = random.permutation(np.arange(10 * per_class) % 10)
        images = random.integers(0, 256, (len(labels), 3 * 32 * 32), dtype=np.uint8)
        contents[name] = {"data": images, "labels": labels.tolist()}
    folder.mkdir()
    found = {}
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content))
        found[name] = hashlib.md5((folder / name).read_bytes()).hexdigest()
    meta = {"filename": "batches.meta", "key": "label_names", "md5": found.pop("batches.meta")}
    train, test = ([item] for item in found.items())
    return {"train_list": train, "test_list": test, "meta": meta}
