"""Checks: a softmax that survives, the scale of scores, and what trainings show."""

import torch

from vitcheck.reading import NO, OPEN, reading
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

    trial.stage("one score far above the others")
    spread = torch.tensor([[400.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 400.0]])
    far = "400 above the others is too much: which score of the row leaves only powers up to 1?"
    trial.ask(_no_nan(softmax(spread)), far)

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


_STATEMENTS = {
    "pointer: at d = 256 the factor would again help": (
        OPEN,
        "the difference has an interval in the caption. Does it hold zero?",
    ),
    "pointer: without it, wider always means more failures": (
        NO,
        "count the circles below 95 % at each width, from left to right",
    ),
    "game: at rate 0.03 the bare layer only needs more steps": (
        OPEN,
        "how many steps had each training? Was there a longer one?",
    ),
    "random: with 197 keys the factor never raises the median": (
        NO,
        "below the line at 1 the gradient is larger with the factor. Is there a point?",
    ),
}


check_factor = reading("what the figures and the table allow one to say of the factor", _STATEMENTS)
