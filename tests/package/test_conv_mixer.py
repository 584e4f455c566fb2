"""Images of 3 channels, 8 high and 12 wide, patch size 2: 4 x 6 patches, N = 24; D = 10, k = 3."""

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


x = torch.randn(B, N, D)


def test_the_convolutional_stem_has_the_channels_of_the_paper():
    with torch.device("meta"):
        net = stem(image_size=224, patch_size=16, embed_dim=192)
    convs = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    assert [conv.out_channels for conv in convs] == [24, 48, 96, 192, 192]
    assert [conv.stride for conv in convs] == [(2, 2)] * 4 + [(1, 1)]


BAD_INPUT = [
    (lambda: block(4), ValueError, "kernel_size must be odd, so that it has a middle, got"),
    (lambda: block()(x[:, :20]), ValueError, "N = 24 tokens, got 20: the grid is 4 x 6"),
    (lambda: block()(x, causal_mask(N)), ValueError, "mask must be None: a convolution"),
    (lambda: stem(patch_size=3, image_size=12), ValueError, "power of two for a con"),
    (lambda: stem(image_size=(8, 10)), ValueError, "height 8 and width 10, got 4"),
    (lambda: stem(embed_dim=9), ValueError, "divisible by patch_size / 2 = 2, got 9"),
    (lambda: stem()(images().mT), ValueError, "(B, 3, 8, 12), got (5, 3, 12, 8)"),
]
