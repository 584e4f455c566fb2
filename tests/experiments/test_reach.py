"""Strips whose glyphs stand as far apart as they say, and fields as wide as the formula says."""

import pytest
import torch

from experiments import reach, reach_head


def test_glyphs_stand_as_far_apart_as_the_strip_says():
    images, labels, apart = reach.strips(300, seed=0)
    ink = images[:, 0].unflatten(2, (12, 8)).sum(dim=(1, 3))  # (n, 12)
    first, second = ink.topk(2).indices.sort().values.unbind(1)
    assert torch.equal(second - first, apart)
    assert set(apart.tolist()) == set(reach.DISTANCES)
    assert labels.bincount().tolist() == [150, 150]


@pytest.mark.parametrize("arm", [a for a in reach.ARMS if a.startswith("conv")])
def test_two_patches_meet_in_a_token_up_to_the_distance_that_the_formula_gives(arm):
    sizes = reach.ARMS[arm]
    limit = len(sizes["layers"]) * (sizes["kernel_size"] - 1)
    model = reach.build(arm, 0).eval()
    x = model.embed(torch.rand(1, 1, 8, 96)).detach()
    heard = (
        torch.autograd.functional.jacobian(
            lambda x: model.encoder(x).square().sum(dim=2)[0], x, vectorize=True
        )[:, 0]
        .abs()
        .sum(-1)
        > 0
    )  # (tokens, patches)
    meet = torch.einsum("ti,tj->ij", heard.float(), heard.float()) > 0
    far = (torch.arange(12)[:, None] - torch.arange(12)).abs()
    assert torch.equal(meet, far <= limit)


def test_with_a_hidden_head_the_model_is_that_without_mixing_and_no_token_hears_another():
    plain, hidden = reach.build(reach_head.ARM, 0).eval(), reach_head.build(0).eval()
    shared = {name: v for name, v in plain.state_dict().items() if not name.startswith("head.")}
    assert all(torch.equal(hidden.state_dict()[name], value) for name, value in shared.items())
    images = torch.rand(2, 1, 8, 96)
    changed = images.clone()
    changed[..., 40:48] = 0  # the sixth patch
    other = (hidden.forward_features(images) != hidden.forward_features(changed)).any(dim=2)
    assert other.nonzero()[:, 1].tolist() == [5, 5]
    assert hidden(images).shape == (2, 2)
