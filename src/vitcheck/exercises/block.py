"""Checks: the block."""

from functools import partial

import torch
import torch.nn.functional as F

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


def _same(y):
    return y


def _mlp(x, W1, b1, W2, b2, *, inner=F.gelu, outer=_same, first=1.0, second=1.0):
    return outer(F.linear(inner(F.linear(x, W1, first * b1)), W2, second * b2))


def _by_a_sigmoid(factor):
    return partial(_mlp, inner=lambda y: y * (factor * y).sigmoid())


@staged(
    "the MLP",
    ok="widened, one nonlinearity, and brought back, each token on its own.",
    right=_mlp,
    mistakes={
        "without a nonlinearity, what are two linear maps in a row?": partial(_mlp, inner=_same),
        "that is ReLU; which activation function has the ViT?": partial(_mlp, inner=F.relu),
        "that is SiLU, y times the sigmoid of y; which activation function has the ViT?": partial(
            _mlp, inner=F.silu
        ),
        "close, but that is the tanh approximation of the GELU; the exact one uses erf": partial(
            _mlp, inner=partial(F.gelu, approximate="tanh")
        ),
        "close, but that is the GELU by a sigmoid; the exact one uses erf": [
            _by_a_sigmoid(1.7),
            _by_a_sigmoid(1.702),
        ],
        "there is a GELU behind the result as well; where does the one GELU stand?": partial(
            _mlp, outer=F.gelu
        ),
        "the GELU stands after both layers; where would it make the two more than one?": partial(
            _mlp, inner=_same, outer=F.gelu
        ),
        "is the first bias in it?": partial(_mlp, first=0.0),
        "is the second bias in it?": partial(_mlp, second=0.0),
        "are the biases in it?": partial(_mlp, first=0.0, second=0.0),
        "x is added already; is that the MLP's work, or the block's?": lambda x, *weights: (
            x + _mlp(x, *weights)
        ),
    },
)
def check_mlp(trial: Trial, mlp):
    """mlp(x, W1, b1, W2, b2): tokens (B, N, D), weights stored as nn.Linear does -> (B, N, D)."""
    B, N, D, hidden = 2, 5, 3, 7
    x = trial.randn(B, N, D)
    W1, b1 = trial.randn(hidden, D), trial.randn(hidden)
    W2, b2 = trial.randn(D, hidden), trial.randn(D)
    trial.stage("shape")
    try:
        got = mlp(x, W1, b1, W2, b2)
    except RuntimeError:
        want = _mlp(x, W1, b1, W2, b2)
        if any(_works(mlp, want, x, A, b1, B, b2) for A, B in _transposed(W1, W2)):
            trial.fail("nn.Linear stores its weight as (out, in); which way round does x need it?")
        raise
    trial.stage("the numbers")
    otherwise = "linear, GELU, linear: which of the three is different?"
    trial.compare(got, x, W1, b1, W2, b2, otherwise=otherwise)


def _transposed(W1, W2):
    """The two weights with one or both of them the other way round."""
    return (W1.T, W2.T), (W1.T, W2), (W1, W2.T)


def _works(mlp, want, *inputs) -> bool:
    """Does it give what is wanted from these inputs? An exception is a no."""
    try:
        got = mlp(*inputs)
    except RuntimeError:
        return False
    return got.shape == want.shape and torch.allclose(got.float(), want, atol=1e-4)


def _norm_over(axes, divisor=lambda variance, eps: (variance + eps).sqrt(), correction=0):
    """Layer norm by the statistics of these axes."""

    def norm(x, gain, bias, eps):
        variance = x.var(axes, correction=correction, keepdim=True)
        return (x - x.mean(axes, keepdim=True)) / divisor(variance, eps) * gain + bias

    return norm


def _not_centred(spread):
    def norm(x, gain, bias, eps):
        return x / (spread(x) + eps).sqrt() * gain + bias

    return norm


def _over(*axes):
    return [_norm_over(axes, correction=correction) for correction in (0, 1)]


_layer_norm = _norm_over(-1)


@staged(
    "layer norm",
    ok="each token by its own mean and variance, and eps where it belongs.",
    right=_layer_norm,
    mistakes={
        "that is the mean over the tokens of an image; what should a token depend on?": _over(1),
        "that is the mean over the batch, as in BatchNorm; what if there is one image?": _over(0),
        "that is BatchNorm's choice of axes; which one makes a token stand alone?": _over(0, 1),
        "one mean for all tokens of an image; what happens when a token is changed?": _over(1, 2),
        "one mean for everything; how many means should there be?": _over(0, 1, 2),
        "divided by D - 1; does nn.LayerNorm do that?": _norm_over(-1, correction=1),
        "the mean is still there; what is subtracted first?": [
            _not_centred(lambda x: x.square().mean(-1, keepdim=True)),
            _not_centred(lambda x: x.var(-1, correction=0, keepdim=True)),
        ],
        "centred, but how long may a token still be?": _norm_over(-1, lambda v, eps: 1.0),
        "is it the variance, or its root?": _norm_over(-1, lambda v, eps: v + eps),
        "gain and bias are missing": lambda x, gain, bias, eps: _layer_norm(x, 1, 0, eps),
        "where is the bias?": lambda x, gain, bias, eps: _layer_norm(x, gain, 0, eps),
        "where is the gain?": lambda x, gain, bias, eps: _layer_norm(x, 1, bias, eps),
        "is the bias to be scaled by the gain?": lambda x, gain, bias, eps: (
            (_layer_norm(x, 1, bias, eps)) * gain
        ),
        "eps has no effect; where does it keep the root from zero?": _norm_over(
            -1, lambda v, eps: v.sqrt()
        ),
        "eps stands beside the root; where should it stand?": _norm_over(
            -1, lambda v, eps: v.sqrt() + eps
        ),
        "is eps squared?": _norm_over(-1, lambda v, eps: (v + eps**2).sqrt()),
        "the eps that was given is not the one in use": _norm_over(
            -1, lambda v, eps: (v + 1e-6).sqrt()
        ),
        "the eps that was given is not the one in use (1e-5 is PyTorch's default)": _norm_over(
            -1, lambda v, eps: (v + 1e-5).sqrt()
        ),
    },
)
def check_layer_norm(trial: Trial, layer_norm):
    """layer_norm(x, gain, bias, eps): tokens (B, N, D), gain and bias (D,) -> (B, N, D)."""
    B, N, D = 3, 4, 5
    x, gain, bias = 2 * trial.randn(B, N, D) + 1, trial.randn(D), trial.randn(D)
    trial.stage("the numbers")
    otherwise = "compare with nn.LayerNorm, number by number"
    trial.compare(layer_norm, x, gain, bias, 1e-6, otherwise=otherwise)
    trial.stage("a token that hardly varies")
    x = 0.1 * trial.randn(B, N, D)
    otherwise = "how does eps come in?"
    trial.compare(layer_norm, x, gain, bias, 0.01, otherwise=otherwise)


def _block(x, norm1, attn, norm2, mlp):
    x = x + attn(norm1(x))
    return x + mlp(norm2(x))


@staged(
    "a pre-norm block",
    ok="two branches, each reads a normed copy, and the stream stays raw.",
    right=_block,
    mistakes={  # x, norm1, attn, norm2, mlp; y is the stream between the branches
        "nothing is added; how does x get past the branches?": lambda x, n1, a, n2, m: m(
            n2(a(n1(x)))
        ),
        "the first addition is missing": lambda x, n1, a, n2, m: (y := a(n1(x))) + m(n2(y)),
        "the second addition is missing": lambda x, n1, a, n2, m: m(n2(x + a(n1(x)))),
        "the MLP's result is added to x; where did the attention's go?": lambda x, n1, a, n2, m: (
            x + m(n2(x + a(n1(x))))
        ),
        "x is added twice; what is already in the stream?": lambda x, n1, a, n2, m: (
            x + _block(x, n1, a, n2, m)
        ),
        "that is post-norm: the norms stand in the stream; who should read the normed tokens?": (
            lambda x, n1, a, n2, m: n2((y := n1(x + a(x))) + m(y))
        ),
        "the normed tokens are in the stream now; is it x or norm1(x) that is added to?": [
            lambda x, n1, a, n2, m: (y := (z := n1(x)) + a(z)) + m(n2(y)),
            lambda x, n1, a, n2, m: (y := n2((z := n1(x)) + a(z))) + m(y),
        ],
        "norm2's result is in the stream now; what should the MLP's result be added to?": (
            lambda x, n1, a, n2, m: (y := n2(x + a(n1(x)))) + m(y)
        ),
        "the branches are not normed at all": lambda x, n1, a, n2, m: (y := x + a(x)) + m(y),
        "the attention reads the raw stream; what is norm1 for?": lambda x, n1, a, n2, m: (
            (y := x + a(x)) + m(n2(y))
        ),
        "the MLP reads the raw stream; what is norm2 for?": lambda x, n1, a, n2, m: (
            (y := x + a(n1(x))) + m(y)
        ),
        "the two norms have changed places": lambda x, n1, a, n2, m: _block(x, n2, a, n1, m),
        "one of the norms is used twice; how many are there?": lambda x, n1, a, n2, m: _block(
            x, n1, a, n1, m
        ),
        "the norms stand behind the branches; what should they be applied to?": (
            lambda x, n1, a, n2, m: (y := x + n1(a(x))) + n2(m(y))
        ),
        "both branches read x; may the MLP see what attention brought?": (
            lambda x, n1, a, n2, m: x + a(n1(x)) + m(n2(x))
        ),
        "the MLP comes first; which one comes first in the ViT?": lambda x, n1, a, n2, m: (
            (y := x + m(n2(x))) + a(n1(y))
        ),
    },
)
def check_block(trial: Trial, block):
    """block(x, norm1, attn, norm2, mlp): tokens (B, N, D) and four maps -> (B, N, D)."""
    B, N, D = 2, 4, 6
    x = 2 * trial.randn(B, N, D)
    mix, W, V = trial.randn(N, N).softmax(-1), trial.randn(D, D), trial.randn(D, D)
    gains = trial.randn(2, D)
    norm1, norm2 = (lambda y, gain=gain: F.layer_norm(y, (D,), gain) for gain in gains)

    def attn(y):
        return mix @ y @ W

    def mlp(y):
        return F.gelu(y @ V)

    trial.stage("the numbers")
    otherwise = "norm, branch, add; norm, branch, add: which step differs?"
    trial.compare(block, x, norm1, attn, norm2, mlp, otherwise=otherwise, tolerance=1e-4)


_STATEMENTS = {
    "without attention the model is worse at both lengths": (
        YES,
        "where do the two intervals of that row end? Do they hold zero?",
    ),
    "at 1,000 steps the MLP is worth two points or more": (
        NO,
        "how far does the interval of its difference reach? Are two points inside?",
    ),
    "the MLP is worth more at 10,000 steps than at 1,000": (
        YES,
        "from where to where do the two intervals of that row reach? Do they touch?",
    ),
    "at 10,000 steps no GELU costs less than no MLP": (
        OPEN,
        "which difference would have to be in the table? Two differences from a third model do "
        "not replace it",
    ),
    "at 10,000 steps the norms are worth nothing": (
        OPEN,
        "was a model without norms trained for that long?",
    ),
    "a ViT of 24 blocks trains as well without norms": (
        OPEN,
        "how many blocks has the model of this report?",
    ),
}


check_left_out = reading("what an experiment that leaves out parts allows one to say", _STATEMENTS)
