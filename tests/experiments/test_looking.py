"""The experiment of chapter 12: what is counted is what is said."""

import sys

import torch
from torch.testing import assert_close

from experiments.machinery.experiment import load_experiment

load_experiment("cifar_maps")
cifar = sys.modules["experiment_cifar_maps"]


def small_vit(depth=1, heads=4):
    model = cifar.build(depth=depth, heads=heads, seed=0)
    for block in model.encoder.blocks:
        torch.nn.init.normal_(block.attn.qkv.bias)
    return model.eval()


def photos(count=2):
    return torch.randn(count, 3, 36, 36, generator=torch.Generator().manual_seed(0))


def test_cifar_is_enlarged_without_a_shift():
    images = torch.zeros(1, 3, 32, 32)
    images[..., :16] = 1
    large = cifar.resized(images)
    assert large.shape == (1, 3, 36, 36)
    assert_close(large[..., :17], torch.ones(1, 3, 36, 17))
    assert_close(large[..., 19:], torch.zeros(1, 3, 36, 17))


def test_what_the_patches_add_to_the_class_token_is_all_that_attention_adds():
    model, x = small_vit(), photos()
    attn = model.encoder.blocks[0].attn
    seen = model.encoder.blocks[0].norm1(model.embed(x))
    weights, values = attn.attention_weights(seen), attn.project(seen)[2]
    with torch.no_grad():
        lengths = cifar.added(model, x)
        vectors = torch.einsum("nhk,nhkd->nkhd", weights[:, :, 0], values).flatten(2)
        vectors = vectors @ attn.proj.weight.T
        assert_close(lengths, vectors[:, 1:].norm(dim=-1))
        assert_close(vectors.sum(dim=1) + attn.proj.bias, attn(seen)[:, 0], atol=1e-5, rtol=1e-4)


def test_patches_that_are_hidden_together_are_the_highest():
    model, x = small_vit(), photos()
    values = torch.zeros(2, 144)
    values[:, torch.arange(cifar.TOP)] = 1.0  # the first row and two patches of the second
    hidden = x.clone()
    mean = x.mean(dim=(2, 3), keepdim=True)
    hidden[:, :, :3] = mean
    hidden[:, :, 3:6, :6] = mean
    with torch.no_grad():
        before, answer = model(x).log_softmax(-1).max(-1)
        after = model(hidden).log_softmax(-1)[range(2), answer]
        assert_close(cifar.fall(model, x, values)[0], float((before - after).mean()))


def test_the_shares_of_the_keys_in_a_model_without_a_query_are_even():
    model = small_vit(depth=2)
    for block in model.encoder.blocks:
        torch.nn.init.zeros_(block.attn.qkv.weight)
        torch.nn.init.zeros_(block.attn.qkv.bias)
    with torch.no_grad():
        found = cifar.views(model, photos())
    assert_close(found["class_key"], torch.full((2, 4), 1 / 145))
    assert_close(found["top_patch_key"], torch.full((2, 4), 1 / 145))
    assert found["norm_ratio"].shape == (2,)
