"""The comparison of chapter 18: what is equal, and what is done to the images."""

import pytest
import torch

from experiments import relatives_pairs, relatives_pictures, relatives_pointer
from experiments.machinery import relatives
from experiments.machinery.relatives import (
    EQUAL,
    WHOLE,
    WIDTH,
    Task,
    multiplies_of,
    parameters_of,
    steps_of,
    width_of,
)

TASKS = [relatives_pictures.TASK, relatives_pairs.TASK, relatives_pointer.TASK]


@pytest.mark.parametrize("task", TASKS, ids=["pictures", "pairs", "pointer"])
def test_parameters_agree_within_5_percent_and_compute_within_half_a_step(task):
    parameters = parameters_of(task, WHOLE, WIDTH)
    for model in EQUAL:
        width, own = width_of(task, model), multiplies_of(task, model)
        assert abs(parameters_of(task, model, width) / parameters - 1) <= 0.05
        assert abs(own * steps_of(task, model) - multiplies_of(task, WHOLE) * task.steps) <= own / 2


@pytest.mark.parametrize("script", [relatives_pictures, relatives_pairs, relatives_pointer])
def test_the_length_of_every_run_is_known_before_it_begins(script):
    lengths = {c["model"]: script.EXPERIMENT.steps(c) for c, _ in script.EXPERIMENT.runs}
    assert lengths.pop(relatives.NEAREST) == 0  # nothing is trained
    assert min(lengths.values()) > 0


def test_a_model_that_no_width_makes_equal_is_refused(monkeypatch):
    monkeypatch.setattr(relatives, "TOLERANCE", 1e-6)
    task = Task(images=(16, 8, 1, 2), kernel_size=3, steps=1, batch_size=1)
    with pytest.raises(ValueError, match="Mixer has no width with about"):
        width_of(task, "Mixer")


def test_shuffled_moves_whole_patches_and_loses_none():
    images = torch.arange(2 * 3 * 8 * 12.0).view(2, 3, 8, 12)
    moved = relatives.shuffled(images, 4, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    before, after = (relatives._tiles(x, 4).flatten(2).tolist() for x in (images, moved))
    assert before != after
    assert [sorted(x) for x in before] == [sorted(x) for x in after]


@pytest.mark.parametrize(("share", "blank"), [(0.0, 0), (0.5, 8), (1.0, 16)])
def test_dropped_blanks_that_share_of_the_patches_of_each_image(share, blank):
    images = torch.ones(3, 2, 8, 8)
    left = relatives.dropped(images, 2, share, torch.Generator().manual_seed(0))
    tiles = relatives._tiles(left, 2).flatten(2)
    assert (tiles == 0).all(dim=2).sum(dim=1).tolist() == [blank] * 3
    assert set(tiles.flatten().tolist()) <= {0.0, 1.0}


def test_shifted_moves_right_and_down_and_repeats_the_border():
    image = torch.arange(16.0).view(1, 1, 4, 4)
    moved = relatives.shifted(image, 1)[0, 0]
    assert moved[1:, 1:].tolist() == image[0, 0, :3, :3].tolist()
    assert moved[0, 1:].tolist() == [0, 1, 2]


def test_the_nearest_image_lends_its_label():
    known = relatives.ImageSet(torch.tensor([0.0, 10.0]).view(2, 1, 1, 1), torch.tensor([3, 7]))
    asked = relatives.ImageSet(
        torch.tensor([1.0, 9.0, 4.0]).view(3, 1, 1, 1), torch.tensor([3, 7, 7])
    )
    assert relatives.nearest_accuracy(known, asked) == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["ViT", "ConvMixer", "uniform", "no mixing", "small CNN"])
def test_a_model_on_larger_images_keeps_its_weights(name):
    model = relatives.build(relatives_pictures.TASK, name, 0).eval()
    larger = relatives_pictures.for_larger(model, name)
    assert larger(torch.randn(2, 1, 84, 84)).shape == (2, 10)
    assert torch.equal(larger.head.weight, model.head.weight)


@pytest.mark.parametrize("name", ["Mixer", "Mixer+ViT", "ConvMixer+Mixer"])
def test_a_model_with_token_mixing_has_no_larger_images(name):
    model = relatives.build(relatives_pictures.TASK, name, 0)
    assert relatives_pictures.for_larger(model, name) is None
