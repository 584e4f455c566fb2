"""Checks of chapter 1: weights, masks, and what a leak is."""

import math
from functools import partial

import torch

from vitbook.layers.attention import causal_mask, scaled_dot_product_attention
from vitcheck.trial import Trial, staged


@staged("weights by hand", ok="the weights sum to one, and the output is their average.")
def check_weights_by_hand(trial: Trial, weights, output):
    """Scores 0, ln 2, ln 5; values [8, 0], [0, 8], [4, 4]. Answers to two decimals pass."""
    trial.stage("weights")
    weights = torch.as_tensor(weights, dtype=torch.float64)
    trial.ask(weights.shape == (3,), "three keys, so how many weights?")
    trial.match(
        weights,
        torch.tensor([1 / 8, 2 / 8, 5 / 8]),
        {},
        otherwise=first_failing(
            (
                (weights >= 0).all(),
                "can a weight be negative? What does the exponential of a score give?",
            ),
            (weights[0] > 0, "a score of 0 does not mean a weight of 0; what is e to the power 0?"),
            ((weights.sum() - 1).abs() < 0.03, "what must the weights sum to?"),
            (weights[1] < weights[2], "the third score is the largest; is the third weight, too?"),
            (
                False,
                "two weights are to each other as the exponentials of their scores; what is e to "
                "the power ln 2?",
            ),
        ),
        tolerance=0.008,
    )
    trial.stage("output")
    output = torch.as_tensor(output, dtype=torch.float64)
    trial.ask(output.shape == (2,), "the values have two entries; how many has their average?")
    values = torch.tensor([[8.0, 0.0], [0.0, 8.0], [4.0, 4.0]], dtype=torch.float64)
    trial.match(
        output,
        weights @ values,
        {
            "did you add the values without their weights?": values.sum(0),
            "did you give all values the same weight?": values.mean(0),
            "are the two entries in each other's place?": (weights @ values).flip(0),
        },
        otherwise=first_failing(
            (output.sum() < 8.2, "an average cannot lie outside the triangle of its values"),
            (False, "is this the average with *your* weights?"),
        ),
        tolerance=0.02,
    )


def first_failing(*properties):
    """The question that belongs to the first property, of (holds, question), that does not hold."""
    return next(question for holds, question in properties if not holds)


def _cross(x, context, w_q, w_k, w_v, scale=lambda x, context, q: q.shape[1] ** 0.5):
    q = x @ w_q
    weights = (q @ (context @ w_k).T / scale(x, context, q)).softmax(-1)
    return weights @ (context @ w_v), weights


@staged(
    "cross-attention",
    ok="the tokens ask, the context answers, and each row sums to one.",
    right=_cross,
    mistakes={
        "the scores are not scaled; what keeps the softmax soft?": partial(
            _cross, scale=lambda x, context, q: 1
        ),
        "you scale by the width of the tokens; which vectors are long?": partial(
            _cross, scale=lambda x, context, q: x.shape[1] ** 0.5
        ),
        "you scale by the number of keys; which vectors make a score large?": partial(
            _cross, scale=lambda x, context, q: len(context) ** 0.5
        ),
        "you scale by d; is it d itself?": partial(_cross, scale=lambda x, context, q: q.shape[1]),
    },
)
def check_cross_attention(trial: Trial, cross_attention):
    """cross_attention(x, context, w_q, w_k, w_v) -> output (N_q, d_v), weights (N_q, N_k)."""
    # no two of the numbers that somebody could scale by are equal: D, d, d * d, N_q, N_k
    n_q, n_k, width, d, d_v = 4, trial.integer(6, 8), 5, 3, 2
    x, context = trial.randn(n_q, width), trial.randn(n_k, width)
    w_q, w_k, w_v = trial.randn(width, d), trial.randn(width, d), trial.randn(width, d_v)
    trial.stage("shapes")
    output, weights = trial.pair(cross_attention(x, context, w_q, w_k, w_v))
    shape = tuple(getattr(weights, "shape", ()))
    trial.ask(shape != (n_q, d_v), "return the output first and the weights second")
    trial.ask(shape != (n_k, n_q), "who asks here? The queries should come from x.")
    trial.ask(shape != (n_q, n_q), "the context is never asked; where do the keys come from?")
    weights = trial.tensor(weights, (n_q, n_k), name="the weights")

    trial.stage("weights")
    scores = (x @ w_q) @ (context @ w_k).T
    raw, logs = scores - scores[:, :1], weights.log() - weights.log()[:, :1]
    slope = (raw * logs).sum() / raw.square().sum()
    trial.compare(
        (output, weights),
        *(x, context, w_q, w_k, w_v),
        part=1,
        otherwise=first_failing(
            (
                not torch.isclose(weights.sum(0), torch.ones(n_k), atol=1e-4).all(),
                "your columns sum to one; over which axis should a token share its 1?",
            ),
            (
                torch.isclose(weights.sum(1), torch.ones(n_q), atol=1e-4).all(),
                "do the weights of each token sum to one?",
            ),
            (
                (weights > 0).all(),
                "a weight is zero or negative; did you leave out the exponential?",
            ),
            (
                ((logs - slope * raw).abs() < 1e-2).all(),
                "are the scores the products of the queries x w_q with the keys context w_k?",
            ),
            (
                False,
                f"your scores are divided by {1 / slope:.2f}; what belongs to queries of width "
                f"{d}?",
            ),
        ),
        tolerance=1e-4,
        name="the weights",
    )
    trial.stage("output")
    trial.close(
        output,
        weights @ (context @ w_v),
        "is the output the average of the values context w_v?",
        tolerance=1e-4,
        name="the output",
    )


def _window(n, width):
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return (distance >= 0) & (distance < width)


def _blocks(n, width):
    place = torch.arange(n)
    return (place[:, None] // width == place // width) & (place <= place[:, None])


@staged(
    "window mask",
    ok="each token sees itself and the few before it, nothing else.",
    right=_window,
    mistakes={
        "True should mean 'may attend'; is yours the other way round?": lambda n, width: (
            ~_window(n, width)
        ),
        "your tokens see in blocks; is each row the one above, moved by one?": _blocks,
    },
)
def check_window_mask(trial: Trial, window_mask):
    """window_mask(n, width) -> (n, n) bool, True = may attend."""
    n, width = trial.integer(7, 10), trial.integer(3, 4)
    trial.stage("shape and type")
    mask = trial.tensor(window_mask(n, width), (n, n), dtype=torch.bool)
    trial.stage("who sees whom")
    last = int(mask[-1].sum())
    backwards = bool(mask.triu(1).any()) and not mask.tril(-1).any()
    trial.compare(
        mask,
        n,
        width,
        otherwise=first_failing(
            (
                mask.diagonal().any() or not mask.triu(1).any(),
                "True should mean 'may attend'; is yours the other way round?",
            ),
            (mask.diagonal().all(), "may a token look at itself? It is part of its own window."),
            (
                not backwards,
                "your first token sees later ones and your last sees none before it; which axis is "
                "the query?",
            ),
            (not mask.triu(1).any(), "does any token see a later one? Look at the first row."),
            (last < n, "does the window ever close behind the token? Look at the last row."),
            (
                last == width,
                f"with width {width} the last token sees {last} tokens; who is counted?",
            ),
            (
                mask[-1, -width:].all(),
                "the tokens in the window should be the ones just before",
            ),
            (False, "is each row the one above, moved by one?"),
        ),
    )
    trial.stage("limits")
    trial.close(
        window_mask(n, 1),
        torch.eye(n, dtype=torch.bool),
        "with a window of width 1, whom does a token see?",
    )
    trial.close(
        window_mask(n, n + 5),
        torch.ones(n, n, dtype=torch.bool).tril(),
        "with a window longer than the text, what is left of the mask?",
    )


def _masked(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


@staged(
    "masked weights",
    ok="forbidden keys weigh nothing and nobody feels their scores.",
    right=_masked,
    mistakes={
        "the allowed keys weigh nothing; does True mean 'may attend' in your version?": (
            lambda scores, mask: _masked(scores, ~mask)
        ),
    },
)
def check_masked_weights(trial: Trial, masked_weights):
    """masked_weights(scores (..., N_q, N_k), mask) -> weights; True = may attend."""
    scores = trial.randn(2, 4, 6)
    mask = torch.rand(2, 4, 6, generator=trial.generator) > 0.4
    mask[..., 1], mask[..., 0] = True, False  # each row keeps one key at least, and loses one

    trial.stage("weights")
    weights = trial.tensor(masked_weights(scores, mask), (2, 4, 6), name="the weights")
    sums = weights.sum(-1)
    trial.compare(
        weights,
        scores,
        mask,
        otherwise=first_failing(
            (
                (weights[~mask] == 0).all(),
                "a forbidden key still has weight; which score gives a weight of exactly zero? "
                "(Not a score of 0: e to the power 0 is 1.)",
            ),
            (
                torch.isclose(sums, torch.ones_like(sums), atol=1e-4).all(),
                "the allowed weights of a row do not sum to one; did you mask after the softmax, "
                "or take the softmax along another axis?",
            ),
            (False, "two allowed keys should be to each other as the exponentials of their scores"),
        ),
        tolerance=1e-4,
    )
    trial.ask(
        weights[~mask] == 0,
        "a forbidden key still has a little weight; which score gives a weight of exactly zero?",
    )
    trial.stage("forbidden scores")
    trial.close(
        torch.nan_to_num(masked_weights(torch.where(mask, scores, 1e5), mask)),
        weights,
        "a very large score at a forbidden key changed the result; does it enter a sum before "
        "it is hidden?",
    )
    trial.stage("low scores")  # lower than any number that somebody fills in for "forbidden"
    trial.close(
        torch.nan_to_num(masked_weights(torch.where(mask, -3e9, scores), mask)),
        mask / mask.sum(-1, keepdim=True),
        "with very low scores at the allowed keys, the weight went to forbidden ones; which number "
        "is smaller than every score?",
    )
    trial.stage("broadcasting")
    padding = torch.arange(6) < 4  # one row for all queries
    trial.close(
        masked_weights(scores, padding),
        _masked(scores, padding),
        "a mask of shape (N_k,) should serve every query",
        tolerance=1e-4,
    )


@staged("leak detector", ok="it finds every leak, and accuses nobody who is innocent.")
def check_leak_detector(trial: Trial, leak_detector):
    """leak_detector(layer, tokens (N, D)) -> True if an output depends on a later token."""
    n, width = trial.integer(6, 8), 4
    w_q, w_k = trial.randn(2, width, width).double()

    def verdict(layer):
        tokens = torch.randn(n, width, generator=trial.generator, dtype=torch.float64)
        answer = leak_detector(layer, tokens)
        plain = isinstance(answer, bool) or getattr(answer, "dtype", None) in (torch.bool, bool)
        trial.ask(plain, f"return True or False, got {type(answer).__name__}")
        return bool(answer)

    def attention(x, mask=None):
        return scaled_dot_product_attention(x @ w_q, x @ w_k, x, mask)

    trial.stage("innocent layers")
    accused = "is flagged and does not leak; which outputs may token j move?"
    trial.ask(not verdict(torch.tanh), f"a layer that mixes no tokens at all {accused}")
    trial.ask(
        not verdict(lambda x: attention(x, causal_mask(len(x)))[0]),
        f"causal attention {accused} Token j itself and the later ones; and rounding is no leak.",
    )
    trial.stage("plain leaks")
    trial.ask(verdict(lambda x: x.mean(0) + x), "you missed a mean over all tokens")
    trial.ask(
        verdict(lambda x: attention(x)[1].tril() @ x),
        "you missed weights that are set to zero after the softmax; are you comparing outputs?",
    )
    trial.stage("rare leaks")
    trial.ask(
        verdict(lambda x: torch.cat([x[:1] + x[-1:], x[1:]]) if len(x) > 1 else x),
        "you missed a leak from the last token to the first; do you compare neighbours only?",
    )
    trial.ask(
        verdict(lambda x: torch.cat([x[:1] + x[1:2], x[1:]]) if len(x) > 1 else x),
        "you missed a leak from the second token to the first; do you change every token?",
    )
    trial.stage("quiet leaks")
    trial.ask(
        verdict(lambda x: x + 1e-4 * x.mean(0)),
        "you missed a weak leak; how large is your tolerance?",
    )
    trial.ask(
        verdict(lambda x: x + (x - x.mean(1, keepdim=True)).mean(0)),
        "you missed a layer that feels only the differences between features; how do you change "
        "a token? Adding the same to all its features leaves them as they were.",
    )
