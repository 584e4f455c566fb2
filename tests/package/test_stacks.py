"""What holds for all stacks of blocks: ViT, MLP-Mixer, ConvMixer, hybrids.

Images of 3 channels, 6 high and 8 wide, patch size 2: N = 12, D = 16, two blocks.
"""

from functools import partial

import pytest
import timm
import torch
from random_models import all_random
from torch import nn
from torch.testing import assert_close

from vitbook.layers.attention import causal_mask
from vitbook.layers.positions import POSITIONS
from vitbook.layers.token_mixing import TIED, TokenMixing
from vitbook.models.conv_mixer import CONV_MIXER_VARIANTS, ConvMixer, conv_mixer
from vitbook.models.cost import count_parameters
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MIXER_VARIANTS, MlpMixer, mlp_mixer
from vitbook.models.vit import POOLS, VIT_VARIANTS, VisionTransformer, vit
from vitbook.models.weights import from_timm, load_weights
from vitbook.training import TrainConfig, train

B, C, HEIGHT, WIDTH, P, N, D, CLASSES = 4, 3, 6, 8, 2, 12, 16, 5
SIZES = {"image_size": (HEIGHT, WIDTH), "patch_size": P, "in_channels": C}
SIZES |= {"num_classes": CLASSES, "embed_dim": D}
KINDS = {
    "vit": partial(VisionTransformer, **SIZES, depth=2, num_heads=2),
    "mlp-mixer": partial(MlpMixer, **SIZES, depth=2, token_dim=7),
    "conv-mixer": partial(ConvMixer, **SIZES, depth=2, kernel_size=3),
    "hybrid": partial(Hybrid, **SIZES, layers=["conv", "mixer", "attention"], num_heads=2),
}
MODELS = {
    f"vit-{p}-{q}": partial(KINDS["vit"], positions=p, pool=q) for p in POSITIONS for q in POOLS
}
MODELS |= {
    f"post-norm-{pool}": partial(KINDS["vit"], norm_first=False, pool=pool) for pool in POOLS
}
MODELS["registers"] = partial(KINDS["vit"], num_registers=2, class_token=True, pool="mean")
MODELS |= {name: make for name, make in KINDS.items() if name != "vit"}
MODELS["conv-stem"] = partial(Hybrid, **SIZES, layers=["attention"] * 2, num_heads=2, stem="conv")
MODELS |= {kind: partial(Hybrid, **SIZES, layers=[kind]) for kind in ("uniform", "none")}
everywhere = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def images(batch=B):
    return torch.randn(batch, C, HEIGHT, WIDTH)


@everywhere
def test_forward_is_embedding_blocks_norm_and_head(make):
    net, x = all_random(make()).eval(), images()
    features = net.embed(x)
    assert features.shape == (B, net.num_prefix + N, D)
    for block in net.encoder.blocks:
        features = block(features)
    features = net.encoder.norm(features)
    assert_close(net.forward_features(x), features)
    by_class = getattr(net, "pool", "mean") == "cls"
    read = features[:, 0] if by_class else features[:, net.num_prefix :].sum(dim=1) / N
    assert_close(net.forward_head(features), net.head(read))
    assert_close(net(x), net.head(read))
    assert net(x).shape == (B, CLASSES)


@pytest.mark.slow
@everywhere
def test_every_model_learns_one_batch_by_heart_by_the_same_loop(make):
    """With and without positions the images differ, so every model can."""
    net, x, labels = make(), images(8), torch.arange(8) % CLASSES
    config = TrainConfig(steps=60, batch_size=8, learning_rate=1e-2, warmup_steps=5)
    history = train(net, x, labels, config, evaluate_on=(x, labels), progress=False)
    assert history[0]["loss"] > 1.2
    assert history[-1]["val_accuracy"] == 1
    assert not net.training
    assert all(parameter.grad.abs().max() > 0 for parameter in net.parameters())


@everywhere
def test_images_in_a_batch_do_not_see_each_other_in_evaluation_mode(make):
    net, x = all_random(make()).eval(), images()
    alone = torch.cat([net(x[i : i + 1]) for i in range(B)])
    assert_close(net(x), alone, atol=1e-5, rtol=1e-5)
    norms = any(isinstance(module, nn.BatchNorm1d) for module in net.modules())
    assert ((net.train()(x) - alone).abs().max() > 0.01) == norms  # of the batch, while training


@everywhere
def test_empty_batches_one_patch_and_non_contiguous_images_work(make):
    net = make().eval()
    assert net(images(0)).shape == (0, CLASSES)
    assert make(image_size=P).eval()(images()[..., :P, :P]).shape == (B, CLASSES)
    x = torch.randn(B, WIDTH, HEIGHT, C).permute(0, 3, 2, 1)
    assert_close(net(x), net(x.contiguous()), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "conv-mixer"])
def test_dropout_works_in_all_its_places_while_training_only(name):
    net, x, calls = KINDS[name](dropout=0.5), images(), []
    dropouts = [module for module in net.modules() if isinstance(module, nn.Dropout)]
    for module in dropouts:
        module.register_forward_hook(lambda module, *_: calls.append(module.p))
    net(x)
    # after the positions; in each block after both branches and within each MLP
    places = {"vit": 1 + 2 * 3, "mlp-mixer": 1 + 2 * 4, "hybrid": 1 + 4 + 3}[name]
    assert calls == [0.5] * places
    assert (net(x) - net(x)).abs().max() > 1e-4
    assert torch.equal(net.eval()(x), net(x))


OPTIONS = {"layer_scale": 0.1, "drop_path": 0.3, "dropout": 0.2, "num_registers": 2}
EVERYTHING = partial(KINDS["vit"], **OPTIONS, pre_norm=True)
exported = pytest.mark.parametrize(
    "make", [*MODELS.values(), EVERYTHING], ids=[*MODELS, "every option"]
)


@pytest.mark.slow
@exported
def test_an_exported_model_gives_the_same_for_any_number_of_images(make):
    net, x = make().eval(), images()
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(net, (x[:2],), dynamic_shapes=(batch,)).module()
    for some in (x, x[:1]):
        assert_close(program(some), net(some), atol=1e-6, rtol=1e-5)


def test_logits_agree_with_timms_mixer():
    theirs = all_random(
        timm.models.MlpMixer(
            img_size=(HEIGHT, WIDTH), patch_size=P, num_blocks=2, embed_dim=D, num_classes=CLASSES,
            mlp_ratio=(7 / D, 2.5),
        )
    ).eval()  # fmt: skip
    ours, x = KINDS["mlp-mixer"](mlp_ratio=2.5).eval(), images()
    assert load_weights(ours, from_timm(theirs.state_dict())) == []
    assert theirs(x).std() > 0.1
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=0)
    assert_close(ours.forward_features(x), theirs.forward_features(x), atol=1e-4, rtol=0)


# sizes that were published


# Parameters in millions: as torchvision prints them for the same models, and as DeiT's code has
# them; Tolstikhin et al. 2021, table 1, without a head; Trockman and Kolter 2023, table 1
PUBLISHED = {
    vit: {
        "Ti/16": 5.717416, "S/16": 22.050664, "B/16": 86.567656, "B/32": 88.224232,
        "L/16": 304.326632, "L/32": 306.535400, "H/14": 632.045800,
    },
    mlp_mixer: {
        "S/32": 19, "S/16": 18, "B/32": 60, "B/16": 59, "L/32": 206, "L/16": 207, "H/14": 431,
    },
    conv_mixer: {"1536/20": 51.6, "768/32": 21.1, "1024/20": 24.4},
}  # fmt: skip
DIGITS = {vit: 6, mlp_mixer: 0, conv_mixer: 1}
ROWS = [(make, name) for make, names in PUBLISHED.items() for name in names]


@pytest.mark.parametrize(("make", "name"), ROWS)
def test_variants_have_the_published_number_of_parameters(make, name):
    with torch.device("meta"):  # shapes only, no memory
        net = make(name)
    number = count_parameters(net) - (count_parameters(net.head) if make is mlp_mixer else 0)
    assert round(number / 1e6, DIGITS[make]) == PUBLISHED[make][name]


def test_every_variant_of_the_papers_tables_is_there():
    for make, table in ((vit, VIT_VARIANTS), (mlp_mixer, MIXER_VARIANTS)):
        assert {name.partition("/")[0] for name in PUBLISHED[make]} == set(table)
    assert set(PUBLISHED[conv_mixer]) == set(CONV_MIXER_VARIANTS)
    heads = {name: sizes["embed_dim"] / sizes["num_heads"] for name, sizes in VIT_VARIANTS.items()}
    assert heads == {"Ti": 64, "S": 64, "B": 64, "L": 64, "H": 80}
    assert all(sizes["token_dim"] == sizes["embed_dim"] / 2 for sizes in MIXER_VARIANTS.values())
    assert MlpMixer(**SIZES, depth=1).encoder.blocks[0].attn.mlp.fc1.out_features == D / 2


@pytest.mark.parametrize(
    ("make", "name", "p"), [(vit, "Ti/4", 4), (mlp_mixer, "S/4", 4), (conv_mixer, "768/32", 7)]
)
def test_options_overrule_the_variant(make, name, p):
    sizes = {"image_size": (2 * p, 3 * p), "num_classes": 7, "in_channels": 1, "embed_dim": 192}
    net = make(name, depth=1, **sizes)
    assert net.eval()(torch.randn(2, 1, 2 * p, 3 * p)).shape == (2, 7)
    assert (len(net.encoder.blocks), net.patch_embed.grid) == (1, (2, 3))
    assert net.head.in_features == 192


# bad input


def mixing(tokens=N, **options):
    return TokenMixing(num_tokens=tokens, token_dim=7)(torch.randn(B, N, D), **options)


BAD_INPUT = [
    (lambda: KINDS["vit"](image_size=(7, 8)), ValueError, "height 7 and width 8, got 2"),
    (lambda: KINDS["vit"](dropout=2), ValueError, "dropout must be at least 0 and below 1, got 2"),
    (lambda: mixing(9), ValueError, f"x must hold N = 9 tokens, got 12: {TIED}"),
    (lambda: mixing(mask=causal_mask(N)), ValueError, "mask must be None: token mixing"),
    (lambda: KINDS["mlp-mixer"]()(images().mT), ValueError, f"got (4, 3, 8, 6): {TIED}"),
    (lambda: vit("XL/16"), ValueError, 'one of Ti, S, B, L, H and a patch size ("Ti/1'),
    (lambda: mlp_mixer("XL/16"), ValueError, 'one of S, B, L, H and a patch size ("S/1'),
    (lambda: conv_mixer("768/33"), ValueError, "of 1536/20, 768/32, 1024/20, got '768/33'"),
    (lambda: vit("Ti"), ValueError, "got 'Ti'"),
    (lambda: mlp_mixer(16), ValueError, "got 16"),
    (lambda: conv_mixer(768), ValueError, "got 768"),
    (lambda: vit("Ti/16", image_size=100), ValueError, "width 100, got 16"),
]
