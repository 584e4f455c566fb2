"""A model can be traced: its checks stand at the door, and stay in the traced copy."""

import pytest
import torch
from torch import fx

from vitbook.models.hybrid import Hybrid
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.models.vit import VisionTransformer

SIZES = {"image_size": (8, 12), "patch_size": 4, "in_channels": 2, "num_classes": 3}
SIZES |= {"embed_dim": 16}
MODELS = {
    "vit": lambda: VisionTransformer(**SIZES, depth=2, num_heads=2),
    "rotary": lambda: VisionTransformer(
        **SIZES, depth=2, num_heads=2, positions="rotary", layer_scale=0.1, drop_path=0.1
    ),
    "mean": lambda: VisionTransformer(
        **SIZES, depth=2, num_heads=2, positions="sincos_2d", pool="mean"
    ),
    "mlp-mixer": lambda: MlpMixer(**SIZES, depth=2),
    "hybrid": lambda: Hybrid(**SIZES, layers=["mixer", "uniform", "attention"], num_heads=2),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_traced_model_gives_the_same_and_refuses_the_same(name, refused):
    model, x = MODELS[name]().eval(), torch.randn(5, 2, 8, 12)
    traced = fx.symbolic_trace(model)
    assert torch.equal(traced(x), model(x))
    refused(lambda: traced(x.mT), ValueError, "images must")


def test_one_forward_of_a_vit_has_no_check_but_that_of_its_images():
    """A lesson is not a quarter guards: two calls, of the images and of the table."""
    calls = [
        node.target.__name__
        for node in fx.symbolic_trace(MODELS["vit"]()).graph.nodes
        if node.op == "call_function" and node.target.__module__.startswith("vitbook")
    ]
    assert calls == ["images", "_require_fits"]
