"""Are you ready?: shapes, softmax, nn.Linear."""

import torch
from case import Case, stub
from torch import nn

from vitcheck.exercises.ready import check_linear, check_shapes, check_softmax

SHAPES = {
    "x @ w": (2, 5, 4),
    "x.transpose(1, 2)": (2, 3, 5),
    "x @ x.transpose(1, 2)": (2, 5, 5),
    "x.mean(dim=1)": (2, 3),
    "x[:, 0]": (2, 3),
    "x[:, :1]": (2, 1, 3),
    "x.softmax(dim=-1)": (2, 5, 3),
    "x + x.mean(dim=1, keepdim=True)": (2, 5, 3),
}


def shapes(expression, shape, words):
    return SHAPES | {expression: shape}, words


def linear(w, b, *, transpose=True, bias=True, keep_weight=True):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=bias)
    with torch.no_grad():
        if keep_weight:
            layer.weight.copy_(w.T if transpose else w)
        if bias:
            layer.bias.copy_(b)
    return layer


def linear_in_float64(w, b):
    layer = nn.Linear(*w.shape).double()
    layer.load_state_dict({"weight": w.T.double(), "bias": b.double()})
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


CASES = [
    Case(
        check_shapes,
        also={"lists": {key: list(shape) for key, shape in SHAPES.items()}},
        wrong={
            "both axes kept": shapes("x @ w", (2, 5, 3, 4), "summed away"),
            "not turned": shapes("x.transpose(1, 2)", (3, 5, 2), "change places"),
            "pairs of features": shapes("x @ x.transpose(1, 2)", (2, 3, 3), "pairs of what"),
            "mean kept": shapes("x.mean(dim=1)", (2, 1, 3), "averaged is gone"),
            "index kept": shapes("x[:, 0]", (2, 1, 3), "indexed with a number"),
            "slice gone": shapes("x[:, :1]", (2, 3), "sliced stays"),
            "softmax reduces": shapes("x.softmax(dim=-1)", (2, 5), "softmax change a shape"),
            "not stretched": shapes("x + x.mean(dim=1, keepdim=True)", (2, 1, 3), "stretched"),
        },
        stubs=(SHAPES | {"x @ w": ...}, dict.fromkeys(SHAPES, ...), ..., None),
    ),
    Case(
        check_softmax,
        wrong={
            "no exponential": (lambda s: s / s.sum(-1, keepdim=True), "positive"),
            "not divided": (lambda s: s.exp(), "each row sum to one"),
            "powers of two": (
                lambda s: 2**s / (2**s).sum(-1, keepdim=True),
                "exponentials of their scores",
            ),
            "axis 1": (lambda s: s.softmax(1), "which axis is the last"),
            "overflow": (lambda s: s.exp() / s.exp().sum(-1, keepdim=True), "too large for"),
        },
        stubs=(stub, lambda s: None),
    ),
    Case(
        check_linear,
        also={"float64 inside": linear_in_float64},
        wrong={
            "as given": (weight_as_given, "which comes first"),
            "square by luck": (square_by_luck, "right way round"),
            "bias forgotten": (forgot_the_bias, "is the bias"),
            "no bias": (lambda w, b: linear(w, b, bias=False), "where did the bias go"),
            "first weights kept": (lambda w, b: linear(w, b, keep_weight=False), "hold W at all"),
            "no layer": (lambda w, b: w.T, "return an nn.Linear"),
        },
        stubs=(stub, lambda w, b: None),
    ),
]
