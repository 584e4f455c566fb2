"""Checks of chapter 2: softmax, temperature, the scale of scores, and what a map says."""

from __future__ import annotations

import math

import torch

from vitcheck.trial import Trial, staged


@staged(
    "my_softmax",
    ok="positive, sums to one in every row, and no score is too large for it",
    right=lambda scores: scores.softmax(-1),
    mistakes={
        "the whole table sums to one. Which axis should each sum run over?": [
            lambda scores: scores.exp() / scores.exp().sum(),
            lambda scores: scores.flatten(1).softmax(1).view_as(scores),
        ],
        "the columns sum to one. Which axis holds the keys?": [
            lambda scores: scores.softmax(-2),
            lambda scores: scores.softmax(0),
        ],
    },
)
def check_stable_softmax(trial: Trial, softmax):
    """Exercise "A softmax that survives": softmax(scores (..., N)) -> weights (..., N)."""
    B, M, N = 2, trial.integer(3, 5), trial.integer(6, 9)
    trial.stage("small scores")
    scores = trial.randn(B, M, N)
    weights = trial.tensor(softmax(scores), (B, M, N), name="the table of weights")
    trial.compare(
        weights,
        scores,
        otherwise=_what_is_no_softmax(weights),
        tolerance=1e-4,
    )

    trial.stage("a square table")  # a sum without keepdim fits here, and divides the wrong axis
    square = trial.randn(N, N)
    trial.close(
        softmax(square),
        square.softmax(-1),
        "right for other shapes, wrong for a square one: did you keep the axis of the sum?",
        tolerance=1e-4,
    )

    trial.stage("large scores")
    small = trial.randn(3, N)
    weights = softmax(small + 1000)
    trial.ask(_no_nan(weights), "e^1000 is infinite. What may you subtract first?")
    trial.close(
        weights,
        small.softmax(-1),
        "adding 1000 to all scores changed the weights. Did you cut off large scores instead of "
        "shifting the row?",
        tolerance=1e-3,
    )

    trial.stage("rows of different height")
    weights = softmax(small + torch.tensor([[-1000.0], [0.0], [1000.0]]))
    lost = "a low row was lost beside a high one. Whose maximum did you subtract?"
    trial.ask(_no_nan(weights), lost)
    weights = trial.tensor(weights, (3, N), name="the table of weights")
    low = "each row must come out as if alone" if weights[0].sum() > 0.5 else lost
    trial.close(weights, small.softmax(-1), low, tolerance=1e-3)

    trial.stage("half precision")
    half = torch.tensor([[20.0, 19.0, 0.0]], dtype=torch.float16)
    weights = trial.tensor(softmax(half), (1, 3), name="the weights in half precision")
    trial.ask((weights.sum(-1) - 1).abs() < 1e-2, "the row does not sum to one in fp16")


def _what_is_no_softmax(weights):
    """The question for weights (..., N) that are not the softmax of their scores."""
    if not bool((weights > 0).all()):
        return "some weights are not positive. Did you raise e to the scores?"
    if not bool(((weights.sum(-1) - 1).abs() < 1e-4).all()):
        return "the rows do not sum to one. What do you divide by?"
    return "the ratio of two weights is not e^(difference of scores)"


def _no_nan(value) -> bool:
    return not (isinstance(value, torch.Tensor) and bool(value.isnan().any()))


def _entropy(weights):
    return -torch.xlogy(weights, weights).sum().item()


@staged("my_temperature", ok="the softmax at this temperature has the entropy that was asked for")
def check_temperature(trial: Trial, temperature):
    """Exercise "A temperature to order": temperature(scores (N,), target in nats) -> number."""
    for case in range(4):
        N = trial.integer(4, 12)
        scores = trial.randn(N).double() * (0.5, 1.0, 5.0, 30.0)[case]
        share = (0.5, 0.2, 0.8, 0.95)[case]
        target = share * math.log(N)
        trial.stage(f"{share:.0%} of the largest entropy, {N} scores")
        T = trial.number(temperature(scores, target), name="the temperature")
        trial.ask(T > 0, f"the temperature is {T:.3g}. Can one be zero or negative?")

        def got(value, scores=scores):
            return _entropy((scores / value).softmax(-1))

        if abs(got(T) - target) < 2e-3:
            continue
        if abs(got(1 / T) - target) < 2e-3:
            trial.fail("dividing by your number misses, multiplying hits. Is it 1 / T?")
        if abs(got(T) / math.log(2) - target) < 3e-3:
            trial.fail("right if entropy is counted in bits. The target is in nats: which log?")
        if abs(got(T) + target - math.log(N)) < 3e-3:
            trial.fail("you hit the distance from ln N. Is an even softmax one of low entropy?")
        if T < 1e-3 or T > 1e3:
            trial.fail(
                f"your search ran away to T = {T:.2g}. Does the entropy rise or fall with T?"
            )
        trial.fail(
            f"the entropy is {got(T):.3f} instead of {target:.3f}. Do the scores, and their scale, "
            "enter your search? Is its interval wide enough, and does it take enough steps?"
        )


@staged(
    "my_scale",
    ok="scores of variance 1, at every width and every variance of q and k",
    right=lambda d, var_q, var_k: (d * var_q * var_k) ** -0.5,
    mistakes={
        "the scores became larger, of variance d squared. Multiply or divide?": (
            lambda d, var_q, var_k: (d * var_q * var_k) ** 0.5
        ),
        "the scores now have variance 1/d. Is it the variance that you must divide by?": (
            lambda d, var_q, var_k: 1 / (d * var_q * var_k)
        ),
        "with variances 4 and 9 you get 36. Do they enter?": lambda d, var_q, var_k: d**-0.5,
        "variances or standard deviations? One of them you divide by is squared.": (
            lambda d, var_q, var_k: d**-0.5 / (var_q * var_k)
        ),
    },
)
def check_scale(trial: Trial, scale):
    """Exercise "The right factor": scale(d, var_q, var_k) -> the factor for q @ k."""

    def look(d, var_q, var_k, otherwise):
        """Compare the variance of the scores, times the factor that the answer gives."""

        def variance(factor):
            return float(factor) ** 2 * d * var_q * var_k

        factor = trial.number(scale(d, var_q, var_k), name="the factor")
        trial.ask(factor > 0, f"the factor is {factor:.3g}; a positive one will do")
        says = otherwise.format(d=d, got=variance(factor))
        trial.compare(factor, d, var_q, var_k, part=variance, otherwise=says, tolerance=1e-3)

    trial.stage("unit variances")
    d = 16 * trial.integer(3, 6)
    look(d, 1.0, 1.0, "at d = {d} the scores have variance {got:.3g}, wanted 1")
    trial.stage("another width")
    d = trial.integer(200, 300)
    look(d, 1.0, 1.0, "at d = {d} the variance is {got:.3g}. Does d enter?")
    trial.stage("other variances")
    look(
        d,
        4.0,
        9.0,
        "the variance is {got:.3g}, wanted 1. How does the variance of one product q_c k_c follow "
        "from the two variances: as their sum, or otherwise?",
    )


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
