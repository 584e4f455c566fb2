"""The checks of chapter 1: right answers pass, stubs wait, and mistakes are named."""

import math

import pytest
import torch

from vitcheck import CheckFailed
from vitcheck.ch01_weighted_average import (
    check_cross_attention,
    check_leak_detector,
    check_masked_weights,
    check_weights_by_hand,
    check_window_mask,
)

# --- weights by hand --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        ([1 / 8, 2 / 8, 5 / 8], [3.5, 4.5]),
        ((0.13, 0.25, 0.63), (3.5, 4.5)),  # rounded
        (torch.tensor([0.125, 0.25, 0.625]), torch.tensor([3.5, 4.5])),
    ],
)
def test_weights_by_hand_takes_the_right_answer(answer, capsys):
    check_weights_by_hand(*answer)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize("answer", [(..., ...), ([0.125, ..., ...], ...), (None, None)])
def test_weights_by_hand_waits_for_an_answer(answer, capsys):
    check_weights_by_hand(*answer)
    assert "not answered yet" in capsys.readouterr().out


LN2, LN5 = math.log(2), math.log(5)
RIGHT = [1 / 8, 2 / 8, 5 / 8]


@pytest.mark.parametrize(
    ("weights", "output", "words"),
    [
        ([0, LN2 / (LN2 + LN5), LN5 / (LN2 + LN5)], [3.0, 5.0], "score of 0 does not mean"),
        ([1, 2, 5], [28, 36], "sum to"),
        ([5 / 8, 2 / 8, 1 / 8], [5.5, 2.5], "third score is the largest"),
        ([0.2, 0.3, 0.5], [3.6, 4.4], "exponentials of their scores"),
        ([0.25, 0.75], [2, 6], "how many weights"),
        ([-0.5, 0.5, 1.0], [0, 8], "negative"),
        (RIGHT, [12, 12], "without their weights"),
        (RIGHT, [4, 4], "same weight"),
        (RIGHT, [4.5, 3.5], "each other's place"),
        (RIGHT, [28, 36], "triangle"),
        (RIGHT, [3.0, 4.5], "your"),
        (RIGHT, [3.5, 4.5, 0.0], "two entries"),
    ],
)
def test_weights_by_hand_names_the_mistake(weights, output, words):
    with pytest.raises(CheckFailed, match=words):
        check_weights_by_hand(weights, output)


# --- cross-attention --------------------------------------------------------------------------


def cross(x, context, w_q, w_k, w_v, *, scale=None, dim=-1, swap=False, values=None):
    if swap:
        x, context = context, x
    q, k, v = x @ w_q, context @ w_k, context @ w_v
    weights = (q @ k.T / (scale or q.shape[-1] ** 0.5)).softmax(dim)
    return weights @ (v if values is None else values(v)), weights


def test_cross_attention_takes_the_right_answer(capsys):
    check_cross_attention(cross)
    assert capsys.readouterr().out.startswith("ok:")


def test_cross_attention_takes_a_right_answer_of_another_form(capsys):
    def loops(x, context, w_q, w_k, w_v):
        rows = []
        for q in x @ w_q:
            raised = torch.stack([(q @ k / 3**0.5).exp() for k in context @ w_k])
            rows.append(raised / raised.sum())
        weights = torch.stack(rows)
        return torch.einsum("ij,jd->id", weights, context @ w_v), weights

    check_cross_attention(loops)
    assert capsys.readouterr().out.startswith("ok:")


def no_exponential(x, context, w_q, w_k, w_v):
    scores = (x @ w_q) @ (context @ w_k).T
    weights = scores / scores.sum(1, keepdim=True)
    return weights @ context @ w_v, weights


def self_only(x, context, w_q, w_k, w_v):
    return cross(x, x, w_q, w_k, w_v)


def keys_by_the_query_matrix(x, context, w_q, w_k, w_v):
    return cross(x, context, w_q, w_q, w_v)


def output_only(x, context, w_q, w_k, w_v):
    return cross(x, context, w_q, w_k, w_v)[0]


def out_of_order(x, context, w_q, w_k, w_v):
    return cross(x, context, w_q, w_k, w_v)[::-1]


def unnormalised(x, context, w_q, w_k, w_v):
    weights = ((x @ w_q) @ (context @ w_k).T / 3**0.5).exp()
    return weights @ context @ w_v, weights


def variant(**options):
    return lambda *inputs: cross(*inputs, **options)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (variant(swap=True), "queries should come from x"),
        (self_only, "context is never asked"),
        (out_of_order, "output first"),
        (output_only, "pair"),
        (variant(dim=0), "columns sum to one"),
        (unnormalised, "sum to one"),
        (no_exponential, "exponential"),
        (keys_by_the_query_matrix, "keys context w_k"),
        (variant(scale=1.0), "not scaled"),
        (variant(scale=5**0.5), "width of the tokens"),
        (variant(scale=3.0), "scale by d"),
        (variant(scale=7.0), "divided by 7.00"),
        (variant(values=lambda v: v.flip(0)), "average of the values"),
        (variant(values=lambda v: 2 * v), "average of the values"),
    ],
)
def test_cross_attention_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_cross_attention(wrong)


# --- window mask ------------------------------------------------------------------------------


def window(n, width):
    distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    return (distance >= 0) & (distance < width)


@pytest.mark.parametrize(
    "right",
    [
        window,
        lambda n, w: torch.ones(n, n, dtype=torch.bool).tril().triu(1 - w),
        lambda n, w: torch.tensor([[0 <= i - j < w for j in range(n)] for i in range(n)]),
    ],
)
def test_window_mask_takes_the_right_answer(right, capsys):
    check_window_mask(right)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda n, w: window(n, w).T, "which axis is the query"),
        (lambda n, w: ~window(n, w), "other way round"),
        (lambda n, w: window(n, w).float(), "torch.bool"),
        (lambda n, w: window(n, w + 1), "who is counted"),
        (lambda n, w: window(n, w - 1), "who is counted"),
        (lambda n, w: window(n, n), "ever close"),
        (lambda n, w: window(n, w) | window(n, w).T, "see a later one"),
        (lambda n, w: window(n, w).tril(-1), "look at itself"),
        (lambda n, w: torch.ones(n, n, dtype=torch.bool).tril(1).triu(1 - w), "see a later one"),
        (lambda n, w: window(n, 3) if w == 3 else window(n, 4), "width 1"),
        (lambda n, w: window(n, min(w, 6)), "longer than the text"),
        (lambda n, w: window(n, w)[0], "shape"),
    ],
)
def test_window_mask_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_window_mask(wrong)


def test_window_mask_refuses_blocks_instead_of_a_sliding_window():
    def blocks(n, width):
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        return (i // width == j // width) & (j <= i)

    for _ in range(8):  # whatever sizes are drawn
        with pytest.raises(CheckFailed, match=r"who is counted|moved by one"):
            check_window_mask(blocks)


# --- masked weights ---------------------------------------------------------------------------


def masked(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def by_hand(scores, mask):
    top = torch.where(mask, scores, -math.inf).amax(-1, keepdim=True)
    raised = torch.where(mask, scores - top, -math.inf).exp()
    return raised / raised.sum(-1, keepdim=True)


@pytest.mark.parametrize("right", [masked, by_hand])
def test_masked_weights_takes_the_right_answer(right, capsys):
    check_masked_weights(right)
    assert capsys.readouterr().out.startswith("ok:")


def renormalised(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


def in_place(scores, mask):
    return scores.masked_fill_(~mask, -math.inf).softmax(-1)


def full_masks_only(scores, mask):
    return masked(scores, mask if mask.ndim == scores.ndim else torch.ones_like(scores).bool())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s, m: (s * m).softmax(-1), "e to the power 0 is 1"),
        (lambda s, m: s.masked_fill(~m, -3.0).softmax(-1), "forbidden key still has weight"),
        (lambda s, m: s.softmax(-1), "forbidden key still has weight"),
        (lambda s, m: s.masked_fill(m, -math.inf).softmax(-1), "does True mean"),
        (lambda s, m: s.softmax(-1) * m, "mask after the softmax"),
        (lambda s, m: masked(2 * s, m), "exponentials of their scores"),
        (lambda s, m: m / m.sum(-1, keepdim=True), "exponentials of their scores"),
        (renormalised, "very large score"),
        (lambda s, m: (s - 1e4 * ~m).softmax(-1), "very large score"),
        (in_place, "in place"),
        (full_masks_only, "serve every query"),
    ],
)
def test_masked_weights_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_masked_weights(wrong)


# --- leak detector ----------------------------------------------------------------------------


def change(tokens, j):
    changed = tokens.clone()
    changed[j] = torch.randn(tokens.shape[1], generator=torch.Generator().manual_seed(j))
    return changed


def detector(layer, tokens):
    before = layer(tokens)
    return any(
        not torch.equal(layer(change(tokens, j))[:j], before[:j]) for j in range(1, len(tokens))
    )


def by_gradient(layer, tokens):
    jacobian = torch.autograd.functional.jacobian(layer, tokens)
    return (jacobian.abs().sum((1, 3)).triu(1) > 0).any()


def by_cutting(layer, tokens):
    whole = layer(tokens)
    return not all(
        torch.allclose(layer(tokens[:n]), whole[:n], atol=1e-9) for n in range(1, len(tokens))
    )


@pytest.mark.parametrize("right", [detector, by_gradient, by_cutting])
def test_leak_detector_takes_the_right_answer(right, capsys):
    for _ in range(3):
        check_leak_detector(right)
        assert capsys.readouterr().out.startswith("ok:")


def all_outputs(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j)), layer(tokens)) for j in range(1, len(tokens))
    )


def itself_too(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[: j + 1], layer(tokens)[: j + 1])
        for j in range(1, len(tokens))
    )


def last_token_only(layer, tokens):
    return not torch.equal(layer(change(tokens, -1 % len(tokens)))[:-1], layer(tokens)[:-1])


def neighbours_only(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[j - 1], layer(tokens)[j - 1])
        for j in range(1, len(tokens))
    )


def past_instead_of_future(layer, tokens):
    return any(
        not torch.equal(layer(change(tokens, j))[j + 1 :], layer(tokens)[j + 1 :])
        for j in range(len(tokens) - 1)
    )


def coarse(layer, tokens):
    return any(
        not torch.allclose(layer(change(tokens, j))[:j], layer(tokens)[:j], atol=1e-2)
        for j in range(1, len(tokens))
    )


def shifted(layer, tokens):
    def moved(j):
        changed = tokens.clone()
        changed[j] += 1.0
        return layer(changed)[:j]

    return any(
        not torch.allclose(moved(j), layer(tokens)[:j], atol=1e-9) for j in range(1, len(tokens))
    )


def in_place_detector(layer, tokens):
    tokens[-1] += 1
    return True


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda layer, tokens: True, "does not leak"),
        (lambda layer, tokens: False, "mean over all tokens"),
        (all_outputs, "mixes no tokens"),
        (itself_too, "mixes no tokens"),
        (past_instead_of_future, "causal attention"),
        (last_token_only, "change every token"),
        (neighbours_only, "compare neighbours only"),
        (coarse, "tolerance"),
        (shifted, "same to all its features"),
        (in_place_detector, "in place"),
        (lambda layer, tokens: 0.3, "True or False"),
    ],
)
def test_leak_detector_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_leak_detector(wrong)


# --- stubs ------------------------------------------------------------------------------------


def not_written(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize(
    "check", [check_cross_attention, check_window_mask, check_masked_weights, check_leak_detector]
)
@pytest.mark.parametrize("stub", [lambda *inputs: None, lambda *inputs: ..., not_written])
def test_a_stub_is_not_answered_yet(check, stub, capsys):
    check(stub)
    assert "not answered yet" in capsys.readouterr().out
