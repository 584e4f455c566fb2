"""Checks of chapter 1: weights, masks, and what a leak is."""

import torch

from vitbook.attention import causal_mask, scaled_dot_product_attention
from vitcheck.trial import staged


@staged("weights by hand", ok="the weights sum to one, and the output is their average.")
def check_weights_by_hand(trial, weights, output):
    """Scores 0, ln 2, ln 5; values [8, 0], [0, 8], [4, 4]. Answers to two decimals pass."""
    trial.stage("weights")
    weights = torch.as_tensor(weights, dtype=torch.float64)
    trial.ask(weights.shape == (3,), "three keys, so how many weights?")
    trial.ask(weights >= 0, "can a weight be negative? What does the exponential of a score give?")
    trial.ask(weights[0] > 0, "a score of 0 does not mean a weight of 0; what is e to the power 0?")
    trial.ask((weights.sum() - 1).abs() < 0.02, "what must the weights sum to?")
    ratios = weights[1:] / weights[0]
    trial.ask(ratios[0] < ratios[1], "the third score is the largest; is the third weight, too?")
    trial.ask(
        ((ratios - torch.tensor([2.0, 5.0])) / ratios).abs() < 0.1,
        "two weights are to each other as the exponentials of their scores; what is e to the "
        "power ln 2?",
    )
    trial.stage("output")
    output = torch.as_tensor(output, dtype=torch.float64)
    trial.ask(output.shape == (2,), "the values have two entries; how many has their average?")
    values = torch.tensor([[8.0, 0.0], [0.0, 8.0], [4.0, 4.0]], dtype=torch.float64)
    near = {
        "did you add the values without their weights?": values.sum(0),
        "did you give all values the same weight?": values.mean(0),
        "are the two entries in each other's place?": (weights @ values).flip(0),
    }
    for question, wrong in near.items():
        trial.ask((output - wrong).abs().max() > 0.02, question)
    trial.ask(output.sum() < 8.1, "an average cannot lie outside the triangle of its values")
    trial.ask((output - weights @ values).abs() < 0.1, "is this the average with *your* weights?")


@staged("cross-attention", ok="the tokens ask, the context answers, and each row sums to one.")
def check_cross_attention(trial, cross_attention):
    """cross_attention(x, context, w_q, w_k, w_v) -> output (N_q, d_v), weights (N_q, N_k)."""
    n_q, n_k, width, d, d_v = 4, trial.integer(6, 9), 5, 3, 2
    x, context = trial.randn(n_q, width), trial.randn(n_k, width)
    w_q, w_k, w_v = trial.randn(width, d), trial.randn(width, d), trial.randn(width, d_v)
    trial.stage("shapes")
    output, weights = trial.pair(cross_attention(x, context, w_q, w_k, w_v))
    shape = tuple(getattr(weights, "shape", ()))
    trial.ask(shape != (n_q, d_v), "return the output first and the weights second")
    trial.ask(shape != (n_k, n_q), "who asks here? The queries should come from x.")
    trial.ask(shape != (n_q, n_q), "the context is never asked; where do the keys come from?")
    weights = trial.tensor(weights, (n_q, n_k), name="the weights")
    output = trial.tensor(output, (n_q, d_v), name="the output")

    trial.stage("rows")
    ones = torch.isclose(weights.sum(0), torch.ones(n_k), atol=1e-4).all()
    trial.ask(not ones, "your columns sum to one; over which axis should a token share its 1?")
    trial.close(weights.sum(1), torch.ones(n_q), "do the weights of each token sum to one?")
    trial.ask(weights > 0, "a weight is zero or negative; did you leave out the exponential?")

    trial.stage("scores")
    scores = (x @ w_q) @ (context @ w_k).T
    raw, logs = scores - scores[:, :1], weights.log() - weights.log()[:, :1]
    slope = (raw * logs).sum() / raw.square().sum()
    trial.ask(
        (logs - slope * raw).abs() < 1e-2,
        "are the scores the products of the queries x w_q with the keys context w_k?",
    )
    trial.ask(abs(slope - 1) > 1e-2, "the scores are not scaled; what keeps the softmax soft?")
    trial.ask(
        abs(slope - width**-0.5) > 1e-2,
        "you scale by the width of the tokens; which vectors are long?",
    )
    trial.ask(abs(slope - 1 / d) > 1e-2, "you scale by d; is it d itself?")
    trial.ask(
        abs(slope - d**-0.5) < 1e-3,
        f"your scores are divided by {1 / slope:.2f}; what belongs to queries of width {d}?",
    )
    trial.stage("output")
    average = weights @ (context @ w_v)
    trial.close(output, average, "is the output the average of the values context w_v?")


@staged("window mask", ok="each token sees itself and the few before it, nothing else.")
def check_window_mask(trial, window_mask):
    """window_mask(n, width) -> (n, n) bool, True = may attend."""
    n, width = trial.integer(7, 10), trial.integer(3, 4)
    trial.stage("shape and type")
    mask = trial.tensor(window_mask(n, width), (n, n), dtype=torch.bool)
    trial.stage("the token itself")
    trial.ask(
        mask.diagonal().any() or not mask.triu(1).any(),
        "True should mean 'may attend'; is yours the other way round?",
    )
    trial.ask(mask.diagonal(), "may a token look at itself? It is part of its own window.")
    trial.stage("the future")
    if mask.triu(1).any():
        backwards = not mask.tril(-1).any()
        trial.fail(
            "your first token sees later ones and your last sees none before it; which axis is "
            "the query?"
            if backwards
            else "does any token see a later one? Look at the first row."
        )
    trial.stage("the past")
    last = int(mask[-1].sum())
    trial.ask(last < n, "does the window ever close behind the token? Look at the last row.")
    trial.ask(
        last == width, f"with width {width} the last token sees {last} tokens; who is counted?"
    )
    trial.ask(mask[-1, -width:], "the tokens in the window should be the ones just before")
    trial.ask(mask.sum(1).diff() >= 0, "is each row the one above, moved by one?")
    trial.ask(mask[1:, 1:] >= mask[:-1, :-1], "is each row the one above, moved by one?")
    trial.stage("limits")
    trial.ask(
        torch.equal(window_mask(n, 1), torch.eye(n, dtype=torch.bool)),
        "with a window of width 1, whom does a token see?",
    )
    trial.ask(
        torch.equal(window_mask(n, n + 5), torch.ones(n, n, dtype=torch.bool).tril()),
        "with a window longer than the text, what is left of the mask?",
    )


@staged("masked weights", ok="forbidden keys weigh nothing and nobody feels their scores.")
def check_masked_weights(trial, masked_weights):
    """masked_weights(scores (..., N_q, N_k), mask) -> weights; True = may attend."""
    scores = trial.randn(2, 4, 6)
    mask = torch.rand(2, 4, 6, generator=trial.generator) > 0.4
    mask[..., 1], mask[..., 0] = True, False  # each row keeps one key at least, and loses one
    trial.stage("forbidden keys")
    weights = trial.tensor(masked_weights(scores, mask), (2, 4, 6), name="the weights")
    trial.ask(
        not (weights[mask] == 0).all(),
        "the allowed keys weigh nothing; does True mean 'may attend' in your version?",
    )
    trial.ask(
        weights[~mask] == 0,
        "a forbidden key still has weight; which score gives a weight of exactly zero? "
        "(Not a score of 0: e to the power 0 is 1.)",
    )
    trial.stage("rows")
    trial.close(
        weights.sum(-1),
        torch.ones(2, 4),
        "the allowed weights of a row do not sum to one; did you mask after the softmax, "
        "or take the softmax along another axis?",
    )
    trial.stage("allowed keys")
    reference = weights[..., 1:2] * (scores - scores[..., 1:2]).exp()  # ratios as without a mask
    trial.close(
        torch.where(mask, weights, 0.0),
        torch.where(mask, reference, 0.0),
        "two allowed keys should be to each other as the exponentials of their scores",
        tolerance=1e-4,
    )
    trial.stage("forbidden scores")
    loud = masked_weights(torch.where(mask, scores, 1e5), mask)
    trial.ask(
        torch.isclose(loud, weights, atol=1e-6),
        "a very large score at a forbidden key changed the result; does it enter a sum before "
        "it is hidden?",
    )
    trial.stage("broadcasting")
    padding = torch.arange(6) < 4  # one row for all queries
    trial.ask(
        torch.isclose(masked_weights(scores, padding)[..., :4].sum(-1), torch.ones(2, 4)),
        "a mask of shape (N_k,) should serve every query",
    )


@staged("leak detector", ok="it finds every leak, and accuses nobody who is innocent.")
def check_leak_detector(trial, leak_detector):
    """leak_detector(layer, tokens (N, D)) -> True if an output depends on a later token."""
    n, width = trial.integer(6, 8), 4
    w_q, w_k = trial.randn(2, width, width).double()

    def verdict(layer):
        tokens = torch.randn(n, width, generator=trial.generator, dtype=torch.float64)
        answer = leak_detector(layer, tokens)
        plain = isinstance(answer, bool) or getattr(answer, "dtype", None) == torch.bool
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
