"""Maps of transformers' models against what they give themselves, without fusion, when asked.

transformers is no dependency. Where it is not installed this file is skipped; with
``pip install transformers`` ``pytest -s tests/package/test_transformers_maps.py`` prints the table.
"""

import pytest
import torch
from torch import nn

from tests.package.random_models import all_random
from vitbook.inspection import attention_maps, find_num_prefix, record_attention, token_norms

transformers = pytest.importorskip(
    "transformers", reason="transformers is no dependency of this project, and not installed"
)

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 48, "image_size": 32, "patch_size": 8}
STAGES = {"depths": [1] * 4, "hidden_sizes": [8, 16, 16, 32], "num_attention_heads": [1, 2, 2, 4]}
B = 2
TOLERANCE = 1e-6  # some of them take the softmax in float32, also in a model of float64
TABLE: list[tuple[str, str, str]] = []


@pytest.fixture(scope="module", autouse=True)
def table():
    with torch.no_grad():
        yield
    for row in TABLE:
        print("| " + " | ".join(row) + " |")


def model(kind, suffix="Model", **options):
    config = getattr(transformers, f"{kind}Config")(**options)
    built = all_random(getattr(transformers, kind + suffix)(config))
    for parameter in built.parameters():
        if parameter.ndim > 1:
            parameter.data *= 2  # so that queries and keys are far apart, and maps are not even
    return built.eval().double()


def images(side=32):
    return torch.randn(B, 3, side, side).double()


def own_maps(built, x, **given):
    built.set_attn_implementation("eager")
    maps = built(x, output_attentions=True, **given).attentions
    built.set_attn_implementation("sdpa")
    return maps


# Prefix tokens, or None where the model does not say how many there are.
ALIKE = {
    "ViT": ({}, 1),
    "DeiT": ({}, 2),
    "Beit": ({}, 1),
    "Dinov2": ({}, 1),
    "Dinov2WithRegisters": ({"num_register_tokens": 4}, 5),
    "DINOv3ViT": ({"num_register_tokens": 4}, 5),
    "CLIPVision": ({}, 1),
    "ViTMSN": ({}, 1),
    "IJepa": ({}, None),
    "Yolos": ({"image_size": [32, 32], "num_detection_tokens": 3}, 1),
}


@pytest.mark.parametrize("name", ALIKE)
def test_maps_are_those_that_the_model_gives_itself(name):
    options, prefix = ALIKE[name]
    built, x = model(name, **(SIZES | options)), images()
    assert built.config._attn_implementation == "sdpa"
    plain = built(x)[0]
    with record_attention(built):
        assert torch.equal(built(x)[0], plain)
    maps = attention_maps(built, x)
    built.set_attn_implementation("eager")
    opened = attention_maps(built, x)
    expected = torch.stack(own_maps(built, x))
    assert (maps - 1 / maps.shape[-1]).abs().max() > 0.1, "maps without structure pass any test"
    difference = max(float((found - expected).abs().max()) for found in (maps, opened))
    how = f"eager output_attentions, {tuple(maps.shape)}"
    TABLE.append((f"transformers {name}", how, f"{difference:.0e}"))
    assert difference < TOLERANCE
    if prefix is None:
        with pytest.raises(ValueError, match="does not say how many tokens"):
            find_num_prefix(built)
    else:
        assert find_num_prefix(built) == prefix
    norms = token_norms(built, x)
    hidden = built(x, output_hidden_states=True).hidden_states
    assert norms.shape == (3, B, maps.shape[-1])
    assert torch.allclose(norms[:2], torch.stack(hidden[:2]).norm(dim=-1).float(), rtol=1e-5)


REFUSED = {
    "SiglipVision": (SIZES, 32, "'head.attention': 1 queries ask 16 keys"),
    "Pvt": (STAGES | {"image_size": 64}, 64, "256 queries ask 4 keys"),
    "Segformer": (STAGES, 64, "256 queries ask 4 keys"),
    "Swin": (
        {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [1, 1]}
        | {"num_heads": [1, 2], "window_size": 4},
        32,
        "within windows or groups, (32, 1, 16, 16)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_stacked_is_refused_and_had_by_name(name):
    options, side, words = REFUSED[name]
    built, x = model(name, **options), images(side)
    with pytest.raises(ValueError) as refusal:
        attention_maps(built, x)
    said = str(refusal.value)
    assert words in said
    with record_attention(built) as maps:
        built(x)
    expected = own_maps(built, x)
    seen = [maps[name] for name in maps if "head" not in name]
    assert len(seen) == len(expected)
    difference = max(float((a - b).abs().max()) for a, b in zip(seen, expected, strict=True))
    assert difference < TOLERANCE
    TABLE.append((f"transformers {name}", f"by name {difference:.0e}; stacked: refused", said))


def test_the_encoder_of_siglip_is_had_as_its_refusal_says():
    built, x = model("SiglipVision", **SIZES), images()
    maps = attention_maps(built, x, layers="encoder.layers.*.self_attn")
    expected = torch.stack(own_maps(built, x))
    assert torch.allclose(maps, expected, atol=TOLERANCE, rtol=0)
    assert find_num_prefix(built) == 0


def test_the_logits_of_a_classifier_are_taken_out_of_its_output():
    from vitbook.inspection import gradient_drop, occlusion

    built, x = model("ViT", "ForImageClassification", **SIZES, num_labels=5), images()

    class Logits(nn.Module):
        def forward(self, x):
            return built(x).logits

    for target in (None, 3):
        assert torch.equal(
            occlusion(built, x, 16, None, target), occlusion(Logits(), x, 16, None, target)
        )
    with torch.enable_grad():
        assert torch.equal(gradient_drop(built, x, 16), gradient_drop(Logits(), x, 16))
