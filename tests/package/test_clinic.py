"""The clinic: a sick layer has the healthy weights, does one thing otherwise, and hides nothing."""

import copy

import pytest
import torch

from vitbook.book.clinic import PATIENTS, load_patient
from vitbook.book.faults import FAULTS, LAYERS, SIZES, ClinicViT, with_fault
from vitbook.inspection import attention_maps

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture(scope="module")
def healthy():
    torch.manual_seed(0)
    return ClinicViT(**SIZES).eval()


@pytest.fixture(scope="module")
def images():
    return torch.rand(5, 1, 24, 24, generator=torch.Generator().manual_seed(1))


def sick(healthy, fault):
    return with_fault(copy.deepcopy(healthy), fault).eval()


def test_each_fault_changes_what_the_same_weights_answer_but_those_of_the_training(healthy, images):
    for fault in FAULTS:
        apart = (sick(healthy, fault)(images) - healthy(images)).abs().max()
        assert (apart > 1e-3) == (fault in LAYERS), fault


def test_two_faults_never_answer_alike(healthy, images):
    answers = torch.stack([sick(healthy, fault)(images) for fault in LAYERS])
    apart = (answers[:, None] - answers).abs().amax(dim=(2, 3))
    assert apart[~torch.eye(len(LAYERS), dtype=torch.bool)].min() > 1e-3


def test_softmax_over_the_queries_leaves_rows_that_do_not_sum_to_one(healthy, images):
    found = attention_maps(sick(healthy, "softmax over the queries"), images)
    torch.testing.assert_close(found.sum(dim=-2), torch.ones_like(found.sum(dim=-2)))
    assert (found.sum(dim=-1) - 1).abs().max() > 1e-3


def test_unscaled_scores_are_those_of_queries_times_the_root(healthy, images):
    scaled = copy.deepcopy(healthy)
    for block in scaled.encoder.blocks:
        block.attn.qkv.weight.data[: SIZES["embed_dim"]] *= 4.0  # d = 16
        block.attn.qkv.bias.data[: SIZES["embed_dim"]] *= 4.0
    ours = sick(healthy, "scores not divided by sqrt(d)")(images)
    torch.testing.assert_close(ours, scaled(images), rtol=1e-5, atol=1e-5)


def test_without_positions_patches_may_change_places(healthy, images):
    turned = images.unflatten(2, (3, 8)).flip(2).flatten(2, 3)  # rows of patches, upside down
    missing = sick(healthy, "positions missing")
    torch.testing.assert_close(missing(turned), missing(images), rtol=0, atol=1e-6)
    assert (healthy(turned) - healthy(images)).abs().max() > 1e-3


def test_a_model_that_is_never_in_evaluation_mode_answers_differently_each_time(healthy, images):
    model = sick(healthy, "never in evaluation mode")
    assert not torch.equal(model(images), model(images))


def test_images_are_normalised_twice_in_tests_only(healthy, images):
    model = sick(healthy, "normalised twice in tests")
    once = healthy.normalized(images)
    assert torch.equal(model.normalized(images), healthy.normalized(once))
    model.train()
    assert torch.equal(model.normalized(images), once)


def test_without_the_residual_the_last_mlp_is_all_that_is_left(healthy):
    block = sick(healthy, "no residual around the MLP").encoder.blocks[0]
    block.mlp.fc2.weight.data.zero_()
    block.mlp.fc2.bias.data.zero_()
    assert not block(torch.randn(1, 10, SIZES["embed_dim"])).any()


def test_every_fault_has_one_patient():
    assert sorted(PATIENTS.values()) == sorted(FAULTS)
    assert [*PATIENTS] == list(range(1, 13))


BAD_INPUT = [
    (lambda: load_patient(13), ValueError, "number must be one of 1, 2"),
    (lambda: with_fault(ClinicViT(**SIZES), "a cold"), ValueError, "fault must be one of"),
]
