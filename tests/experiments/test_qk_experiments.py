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
    from vitbook.layers.attention import MultiHeadSelfAttention

    (two,) = layers(variants.Separate)
    usual = MultiHeadSelfAttention(embed_dim=D, num_heads=HEADS)
    usual.qkv.weight.data = torch.cat([two.query.weight, two.key.weight, two.value.weight])
    usual.qkv.bias.data = torch.cat([torch.zeros(2 * D), two.value.bias])
    usual.proj = two.proj
    torch.testing.assert_close(usual(x), two(x))
    torch.testing.assert_close(usual.attention_weights(x), two.attention_weights(x))


@pytest.mark.parametrize("model", ["separate", "merged", "identity", "narrow"])
def test_scores_start_with_variance_one_in_a_whole_model(model):
    tokens = torch.randn(20, 16, 48, generator=torch.Generator().manual_seed(2))
    measured = []
    for seed in range(8):
        layer = variants.build("recall", model, seed).model.encoder.blocks[0].attn
        measured.append(layer.scores(tokens).var().item())
    assert sum(measured) / 8 == pytest.approx(1, abs=0.2)


def test_the_adapted_identity_has_half_the_scores_and_a_third_of_the_decay(x):
    torch.manual_seed(1)
    half = variants.LAYERS["identity, adapted"](embed_dim=D, num_heads=HEADS)
    (whole,) = layers(variants.Identity)
    half.key = whole.key
    torch.testing.assert_close(2 * half.scores(x), whole.scores(x))


def test_the_adapted_identity_is_trained_with_a_third_of_the_decay(monkeypatch):
    given = {}
    monkeypatch.setattr(
        variants.recall, "fit_recall", lambda m, known, config, log: given.update(c=config)
    )
    for model in ("separate", "identity", "identity, adapted"):
        variants.fit({"task": "recall", "model": model}, 0, None, 0.01, learning_rate=0.004)
        adapted = model == "identity, adapted"
        assert given["c"].weight_decay == pytest.approx(0.015 if adapted else 0.05)
        assert given["c"].learning_rate == 0.004


@pytest.mark.parametrize(("task", "answers"), [("pointer", 1), ("recall", 16)])
def test_a_model_answers_as_often_as_the_task_asks(task, answers):
    images, labels = variants.images_of(task, "test", 0.005)
    assert labels.shape == (len(images), answers)
    assert variants.build(task, "merged", 0)(images).shape == (len(images), answers, 4)
    assert -1 <= images.min() < -0.9
    assert 0.9 < images.max() <= 1


def test_what_was_learned_counts_from_the_first_window_below_half_a_guess():
    guess = math.log(4)
    assert variants.learned_after([guess] * 50 + [0.0] * 50) == 61  # 11 of 20 are zero
    assert variants.learned_after([guess] * 50) == 50
    assert variants.learned_after([0.0] * 50) == 20


def test_narrow_scores_have_rank_one_in_each_head(x):
    (narrow,) = layers(variants.Narrow)
    assert narrow(x).shape == (B, N, D)
    assert (torch.linalg.matrix_rank(narrow.scores(x)) == 1).all()


def test_with_two_heads_merged_and_separate_have_equally_many_parameters():
    count = {
        model: sum(p.numel() for p in variants.build("pointer", model, 0).parameters())
        for model in ("separate", "merged", "identity", "narrow")
    }
    assert count["merged"] == count["separate"]
    assert count["separate"] - count["identity"] == 2 * 48**2  # two layers without W_Q
    assert count["separate"] - count["narrow"] == 2 * 2 * (48**2 - 2 * 48)


@pytest.mark.parametrize("kind", ["separate", "merged"])
def test_a_matrix_cut_to_its_own_rank_changes_nothing_and_to_less_it_does(kind):
    answers = variants.build("recall", kind, 0).eval()
    for block in answers.model.encoder.blocks:  # large scores, so that a change shows
        for name, p in block.attn.named_parameters():
            if "value" not in name and "proj" not in name:
                p.data *= 3
    images = torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    whole = answers.model.forward_features(images)  # the head starts small
    own = variants.cut(answers, {"separate": 24, "merged": 48}[kind]).model
    torch.testing.assert_close(own.forward_features(images), whole, atol=1e-3, rtol=1e-3)
    smaller = variants.cut(answers, 2).model
    assert (smaller.forward_features(images) - whole).abs().max() > 0.05
    ranks = torch.linalg.matrix_rank(smaller.encoder.blocks[1].attn.merged_weight, rtol=1e-4)
    assert (ranks == 2).all()
    torch.testing.assert_close(answers.model.forward_features(images), whole)  # is as it was


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
