"""Each check of chapter 4 passes the right answer and names the planted mistakes."""

import copy

import pytest
import torch

from vitcheck import CheckFailed
from vitcheck.ch04_many_heads import (
    check_counts,
    check_repack,
    check_shift_head,
    check_split_heads,
    check_without_head,
)


def split(x, h):
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


COUNTS = {
    "W_Q of all 12 heads together": 768 * 768,
    "W_Q of one of the 12 heads": 768 * 64,
    "W_Q of all heads, if there are 24": 768 * 768,
    "W_Q of all 12 heads, embedding cut in 12": 12 * 64 * 64,
}


def contribution(layer, x, head):
    q, k, v = layer.project(x)
    d = layer.head_dim
    weights = (q @ k.transpose(-2, -1) / d**0.5).softmax(-1)
    own = slice(head * d, (head + 1) * d)
    return (weights @ v)[:, head] @ layer.proj.weight[:, own].T


def without(layer, x, head):
    return layer(x) - contribution(layer, x, head)


def silenced(layer, x, head, rows=False, inside=False):
    layer = layer if inside else copy.deepcopy(layer)
    own = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    with torch.no_grad():
        if rows:
            layer.proj.weight[own] = 0.0
        else:
            layer.proj.weight[:, own] = 0.0
    return layer(x)


def louder(layer, x, head):
    h, bias = layer.num_heads, layer.proj.bias
    return (without(layer, x, head) - bias) * h / (h - 1) + bias


def repack(weight, h):
    return weight.unflatten(0, (h, 3, -1)).transpose(0, 1).flatten(0, 2)


def unpack(weight, h):
    return weight.unflatten(0, (3, h, -1)).transpose(0, 1).flatten(0, 2)


def queries_only(weight, h):
    right = repack(weight, h)
    D = weight.shape[1]
    return torch.cat([right[:D], right[2 * D :], right[D : 2 * D]])


def shift(step, sharpness=20.0, square=1.0, sign=1.0, constant=True):
    far = 2.0 * sign * step if constant else 0.0
    W_Q = torch.tensor([[far, -square], [2.0, 0.0], [0.0, 0.0]])
    W_K = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return sharpness * W_Q, W_K


def one_token_only(step):  # right for token 3 alone
    W_Q = torch.tensor([[2.0 * (3 + step), -1.0], [0.0, 0.0], [0.0, 0.0]])
    return 20 * W_Q, shift(step)[1]


def half_step(step):
    return shift(2 * step)


RIGHT = [
    (check_split_heads, split),
    (check_split_heads, lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1)),
    (check_counts, lambda: COUNTS),
    (check_without_head, without),
    (check_without_head, silenced),
    (check_repack, repack),
    (check_shift_head, shift),
    (check_shift_head, lambda step: shift(step, sharpness=50.0)),
]

MISTAKES = [
    (check_split_heads, lambda x, h: x.reshape(*x.shape[:2], h, -1), "before the tokens"),
    (check_split_heads, lambda x, h: x.reshape(len(x), h, x.shape[1], -1), "how many tokens does"),
    (
        check_split_heads,
        lambda x, h: x.reshape(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
        "a head's columns neighbours",
    ),
    (check_split_heads, lambda x, h: split(x, h).flip(1), "head 0 should hold the columns 0 to 3"),
    (
        check_split_heads,
        lambda x, h: x.view(-1, h, x.shape[2] // h).view(*x.shape[:2], h, -1).transpose(1, 2),
        "view size is not compatible",
    ),
    (check_split_heads, lambda x, h: x, "expected (2, 3, 5, 4)"),
    (check_counts, lambda: COUNTS | {"W_Q of one of the 12 heads": 768 * 768}, "how many rows"),
    (check_counts, lambda: COUNTS | {"W_Q of one of the 12 heads": 64 * 64}, "that is d x d"),
    (check_counts, lambda: COUNTS | {"W_Q of one of the 12 heads": 64}, "the width of a head"),
    (
        check_counts,
        lambda: COUNTS | {"W_Q of all 12 heads together": 12 * 768 * 768},
        "is W_Q of one head D x D",
    ),
    (
        check_counts,
        lambda: COUNTS | {"W_Q of all heads, if there are 24": 2 * 768 * 768},
        "is each of them as wide",
    ),
    (
        check_counts,
        lambda: COUNTS | {"W_Q of all 12 heads together": 3 * 768 * 768},
        "only W_Q is asked",
    ),
    (
        check_counts,
        lambda: COUNTS | {"W_Q of all 12 heads, embedding cut in 12": 64 * 64},
        "how many heads are there",
    ),
    (check_counts, lambda: {"W_Q of all 12 heads together": 768 * 768}, "has lost its answer"),
    (check_counts, lambda: 768, "return a dictionary"),
    (check_without_head, lambda layer, x, head: layer(x), "what is missing"),
    (check_without_head, contribution, "what is left without it"),
    (
        check_without_head,
        lambda layer, x, head: without(layer, x, head) - layer.proj.bias,
        "belongs to no head",
    ),
    (check_without_head, lambda layer, x, head: without(layer, x, head - 1), "from 1"),
    (
        check_without_head,
        lambda layer, x, head: silenced(layer, x, head, rows=True),
        "did you silence rows",
    ),
    (check_without_head, louder, "speak louder"),
    (
        check_without_head,
        lambda layer, x, head: silenced(layer, x, head, inside=True),
        "weights have changed",
    ),
    (check_repack, lambda weight, h: weight, "which rows must move"),
    (check_repack, unpack, "that is the way back"),
    (check_repack, queries_only, "are the keys and the values"),
    (check_repack, lambda weight, h: repack(weight, h).flip(0), "stood first"),
    (
        check_repack,
        lambda weight, h: weight.view(3, h, -1).transpose(0, 1).reshape(weight.shape),
        "the way back",
    ),
    (
        check_repack,
        lambda weight, h: repack(weight.T.reshape(weight.shape), h),
        "some row was lost, doubled or mixed",
    ),
    (check_repack, lambda weight, h: weight.view(h, 3, -1).transpose(0, 1), "expected (24, 8)"),
    (check_shift_head, lambda step: shift(step, sign=-1.0), "to the other side"),
    (check_shift_head, lambda step: shift(step, square=0.0), "keeps a far token from winning"),
    (check_shift_head, lambda step: shift(step, constant=False), "where does the step come in"),
    (check_shift_head, lambda step: shift(step, sharpness=1.0), "a softmax sharper"),
    (check_shift_head, one_token_only, "every token looks at token 4"),
    (check_shift_head, half_step, "where is its maximum"),
    (check_shift_head, lambda step: shift(step)[0], "should be a pair"),
    (check_shift_head, lambda step: tuple(W.T for W in shift(step)), "expected (3, 2)"),
]

CHECKS = [
    check_split_heads,
    check_counts,
    check_without_head,
    check_repack,
    check_shift_head,
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_the_right_answer_passes(check, answer, capsys):
    for _ in range(3):  # other inputs each time
        check(answer)
        printed = capsys.readouterr().out
        assert printed.startswith("ok:")
        assert printed.count("\n") == 1


@pytest.mark.parametrize(("check", "answer", "words"), MISTAKES)
def test_a_mistake_is_named(check, answer, words):
    with pytest.raises(CheckFailed) as failure:
        check(answer)
    assert words in str(failure.value)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("stub", [lambda *args: ..., lambda *args: None], ids=["dots", "None"])
def test_a_stub_is_not_answered_yet(check, stub, capsys):
    check(stub)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_unfinished_counts_are_not_answered_yet(capsys):
    check_counts(lambda: COUNTS | {"W_Q of one of the 12 heads": ...})
    assert capsys.readouterr().out.startswith("not answered yet")
