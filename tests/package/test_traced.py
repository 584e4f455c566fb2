"""A model can be traced and exported: its checks stand at the door, and stay in a traced copy."""

from itertools import product

import pytest
import torch
from torch import fx
from torch.testing import assert_close

from vitbook.layers.positions import POSITIONS
from vitbook.models.conv_mixer import ConvMixer
from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import POOLS, VisionTransformer

SIZES = {"image_size": (8, 12), "patch_size": 4, "in_channels": 2, "num_classes": 3}
SIZES |= {"embed_dim": 16}
FULL = {"layer_scale": 0.1, "drop_path": 0.3, "dropout": 0.2, "num_registers": 2, "pre_norm": True}
MODELS = {
    **{
        f"{positions}-{pool}": lambda kind=(positions, pool): VisionTransformer(
            **SIZES, **FULL, depth=2, num_heads=2, positions=kind[0], pool=kind[1]
        )
        for positions, pool in product(POSITIONS, POOLS)
    },
    "mlp-mixer": lambda: MlpMixer(**SIZES, depth=2),
    "conv-mixer": lambda: ConvMixer(**SIZES, depth=2, kernel_size=3),
    "hybrid": lambda: Hybrid(**SIZES, layers=["mixer", "uniform", "attention"], num_heads=2),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_traced_model_gives_the_same_and_refuses_the_same(name, training, refused):
    model, x = MODELS[name]().train(training), torch.randn(5, 2, 8, 12)
    traced = fx.symbolic_trace(model)
    answers = []
    for one in (traced, model):
        torch.manual_seed(1)  # of what is dropped
        answers.append(one(x))
    assert torch.equal(*answers)
    refused(lambda: traced(x.mT), ValueError, "images must")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_gives_the_same_for_any_number_of_images(name):
    model, x = MODELS[name]().eval(), torch.randn(5, 2, 8, 12)
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(model, (x[:2],), dynamic_shapes=(batch,)).module()
    for images in (x, x[:1]):
        assert_close(program(images), model(images), atol=1e-6, rtol=1e-5)


def test_one_forward_of_a_vit_has_no_check_but_that_of_its_images():
    """A lesson is not a quarter guards: two calls, of the images and of the table."""
    graph = fx.symbolic_trace(VisionTransformer(**SIZES, depth=2, num_heads=2)).graph
    calls = [
        node.target.__name__
        for node in graph.nodes
        if node.op == "call_function" and node.target.__module__.startswith("vitbook")
    ]
    assert calls == ["images", "_require_fits"]
