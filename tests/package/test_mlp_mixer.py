"""Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 10, S = 7, hidden 25."""

from functools import partial

import timm
import torch
from random_models import all_random
from torch.testing import assert_close

from vitbook.inspection import record_attention
from vitbook.layers.attention import causal_mask
from vitbook.layers.token_mixing import TIED, TokenMixing
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.weights import from_timm, load_weights

B, C, HEIGHT, WIDTH, P, N, D, S, L, CLASSES = 4, 3, 6, 8, 2, 12, 10, 7, 2, 5
RATIO = 2.5


def model(**kwargs):
    sizes = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
    sizes |= {"num_classes": CLASSES, "embed_dim": D, "depth": L}
    return MlpMixer(**(sizes | {"token_dim": S, "mlp_ratio": RATIO} | kwargs))


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


# token mixing


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


x = torch.randn(B, N, D)


def on_another_grid():
    return load_weights(model(image_size=(8, 10)), model().state_dict())


def recorded():
    with record_attention(net := model()):
        net(images())


mixing = partial(TokenMixing, num_tokens=9, token_dim=S)
BAD_INPUT = [
    (lambda: mixing(num_tokens=0), ValueError, "num_tokens must be at least 1"),
    (lambda: mixing()(x), ValueError, f"x must hold N = 9 tokens, got 12: {TIED}"),
    (lambda: mixing()(x, causal_mask(N)), ValueError, "mask must be None: token mixing"),
    (lambda: model()(torch.randn(B, C, 8, 10)), ValueError, f"got (4, 3, 8, 10): {TIED}"),
    (on_another_grid, ValueError, "mixes N = 12 tokens, the model has 20: token mixing"),
    (recorded, ValueError, "(MlpMixer) ran, and none of its layers showed attention"),
]
