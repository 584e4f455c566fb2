"""Images of 3 channels, 8 high and 12 wide, patch size 2: 4 x 6 patches, N = 24; D = 10, k = 3."""

import copy

import pytest
import timm
import torch
import torch.nn.functional as F
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import causal_mask
from vitbook.layers.patches import PatchEmbedding
from vitbook.layers.stems import ConvStem, NormedPatchEmbedding
from vitbook.models.conv_mixer import ConvMixer, ConvMixerBlock
from vitbook.models.weights import from_timm, load_weights
from vitbook.training import RunFolder, TrainConfig, train

B, C, HEIGHT, WIDTH, P, D, K, L, CLASSES = 5, 3, 8, 12, 2, 10, 3, 2, 7
GRID, N = (4, 6), 24


def model(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
    sizes |= {"num_classes": CLASSES, "embed_dim": D, "depth": L, "kernel_size": K}
    return ConvMixer(**(sizes | kwargs))


def block(kernel_size=K, grid=GRID):
    return all_random(ConvMixerBlock(embed_dim=D, grid=grid, kernel_size=kernel_size)).eval()


def stem(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": 4, "in_channels": C, "embed_dim": D}
    return ConvStem(**(sizes | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


# the block


def test_a_stack_of_m_blocks_sees_1_plus_m_times_k_minus_1_tokens():
    grid, depth = (9, 11), 3
    blocks = nn.Sequential(
        *(ConvMixerBlock(embed_dim=D, grid=grid, kernel_size=K) for _ in range(depth))
    )
    x, cols = torch.randn(1, 99, D, requires_grad=True), grid[1]
    all_random(blocks).eval()(x)[0, 4 * cols + 5].sum().backward()  # the token in the middle
    seen = x.grad[0].abs().sum(dim=-1).view(grid) > 0
    side = 1 + depth * (K - 1)
    assert seen.sum() == side**2
    assert seen[4 - side // 2 : 5 + side // 2, 5 - side // 2 : 6 + side // 2].all()


# the model


def test_logits_agree_with_timms_convmixer():
    theirs = timm.models.ConvMixer(D, 4, kernel_size=K, patch_size=P, num_classes=CLASSES)
    theirs, ours = all_random(theirs).eval(), model(depth=4).eval()
    assert load_weights(ours, from_timm(theirs.state_dict())) == []
    x = images()
    assert theirs(x).std() > 0.1
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=0)
    maps = theirs.forward_features(x)  # (B, D, rows, columns)
    assert_close(ours.forward_features(x), maps.flatten(2).mT, atol=1e-4, rtol=0)
    theirs.train(), ours.train()
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=0)  # mean and variance of this batch
    again = from_timm(theirs.state_dict())
    for name, tensor in ours.state_dict().items():  # what was learned about it, too
        assert_close(tensor, again[name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("make", [model, stem], ids=["conv-mixer", "stem"])
def test_the_gradient_of_one_image_is_that_of_the_image_in_a_batch(make):
    net, x = all_random(make()).eval(), images(2)
    grads = []
    for batch in (x, x[:1]):
        batch = batch.clone().requires_grad_()
        out = net(batch) if make is stem else net.forward_features(batch)
        out[0, 1].sum().backward()
        grads.append(batch.grad[0])
    largest = grads[0].abs().max().item()
    assert largest > 0
    assert_close(grads[1], grads[0], atol=1e-3 * largest, rtol=1e-4)


def test_a_resumed_run_goes_on_with_the_running_means(tmp_path):
    x, labels = images(6), torch.arange(6) % CLASSES
    config = TrainConfig(steps=4, batch_size=3, learning_rate=1e-2, warmup_steps=0)

    def stop(row):
        raise KeyboardInterrupt

    start = model()
    whole, halves, fresh = (copy.deepcopy(start) for _ in range(3))
    train(whole, x, labels, config, progress=False)
    folder = RunFolder(tmp_path, checkpoint_every=1)
    looks = {"evaluate_on": (x, labels), "evaluate_every": 3, "report": stop}
    with pytest.raises(KeyboardInterrupt):
        train(halves, x, labels, config, folder=folder, progress=False, **looks)
    folder = RunFolder(tmp_path, resume=True, checkpoint_every=1)
    train(fresh, x, labels, config, folder=folder, progress=False)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], tensor), name


# the stems


def test_conv_mixers_stem_is_patches_gelu_and_a_norm_over_batch_and_tokens():
    net = NormedPatchEmbedding(image_size=(HEIGHT, WIDTH), patch_size=P, in_channels=C, embed_dim=D)
    x = images()
    plain = F.gelu(PatchEmbedding.forward(net, x))
    expected = (plain - plain.mean((0, 1))) / (plain.var((0, 1), correction=0) + 1e-5).sqrt()
    assert_close(net(x), expected, atol=1e-5, rtol=1e-5)
    assert_close(net.norm.running_mean, 0.1 * plain.mean((0, 1)))


def test_the_convolutional_stem_has_the_grid_of_its_patch_size_and_overlaps():
    net, x = stem().eval(), images()
    assert (net.grid, net.num_patches) == ((2, 3), 6)
    before = net(x)
    assert before.shape == (B, 6, D)
    x[:, :, 3, 3] += 1  # the last pixel of the first patch is seen by its neighbours, too
    changed = (net(x) - before).abs().amax(dim=(0, 2)) > 1e-6
    assert changed.nonzero().flatten().tolist() == [0, 1, 3, 4]


def test_the_convolutional_stem_has_the_channels_of_the_paper():
    with torch.device("meta"):
        net = stem(image_size=224, patch_size=16, embed_dim=192)
    convs = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    assert [conv.out_channels for conv in convs] == [24, 48, 96, 192, 192]
    assert [conv.stride for conv in convs] == [(2, 2)] * 4 + [(1, 1)]


x = torch.randn(B, N, D)

BAD_INPUT = [
    (lambda: block(4), ValueError, "kernel_size must be odd, so that it has a middle, got"),
    (lambda: block()(x[:, :20]), ValueError, "N = 24 tokens, got 20: the grid is 4 x 6"),
    (lambda: block()(x, causal_mask(N)), ValueError, "mask must be None: a convolution"),
    (lambda: block(grid=(0, 3)), ValueError, "grid[0] must be at least 1, got 0"),
    (lambda: stem(patch_size=3, image_size=12), ValueError, "power of two for a con"),
    (lambda: stem(image_size=(8, 10)), ValueError, "height 8 and width 10, got 4"),
    (lambda: stem(embed_dim=9), ValueError, "divisible by patch_size / 2 = 2, got 9"),
    (lambda: stem()(images().mT), ValueError, "(B, 3, 8, 12), got (5, 3, 12, 8)"),
]
