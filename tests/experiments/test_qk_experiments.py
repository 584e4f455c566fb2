"""What is compared in chapter 5's experiments is what their records say it is."""

import math
import sys

import pytest
import torch

from experiments.machinery.experiment import load_experiment

VARIANTS, TIMING = load_experiment("qk_variants"), load_experiment("qk_timing")
variants, timing = (sys.modules[f"experiment_qk_{name}"] for name in ("variants", "timing"))
B, N, D, HEADS = 3, 7, 20, 4


@pytest.fixture
def x():
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(0))


def layers(*kinds, num_heads=HEADS):
    """Layers with the same values and output projection."""
    torch.manual_seed(1)
    made = [kind(embed_dim=D, num_heads=num_heads) for kind in kinds]
    for other in made[1:]:
        other.value, other.proj = made[0].value, made[0].proj
    return made


def test_two_matrices_merged_give_the_same_output(x):
    two, merged = layers(variants.Separate, variants.Merged)
    wq, wk = (linear.weight.view(HEADS, -1, D) for linear in (two.query, two.key))  # (h, d, D)
    assert not torch.allclose(two(x), merged(x))
    merged.merged_weight.data = wq.transpose(1, 2) @ wk  # W_Q W_K^T, (h, D, D)
    torch.testing.assert_close(two.attention_weights(x), merged.attention_weights(x))
    torch.testing.assert_close(two(x), merged(x))
    swapped = merged.attention_weights(x).clone()
    merged.merged_weight.data = merged.merged_weight.data.transpose(1, 2)
    assert not torch.allclose(merged.attention_weights(x), swapped, atol=1e-3)


def test_queries_that_are_the_tokens_are_an_identity_for_w_q(x):
    two, fixed = layers(variants.Separate, variants.Identity)
    two.query.weight.data, two.key = torch.eye(D), fixed.key
    torch.testing.assert_close(two(x), fixed(x))


def test_with_one_head_identity_is_a_merged_matrix(x):
    fixed, merged = layers(variants.Identity, variants.Merged, num_heads=1)
    merged.merged_weight.data = fixed.key.weight.data[None]
    torch.testing.assert_close(fixed(x), merged(x))


def test_usual_attention_without_bias_is_the_separate_variant(x):
    from vitbook.attention import MultiHeadSelfAttention

    (two,) = layers(variants.Separate)
    usual = MultiHeadSelfAttention(embed_dim=D, num_heads=HEADS)
    usual.qkv.weight.data = torch.cat([two.query.weight, two.key.weight, two.value.weight])
    usual.qkv.bias.data = torch.cat([torch.zeros(2 * D), two.value.bias])
    usual.proj = two.proj
    torch.testing.assert_close(usual(x), two(x))
    torch.testing.assert_close(usual.attention_weights(x), two.attention_weights(x))


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("scores", variants.LAYERS)
def test_scores_start_with_variance_one_in_a_whole_model(scores, heads):
    tokens = torch.randn(20, 16, 64, generator=torch.Generator().manual_seed(2))
    measured = []
    for seed in range(5):
        torch.manual_seed(seed)
        layer = variants.build("fashion_mnist", heads, scores, "width").encoder.blocks[0].attn
        q, k = layer.queries_and_keys(tokens)
        measured.append((q @ k.transpose(-2, -1) / math.sqrt(64 / heads)).var().item())
    assert sum(measured) / 5 == pytest.approx(1, abs=0.1)


def test_equal_parameters_are_equal_within_a_percent_and_equal_width_is_equal():
    for condition in variants.conditions():
        model = variants.build(**condition)
        usual = variants.build(**{**condition, "scores": "separate", "budget": "width"})
        ours, theirs = (sum(p.numel() for p in m.parameters()) for m in (model, usual))
        if condition["budget"] == "width":
            assert model.head.in_features == usual.head.in_features
        else:
            assert ours == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize(("scores", "count"), [("separate", 2), ("merged", 4), ("identity", 1)])
def test_parameters_of_the_scores_are_counted(scores, count):
    model = variants.build("matching_pairs", 4, scores, "width")
    assert variants.score_parameters(model) == 2 * count * 64**2  # two layers


def test_a_curve_is_made_of_means_and_learning_is_noticed():
    assert variants.curve([1.0, 3.0, 5.0, 7.0, 9.0], points=2) == [2.0, 6.0]
    losses = [1.0] * 30 + [0.0] * 30
    assert variants.steps_until(losses, 0.5) == 41  # 11 of the last 20 are zero
    assert variants.steps_until(losses, 0.0) == 60
    assert variants.steps_until([0.1], 0.5) == 1


def test_the_order_of_the_products_does_not_change_the_scores():
    x, wq, wk, m = timing.tensors(7, 5, 3, seed=0)
    scores = [order(x, wq, wk, m) for order in timing.ORDERS.values()]
    assert scores[0].shape == (7, 7)
    torch.testing.assert_close(scores[0], scores[1])
    torch.testing.assert_close(scores[0], scores[2])
    assert not torch.allclose(scores[0], scores[0].T, atol=1e-3)


def test_multiplications_are_those_of_the_formulas():
    n, width, d = 7, 5, 3
    counted = {name: timing.multiplies(f, n, width, d) for name, f in timing.ORDERS.items()}
    assert counted == {
        "separate": (2 * n * width * d + n * n * d) / 1e9,
        "reordered": (2 * n * width * d + n * n * width) / 1e9,
        "merged": (n * width * width + n * n * width) / 1e9,
    }
    crossing = {**timing.SQUARE, "head_dim": 384}
    assert crossing in TIMING.conditions
    merged, separate = (
        timing.multiplies(timing.ORDERS[o], **crossing) for o in ("merged", "separate")
    )
    assert merged == separate


def test_rounds_go_to_and_fro_and_the_first_is_not_counted():
    order = []
    took = timing.medians({name: lambda n=name: order.append(n) for name in "ab"}, 3)
    assert "".join(order) == "ab" + "ba" + "ab" + "ba"
    assert took.keys() == {"a", "b"}
