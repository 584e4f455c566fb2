"""Checks: weights, masks, what a leak is, and what silence is."""

import math

import torch

from vitbook.layers.attention import causal_mask, scaled_dot_product_attention
from vitcheck.reading import NO, OPEN, YES, reading
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


_STATEMENTS = {
    "the layer looks into the future": (
        YES,
        "is there an output that moved with a later token? Read the row of output 3",
    ),
    "output 1 never depends on a later token": (
        OPEN,
        "how many texts and replacements were tried?",
    ),
    "in this test output 2 did not feel token 3": (YES, "read the row of output 2"),
    "token 3 gives token 4 a weight above zero": (
        OPEN,
        "in version (d), which weights are zero, and what leaks nevertheless?",
    ),
    "a causal mask before the softmax would give this table": (
        NO,
        "what stands above the diagonal when a causal mask works?",
    ),
}


check_silent_test = reading("a leak that is found is a proof, and silence is not", _STATEMENTS)
