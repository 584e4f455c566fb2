"""Transfer and small data: the same labelled images for every arm, and what an arm changes."""

import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment


@pytest.fixture(scope="module")
def transfer():
    load_experiment("transfer")
    return sys.modules["experiment_transfer"]


@pytest.fixture(scope="module")
def small_data():
    load_experiment("small_data")
    return sys.modules["experiment_small_data"]


def test_more_labelled_images_hold_the_few_and_all_classes_alike(transfer):
    labels = torch.arange(90) % 3
    few, more = (set(transfer.labelled(labels, count, 4).tolist()) for count in (5, 20))
    assert few < more
    assert labels[sorted(more)].bincount().tolist() == [20, 20, 20]
    assert few != set(transfer.labelled(labels, 5, 5).tolist())


def test_a_digit_stands_in_the_middle_of_a_black_border(transfer):
    prepared = transfer.prepared("digits", torch.ones(1, 1, 8, 8), 28, "mnist")
    black = prepared[0, 0, 0, 0]
    inside = (prepared[0, 0] > black).nonzero()
    assert prepared.shape == (1, 1, 28, 28)
    assert (inside.min().item(), inside.max().item()) == (4, 23)


def test_arms_start_as_they_say(transfer):
    arms = transfer.ARMS["odd"]
    tuned, scratch, resampled, new = (
        transfer.vit("odd", arms[name], 3).state_dict()
        for name in (
            "fine-tuned",
            "from scratch",
            "fine-tuned, larger, table resampled",
            "fine-tuned, larger, table new",
        )
    )
    assert torch.equal(tuned["head.weight"], scratch["head.weight"])
    block = "encoder.blocks.1.attn.qkv.weight"
    assert not torch.equal(tuned[block], scratch[block])
    differing = {name for name in new if not torch.equal(new[name], resampled[name])}
    assert differing == {"positions.table"}
    assert torch.equal(new["positions.table"][0], resampled["positions.table"][0])


def test_all_vits_of_small_data_start_with_the_same_blocks_and_learn_the_same_images(
    small_data, small_image_files
):
    plain, stem = (small_data.build(model, 1).state_dict() for model in ("vit", "stem"))
    for name in plain.keys() & stem.keys():
        if not name.startswith("patch_embed"):
            assert torch.equal(plain[name], stem[name])
    first, again = (small_data.learned_from(2, 0.1) for _ in range(2))
    assert torch.equal(first.images, again.images)
    assert first.images.shape[1:] == (1, 32, 32)
    assert len(set(first.labels.bincount().tolist())) == 1
