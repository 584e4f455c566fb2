"""The 10,000 images: balanced, apart from the others, the same everywhere, missed aloud."""

import hashlib
import subprocess

import pytest
import torch
from toys import ROOT, command

from experiments.machinery import image_sets
from experiments.machinery.image_sets import checksums, image_set
from vitbook.data import STATISTICS, load_torchvision
from vitbook.data.splits import some_of_each

SCRIPT = """
from experiments.machinery.experiment import Experiment, Outcome
from experiments.machinery.image_sets import image_set

def run(condition, seed, log, scale):
    images, labels = image_set("fashion-mnist", "train", 0.02 * scale)
    return Outcome({"count": len(images), "classes": len(labels.unique())})

EXPERIMENT = Experiment(
    what="x", chosen_on="x", metrics={"count": "x", "classes": "x"},
    conditions=[{"a": 1}], seeds=[0], run=run,
)
"""


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


def test_a_trial_takes_a_share_of_the_same_images(small_image_files):
    whole, small = image_set("mnist", "train"), image_set("mnist", "train", 0.25)
    assert small.labels.bincount().tolist() == [5] * 10
    rows = {image.numpy().tobytes() for image in whole.images}
    assert {image.numpy().tobytes() for image in small.images} < rows
    assert len(image_set("mnist", "test", 0.25).labels) == 25


def test_which_images_are_chosen_never_changes():
    places = some_of_each(torch.arange(54_000) * 7 % 10, 1000)
    assert len(places.unique()) == 10_000
    digest = hashlib.sha256(places.numpy().tobytes()).hexdigest()
    assert digest[:16] == "a5865763e5657d0d"


def test_a_worker_without_images_says_what_to_do_and_writes_no_record(tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VITBOOK_DATA", str(tmp_path / "nowhere"))
    (tmp_path / "count.py").write_text(SCRIPT)
    ended = subprocess.run(command(tmp_path / "count.py"), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "needs the images of fashion-mnist: fetch them with `python -m exper" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()


BAD_INPUT = [
    (lambda: image_set("cifar10", "train"), "not 'cifar10' with 'train'"),
    (lambda: image_set("mnist", "trainval"), "not 'mnist' with 'trainval'"),
    (lambda: some_of_each(torch.tensor([3, 3, 5]), 2), "class 5 has 1 images, 2 are needed"),
]


@pytest.mark.parametrize(("call", "words"), BAD_INPUT)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
