"""The long runs: what they measure on the test images, and that the command makes the same ones."""

import shlex
import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment
from vitbook.command import parser, train
from vitbook.command.recipes import build_model, settings_of


@pytest.fixture(scope="module")
def script():
    load_experiment("full_sets")
    return sys.modules["experiment_full_sets"]


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_the_command_asks_for_the_same_run(script, name):
    words = shlex.split(script.command(name))
    assert words[:3] == ["python", "-m", "vitbook"]
    options = vars(parser.parser().parse_args(words[3:]))
    given = {key: value for key, value in options.items() if key not in train.WHERE}
    assert settings_of(given) == script.SETTINGS[name]
    assert script.SETTINGS[name]["learn_from"] == "train"


@pytest.mark.parametrize(
    ("name", "limit"), [("mnist", 210_000), ("fashion-mnist", 210_000), ("cifar10", 250_000)]
)
def test_no_model_is_larger_than_said(script, name, limit):
    size = sum(parameter.numel() for parameter in build_model(script.SETTINGS[name]).parameters())
    assert 0.8 * limit < size <= limit


def test_the_measured_numbers_agree_with_each_other(script, small_image_files):
    losses = []
    metrics = script.run({"data": "cifar10"}, 1, losses.append, 0.1).metrics
    confusion = torch.tensor(metrics["confusion"])  # (10, 10), 10 test images in all
    labels = script.images_of("cifar10", "test", 0.1).labels
    assert confusion.sum(dim=1).tolist() == labels.bincount(minlength=10).tolist()
    assert metrics["test_accuracy"] == pytest.approx(confusion.trace().item() / len(labels))
    answers, _, right = (sum(column) for column in zip(*metrics["reliability"], strict=True))
    assert (answers, right) == (len(labels), confusion.trace().item())
    assert metrics["loss"] == [round(loss, 5) for loss in losses]
    assert len(metrics["validation_accuracy"]) == len(metrics["validation_loss"]) >= 1


def test_a_seed_decides_weights_and_order(script, small_image_files):
    losses = {}
    for run, seed in (("first", 0), ("again", 0), ("other", 1)):
        losses[run] = []
        script.run({"data": "mnist"}, seed, losses[run].append, 0.02)
    assert losses["first"] == losses["again"] != losses["other"]
