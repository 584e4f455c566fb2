"""Checks of "Are you ready?": shapes, softmax, and how nn.Linear stores its weight."""

import torch
from torch import nn

from vitcheck.trial import Trial, staged

SHAPES = {
    "x @ w": (lambda x, w: x @ w, "which axis is summed away, and what takes its place?"),
    "x.transpose(1, 2)": (lambda x, w: x.transpose(1, 2), "which two axes change places?"),
    "x @ x.transpose(1, 2)": (
        lambda x, w: x @ x.transpose(1, 2),
        "one number for each pair; pairs of what?",
    ),
    "x.mean(dim=1)": (lambda x, w: x.mean(dim=1), "an axis that is averaged is gone"),
    "x[:, 0]": (lambda x, w: x[:, 0], "an axis that is indexed with a number is gone"),
    "x[:, :1]": (lambda x, w: x[:, :1], "an axis that is sliced stays, even with one entry"),
    "x.softmax(dim=-1)": (lambda x, w: x.softmax(dim=-1), "does softmax change a shape?"),
    "x + x.mean(dim=1, keepdim=True)": (
        lambda x, w: x + x.mean(dim=1, keepdim=True),
        "an axis of one entry is stretched to fit; what is the shape of the sum?",
    ),
}


@staged("shapes", ok="every shape is right.")
def check_shapes(trial: Trial, shapes):
    """shapes maps an expression in x (2, 5, 3) and w (3, 4) to the shape of its result."""
    x, w = trial.randn(2, 5, 3), trial.randn(3, 4)
    for expression, given in trial.answers(shapes, SHAPES).items():
        compute, question = SHAPES[expression]
        trial.stage(expression)
        right = tuple(compute(x, w).shape)
        trial.ask(isinstance(given, tuple | list), "write the shape as a tuple, such as (2, 5, 3)")
        trial.ask(len(given) == len(right), f"you wrote {len(given)} axes. {question}")
        trial.ask(tuple(given) == right, question)


@staged(
    "softmax",
    ok="rows that sum to one, along the last axis, and no overflow.",
    right=lambda scores: scores.softmax(-1),
    mistakes={
        "the whole table sums to one; should each row have a 1 of its own?": lambda scores: (
            scores.exp() / scores.exp().sum()
        ),
        "your columns sum to one; which axis is the last?": lambda scores: scores.softmax(0),
    },
)
def check_softmax(trial: Trial, softmax):
    """softmax(scores) along the last axis, from exp and sum, for any number of axes."""
    trial.stage("shape")
    scores = trial.randn(3, 4)
    got = trial.tensor(softmax(scores), (3, 4))
    trial.stage("rows")
    trial.ask(got > 0, "is every entry positive? What does exp do to a negative score?")
    otherwise = "does each row sum to one?"
    trial.compare(got, scores, part=lambda table: table.sum(-1), otherwise=otherwise)
    trial.compare(
        got,
        scores,
        otherwise="two entries of a row should be to each other as the exponentials of their "
        "scores",
        tolerance=1e-4,
    )
    trial.stage("more axes")
    batch = trial.randn(2, 3, 4)
    trial.close(softmax(batch), batch.softmax(-1), "with a batch in front, which axis is the last?")
    trial.stage("large scores")
    large = softmax(torch.tensor([[1000.0, 1000.0], [-1000.0, -1000.0]]))
    trial.ask(
        torch.isfinite(torch.as_tensor(large)),
        "exp(1000) is too large for a float and exp(-1000) vanishes; what may you subtract from a "
        "whole row without changing its softmax?",
    )
    trial.close(large, torch.full((2, 2), 0.5), "two equal scores should share the 1 evenly")


@staged("linear layer", ok="the layer computes x @ W + b; its weight is stored as (out, in).")
def check_linear(trial: Trial, make_linear):
    """make_linear(W (in, out), b (out,)) -> nn.Linear that maps x to x @ W + b."""
    for size, shape in (("rectangular", (3, 5)), ("square", (4, 4))):
        trial.stage(f"{size} matrix")
        w, b = trial.randn(*shape), trial.randn(shape[1])
        layer = make_linear(w, b)
        if not isinstance(layer, nn.Linear):
            trial.fail(f"return an nn.Linear, got {type(layer).__name__}")
        stored = tuple(layer.weight.shape)
        trial.ask(
            stored == shape[::-1],
            f"your layer stores a weight of shape {stored} for {shape[0]} inputs and {shape[1]} "
            "outputs; which comes first in PyTorch?",
        )
        x = trial.randn(7, shape[0])
        got, product = layer(x.to(layer.weight.dtype)).detach(), x @ w
        turned = {}
        if shape[0] == shape[1]:
            question = "the shapes fit and the numbers do not: is the weight the right way round?"
            turned[question] = (x - x[:1]) @ w.T
        trial.match(
            got - got[:1],
            product - product[:1],
            turned,
            otherwise="does the layer hold W at all?",
            tolerance=1e-4,
        )
        trial.ask(layer.bias is not None, "where did the bias go?")
        trial.close(got, product + b, "the product is right; is the bias?", tolerance=1e-4)
