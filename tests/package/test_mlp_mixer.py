"""Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 10, S = 7, hidden 25."""

from functools import partial

import timm
import torch
import torch.nn.functional as F
from random_models import all_random
from torch.testing import assert_close

from vitbook.inspection import record_attention
from vitbook.layers.attention import causal_mask
from vitbook.layers.patches import patchify, unpatchify
from vitbook.layers.token_mixing import TIED, TokenMixing
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.weights import from_timm, load_weights

B, C, HEIGHT, WIDTH, P, N, D, S, L, CLASSES = 4, 3, 6, 8, 2, 12, 10, 7, 2, 5
RATIO, HIDDEN = 2.5, 25


def model(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
    sizes |= {"num_classes": CLASSES, "embed_dim": D, "depth": L}
    return MlpMixer(**(sizes | {"token_dim": S, "mlp_ratio": RATIO} | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


# token mixing


def test_token_mixing_is_one_mlp_along_the_tokens_of_each_channel():
    layer, x = all_random(TokenMixing(num_tokens=N, token_dim=S)), torch.randn(B, N, D)
    first, second = layer.mlp.fc1, layer.mlp.fc2
    assert (first.weight.shape, second.weight.shape) == ((S, N), (N, S))
    for channel in range(D):
        column = F.gelu(x[:, :, channel] @ first.weight.T + first.bias)  # (B, S)
        assert_close(layer(x)[:, :, channel], column @ second.weight.T + second.bias)


def test_a_changed_token_reaches_all_tokens_and_no_other_channel():
    layer, x = all_random(TokenMixing(num_tokens=N, token_dim=S)), torch.randn(B, N, D)
    before = layer(x)
    x[1, 3, 6] += 1
    changed = (layer(x) - before).abs() > 1e-7  # (B, N, D)
    assert changed.any(dim=1).nonzero().tolist() == [[1, 6]]
    assert changed[1, :, 6].all()


# the model


def test_logits_agree_with_timms_mixer():
    sizes = {"img_size": (HEIGHT, WIDTH), "patch_size": P, "num_blocks": L, "embed_dim": D}
    theirs = timm.models.MlpMixer(num_classes=CLASSES, mlp_ratio=(S / D, RATIO), **sizes)
    theirs, ours = all_random(theirs).eval(), model().eval()
    assert load_weights(ours, from_timm(theirs.state_dict())) == []
    x = images()
    assert theirs(x).std() > 0.1
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=0)
    assert_close(ours.forward_features(x), theirs.forward_features(x), atol=1e-4, rtol=0)


def test_the_order_of_the_patches_matters_though_no_position_is_added():
    net, x = all_random(model()), images()
    before, order = net(x), torch.randperm(N)
    shuffled = unpatchify(patchify(x, P)[:, order], P, (HEIGHT, WIDTH), C)
    assert (net(shuffled) - before).abs().max() > 1e-2
    for block in net.encoder.blocks:  # the weights of the places, shuffled likewise
        mlp = block.attn.mlp
        mlp.fc1.weight.data = mlp.fc1.weight[:, order]
        mlp.fc2.weight.data, mlp.fc2.bias.data = mlp.fc2.weight[order], mlp.fc2.bias[order]
    assert_close(net(shuffled), before, atol=1e-4, rtol=1e-4)


x = torch.randn(B, N, D)


def on_another_grid():
    return load_weights(model(image_size=(8, 10)), model().state_dict())


def recorded():
    with record_attention(net := model()):
        net(images())


mixing = partial(TokenMixing, num_tokens=9, token_dim=S)
BAD_INPUT = [
    (lambda: mixing(num_tokens=0), ValueError, "num_tokens must be at least 1"),
    (lambda: mixing(token_dim=2.5), TypeError, "token_dim must be a whole number, got 2.5"),
    (lambda: mixing()(x), ValueError, f"x must hold N = 9 tokens, got 12: {TIED}"),
    (lambda: mixing()(x, causal_mask(N)), ValueError, "mask must be None: token mixing"),
    (lambda: model()(torch.randn(B, C, 8, 10)), ValueError, f"got (4, 3, 8, 10): {TIED}"),
    (on_another_grid, ValueError, "mixes N = 12 tokens, the model has 20: token mixing"),
    (recorded, ValueError, "(MlpMixer) ran, and none of its layers showed attention"),
]


def test_bad_input_is_named(bad_input, refused):
    refused(*bad_input)
