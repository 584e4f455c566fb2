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


def softmax(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


def softmax_by_loops(scores):
    result = torch.empty_like(scores)
    flat, rows = scores.reshape(-1, scores.shape[-1]), result.view(-1, scores.shape[-1])
    for i, row in enumerate(flat):
        raised = [(score - max(row)).exp() for score in row]
        rows[i] = torch.stack([value / sum(raised) for value in raised])
    return result


def softmax_by_einsum(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.einsum("...i,...->...i", raised, 1 / torch.einsum("...i->...", raised))


def one_top_for_all(scores):
    raised = (scores - scores.max()).exp()
    return raised / raised.sum(-1, keepdim=True)


def linear(w, b, *, transpose=True, bias=True, keep_weight=True):
    layer = nn.Linear(w.shape[0], w.shape[1], bias=bias)
    with torch.no_grad():
        if keep_weight:
            layer.weight.copy_(w.T if transpose else w)
        if bias:
            layer.bias.copy_(b)
    return layer


def linear_by_loops(w, b):
    layer = nn.Linear(*w.shape)
    with torch.no_grad():
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                layer.weight[j, i] = w[i, j]
        layer.bias[:] = b
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
        right=SHAPES,
        also={"lists": {key: list(shape) for key, shape in SHAPES.items()}},
        wrong={
            "both axes kept": shapes("x @ w", (2, 5, 3, 4), "summed away"),
            "product turned": shapes("x @ w", (2, 4, 5), "summed away"),
            "not turned": shapes("x.transpose(1, 2)", (3, 5, 2), "change places"),
            "pairs of features": shapes("x @ x.transpose(1, 2)", (2, 3, 3), "pairs of what"),
            "mean kept": shapes("x.mean(dim=1)", (2, 1, 3), "averaged is gone"),
            "wrong axis": shapes("x.mean(dim=1)", (5, 3), "averaged is gone"),
            "index kept": shapes("x[:, 0]", (2, 1, 3), "indexed with a number"),
            "slice gone": shapes("x[:, :1]", (2, 3), "sliced stays"),
            "softmax reduces": shapes("x.softmax(dim=-1)", (2, 5), "softmax change a shape"),
            "not stretched": shapes("x + x.mean(dim=1, keepdim=True)", (2, 1, 3), "stretched"),
            "a number": shapes("x @ w", 40, "as a tuple"),
            "one only": ({"x @ w": (2, 5, 4)}, "lost its answer"),
            "empty": ({}, "lost its answer"),
            "another expression": (SHAPES | {"x + x": (2, 5, 3)}, "not one of the questions"),
            "no dictionary": ([(2, 5, 4)], "return a dictionary"),
        },
        stubs=(SHAPES | {"x @ w": ...}, dict.fromkeys(SHAPES, ...), ..., None),
    ),
    Case(
        check_softmax,
        also={
            "by hand": softmax,
            "torch": lambda s: s.softmax(-1),
            "loops": softmax_by_loops,
            "einsum": softmax_by_einsum,
            "logsumexp": lambda s: (s - s.logsumexp(-1, keepdim=True)).exp(),
        },
        wrong={
            "no exponential": (lambda s: s / s.sum(-1, keepdim=True), "positive"),
            "not divided": (lambda s: s.exp(), "each row sum to one"),
            "powers of two": (
                lambda s: 2**s / (2**s).sum(-1, keepdim=True),
                "exponentials of their scores",
            ),
            "axis 1": (lambda s: s.softmax(1), "which axis is the last"),
            "overflow": (lambda s: s.exp() / s.exp().sum(-1, keepdim=True), "too large for"),
            "one shift for all": (one_top_for_all, "vanishes"),
            "axis lost": (lambda s: s.exp() / s.exp().sum(-1), "your code stopped"),
            "first row": (lambda s: s.softmax(-1)[0], "shape"),
        },
        stubs=(stub, lambda s: None),
    ),
    Case(
        check_linear,
        right=linear,
        also={"loops": linear_by_loops, "float64 inside": linear_in_float64},
        wrong={
            "as given": (weight_as_given, "which comes first"),
            "square by luck": (square_by_luck, "right way round"),
            "bias forgotten": (forgot_the_bias, "is the bias"),
            "no bias": (lambda w, b: linear(w, b, bias=False), "where did the bias go"),
            "first weights kept": (lambda w, b: linear(w, b, keep_weight=False), "hold W at all"),
            "bias zero": (lambda w, b: linear(w, 0 * b), "is the bias"),
            "not turned": (lambda w, b: linear(w, b, transpose=False), "your code stopped"),
            "no layer": (lambda w, b: w.T, "return an nn.Linear"),
        },
        stubs=(stub, lambda w, b: None),
    ),
]
