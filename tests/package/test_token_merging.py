"""Fewer tokens: who merges with whom, what is kept, and what a trained model does with it."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from vitbook.layers.token_merging import ShrinkingEncoder, merge_tokens, prune_tokens
from vitbook.models.vit import VisionTransformer

MODEL = {"image_size": (12, 15), "patch_size": 3, "in_channels": 2, "num_classes": 7}
MODEL |= {"embed_dim": 16, "depth": 2, "num_heads": 2}


def tokens(B=2, N=9, D=6, h=2, d=3):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, N, D, generator=generator)
    q, k = (torch.randn(B, h, N, d, generator=generator) for _ in range(2))
    return x, q, k


def model():
    torch.manual_seed(0)
    made = VisionTransformer(**MODEL).eval()
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return made


def test_the_most_similar_pair_is_merged_by_hand():
    x = torch.tensor([[[9.0], [1.0], [2.0], [3.0], [5.0]]])  # class token, then four patches
    k = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [-1.0, 0.2]])[None, None]
    merged, size = merge_tokens(x, None, k, k, r=1)  # tokens 4 and 3 look alike; 4 goes into 3
    assert_close(merged, torch.tensor([[[9.0], [2.0], [1.0], [4.0]]]))
    assert_close(size, torch.tensor([[1.0, 1.0, 1.0, 2.0]]))
    with_sizes, size = merge_tokens(x, torch.tensor([[1.0, 1.0, 1.0, 3.0, 1.0]]), k, k, r=1)
    assert_close(with_sizes[0, 3], torch.tensor([(3 * 3.0 + 5.0) / 4]))
    assert_close(size[0], torch.tensor([1.0, 1.0, 1.0, 4.0]))


@pytest.mark.parametrize("r", [0, 1, 4])
def test_merging_keeps_the_weighted_sum_and_the_class_token(r):
    x, q, k = tokens()
    size = torch.randint(1, 4, x.shape[:2]).float()
    merged, sizes = merge_tokens(x, size, q, k, r=r)
    assert merged.shape == (2, 9 - r, 6)
    assert sizes.shape == (2, 9 - r)
    assert_close((merged * sizes[..., None]).sum(1), (x * size[..., None]).sum(1))
    assert_close(sizes.sum(1), size.sum(1))
    assert_close(merged[:, 0], x[:, 0])


def test_pruning_keeps_what_the_class_token_looks_at_in_the_old_order():
    x = torch.arange(5.0)[None, :, None]
    q = torch.tensor([1.0, 0, 0, 0, 0])[None, None, :, None]
    k = torch.tensor([-9.0, 2.0, 0.0, 1.0, 3.0])[None, None, :, None]
    kept, size = prune_tokens(x, None, q, k, r=2)
    assert_close(kept, torch.tensor([0.0, 1.0, 4.0])[None, :, None])
    assert size is None
    _, size = prune_tokens(x, torch.arange(1.0, 6.0)[None], q, k, r=2)
    assert_close(size, torch.tensor([[1.0, 2.0, 5.0]]))


@pytest.mark.parametrize("shrink", [merge_tokens, prune_tokens])
def test_a_model_that_merges_nothing_is_the_model(shrink):
    plain, images = model(), torch.randn(3, 2, 12, 15)
    want = plain(images)
    plain.encoder = ShrinkingEncoder(plain.encoder, partial(shrink, r=0))
    assert_close(plain(images), want)


def test_merging_equal_patches_changes_no_answer():
    """Every patch is there twice: half of them are enough, because sizes count in the softmax."""
    plain = model()
    torch.nn.init.zeros_(plain.positions.table)
    half = torch.randn(3, 1, 16)
    pairs = torch.cat([half, torch.randn(3, 4, 16).repeat_interleave(2, dim=1)], dim=1)
    plain.embed = lambda images: pairs
    want = plain(None)
    plain.encoder = ShrinkingEncoder(plain.encoder, once(partial(merge_tokens, r=4)))
    assert_close(plain(None), want, atol=1e-4, rtol=1e-4)


def once(shrink):
    """Shrink where nothing was merged yet."""
    return lambda x, size, q, k: shrink(x, size, q, k) if size is None else (x, size)


def merge(**options):
    x, q, k = tokens()
    return merge_tokens(x, None, q, k, **options)


def masked():
    return ShrinkingEncoder(model().encoder, merge_tokens)(tokens()[0], torch.ones(9, 9) > 0)


X, *QK = tokens()


def test_without_a_class_token_the_first_patch_may_merge():
    x, q, _ = tokens(N=2)
    k = torch.ones(2, 2, 2, 3)
    merged, size = merge_tokens(x, None, q, k, r=1, num_prefix=0)
    assert_close(merged, x.mean(1, keepdim=True))
    assert_close(size, torch.full((2, 1), 2.0))


BAD_INPUT = [
    (lambda: merge(r=5), ValueError, "r must be at most 4 of 9"),
    (lambda: merge(r=1, num_prefix=2), ValueError, "num_prefix must be 0 or 1"),
    (lambda: prune_tokens(X, None, *QK, r=5), ValueError, "r must be at most 4 of 9"),
    (masked, ValueError, "mask must be None"),
]
