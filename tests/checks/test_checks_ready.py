"""The checks of "Are you ready?": right answers pass, stubs wait, and mistakes are named."""

import pytest
import torch
from torch import nn

from vitcheck import CheckFailed
from vitcheck.ready import check_linear, check_shapes, check_softmax

RIGHT = {
    "x @ w": (2, 5, 4),
    "x.transpose(1, 2)": (2, 3, 5),
    "x @ x.transpose(1, 2)": (2, 5, 5),
    "x.mean(dim=1)": (2, 3),
    "x[:, 0]": (2, 3),
    "x[:, :1]": (2, 1, 3),
    "x.softmax(dim=-1)": (2, 5, 3),
    "x + x.mean(dim=1, keepdim=True)": (2, 5, 3),
}


def test_shapes_takes_the_right_answer(capsys):
    check_shapes(RIGHT)
    check_shapes({expression: list(shape) for expression, shape in RIGHT.items()})
    assert capsys.readouterr().out.count("ok:") == 2


@pytest.mark.parametrize("stub", [{**RIGHT, "x @ w": ...}, dict.fromkeys(RIGHT, ...), ..., None])
def test_shapes_waits_for_an_answer(stub, capsys):
    check_shapes(stub)
    assert "not answered yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("expression", "wrong", "words"),
    [
        ("x @ w", (2, 5, 3, 4), "summed away"),
        ("x @ w", (2, 4, 5), "summed away"),
        ("x.transpose(1, 2)", (3, 5, 2), "change places"),
        ("x @ x.transpose(1, 2)", (2, 3, 3), "pairs of what"),
        ("x.mean(dim=1)", (2, 1, 3), "averaged is gone"),
        ("x.mean(dim=1)", (5, 3), "averaged is gone"),
        ("x[:, 0]", (2, 1, 3), "indexed with a number"),
        ("x[:, :1]", (2, 3), "sliced stays"),
        ("x.softmax(dim=-1)", (2, 5), "softmax change a shape"),
        ("x + x.mean(dim=1, keepdim=True)", (2, 1, 3), "stretched"),
        ("x @ w", 40, "as a tuple"),
    ],
)
def test_shapes_names_the_mistake(expression, wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_shapes({**RIGHT, expression: wrong})


def test_shapes_wants_all_expressions():
    with pytest.raises(CheckFailed, match="all the expressions"):
        check_shapes({"x @ w": (2, 5, 4)})


def softmax(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


@pytest.mark.parametrize("right", [softmax, lambda s: torch.softmax(s, -1)])
def test_softmax_takes_the_right_answer(right, capsys):
    check_softmax(right)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s: s.exp() / s.exp().sum(), "1 of its own"),
        (lambda s: s.softmax(0), "columns sum to one"),
        (lambda s: s / s.sum(-1, keepdim=True), "positive"),
        (lambda s: s.exp(), "each row sum to one"),
        (lambda s: 2**s / (2**s).sum(-1, keepdim=True), "exponentials of their scores"),
        (lambda s: s.softmax(1), "which axis is the last"),
        (lambda s: s.exp() / s.exp().sum(-1, keepdim=True), "too large for a float"),
        (lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True), "vanishes"),
        (lambda s: s.exp() / s.exp().sum(-1), "your code stopped"),
        (lambda s: s.softmax(-1)[0], "shape"),
    ],
)
def test_softmax_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_softmax(wrong)


def linear(w, b, *, transpose=True, bias=True, keep_weight=True):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=bias)
    with torch.no_grad():
        if keep_weight:
            layer.weight.copy_(w.T if transpose else w)
        if bias:
            layer.bias.copy_(b)
    return layer


def square_by_luck(w, b):
    return linear(w, b, transpose=w.shape[0] != w.shape[1])


def forgot_the_bias(w, b):
    layer = nn.Linear(*w.shape)
    layer.weight = nn.Parameter(w.T)
    return layer


def weight_as_given(w, b):
    layer = nn.Linear(*w.shape)
    layer.weight, layer.bias = nn.Parameter(w), nn.Parameter(b)
    return layer


def test_linear_takes_the_right_answer(capsys):
    check_linear(linear)
    assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (weight_as_given, "which comes first"),
        (square_by_luck, "right way round"),
        (forgot_the_bias, "is the bias"),
        (lambda w, b: linear(w, b, bias=False), "where did the bias go"),
        (lambda w, b: linear(w, b, keep_weight=False), "hold W at all"),
        (lambda w, b: linear(w, 0 * b), "is the bias"),
        (lambda w, b: linear(w, b, transpose=False), "your code stopped"),
        (lambda w, b: w.T, "return an nn.Linear"),
    ],
)
def test_linear_names_the_mistake(wrong, words):
    with pytest.raises(CheckFailed, match=words):
        check_linear(wrong)


@pytest.mark.parametrize("check", [check_softmax, check_linear])
@pytest.mark.parametrize("stub", [lambda *inputs: None, lambda *inputs: ...])
def test_a_stub_is_not_answered_yet(check, stub, capsys):
    check(stub)
    assert "not answered yet" in capsys.readouterr().out
