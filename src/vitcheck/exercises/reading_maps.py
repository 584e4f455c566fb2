"""Checks: maps that are symmetric, and what hiding a token moves."""

import math

import torch

from vitcheck.reading import OPEN, YES, reading
from vitcheck.trial import Trial, staged


@staged("my_tokens", ok="a symmetric map that is not uniform: every row has the same sum to share")
def check_symmetric_map(trial: Trial, tokens):
    """Exercise "A map that is symmetric": tokens(n) -> x (n, d), for n from 4 on."""
    for n in (4, trial.integer(5, 7), 12):
        trial.stage(f"n = {n}")
        x = tokens(n)
        wide = x.shape[-1] if isinstance(x, torch.Tensor) and x.ndim == 2 else 2
        x = trial.tensor(x, (n, wide), name="the tokens").double()
        scores = x @ x.T / math.sqrt(wide)
        weights = scores.softmax(-1)
        uneven = (weights - weights.T).abs().max().item()
        if uneven > 1e-4:
            sums = scores.exp().sum(-1)
            trial.fail(
                f"two mirrored entries differ by {uneven:.2g}. The scores are symmetric, so what "
                f"differs between rows? (Their sums of exponentials: {sums.min():.3g} to "
                f"{sums.max():.3g}.)"
            )
        trial.ask(weights.max() - weights.min() > 1e-3, "uniform: all tokens are alike, or tiny")
        off = weights[~torch.eye(n, dtype=torch.bool)].view(n, n - 1)
        trial.ask(
            off.amax(1) > 1.05 * off.amin(1),
            "symmetric, but some token treats all others alike. Can its neighbours be nearer?",
        )


@staged(
    "my_removal",
    ok="the effect of hiding a token, from weights and values alone",
    right=lambda weights, values: (
        weights / (1 - weights) * (values - weights @ values).norm(dim=-1)
    ),
    mistakes={
        "this is the size of what each token adds. But a hidden token's weight goes to the others: "
        "what do they sum to without it?": lambda weights, values: weights * values.norm(dim=-1),
        "too small by a factor that is larger for large weights. By what are the others divided?": (
            lambda weights, values: weights * (values - weights @ values).norm(dim=-1)
        ),
        "where does the old output enter? A token that says what the others say moves nothing.": (
            lambda weights, values: weights / (1 - weights) * values.norm(dim=-1)
        ),
        "did you average the others with equal weights? They keep their ratios.": (
            lambda weights, values: (
                weights @ values - (values.sum(0) - values) / (len(values) - 1)
            ).norm(dim=-1)
        ),
    },
)
def check_removal(trial: Trial, removal):
    """Exercise "What would move": removal(weights (N,), values (N, d_v)) -> lengths (N,)."""
    N, d_v = trial.integer(5, 8), 3
    trial.stage("shape")
    weights, values = trial.randn(N).softmax(-1), trial.randn(N, d_v)
    got = trial.tensor(removal(weights, values), (N,), name="the lengths")
    trial.stage("against hiding each token in turn")
    trial.compare(
        got,
        weights,
        values,
        otherwise="a length is negative. Did you take the norm?"
        if bool((got < 0).any())
        else "not how far the output moves; try N = 2 on paper",
        tolerance=1e-3,
    )

    trial.stage("a token that agrees with the others")
    same = torch.ones(N, 1) * trial.randn(1, d_v)
    got = trial.tensor(removal(weights, same), (N,), name="the lengths")
    trial.ask(got.abs() < 1e-3, "all values are equal, so hiding one moves nothing")


_STATEMENTS = {
    "no token got more weight from the class token": (
        YES,
        "the row sums to one. How much is left for the others?",
    ),
    "the corner gives the weight 0.6 to the class token": (
        OPEN,
        "that is an entry of another row. Are maps symmetric?",
    ),
    "the corner added more to this output than any other": (
        OPEN,
        "what a token adds is its weight times something. Was that measured?",
    ),
    "without the corner the answer would be another one": (
        OPEN,
        "who hid the corner and looked?",
    ),
    "the corner had the highest score of the row": (
        YES,
        "within a row, does a larger score get a larger weight?",
    ),
    "its score is higher than one with weight 0.3 elsewhere": (
        OPEN,
        "elsewhere may be another row. What may be added to all scores of a row?",
    ),
}


check_row = reading("what one row of a map says, and what it does not", _STATEMENTS)
