"""Checks of chapter 9: the block."""

import math

import torch
import torch.nn.functional as F

from vitcheck.trial import Trial, staged


@staged("the MLP", ok="widened, one nonlinearity, and brought back, each token on its own.")
def check_mlp(trial: Trial, mlp):
    """mlp(x, W1, b1, W2, b2): tokens (B, N, D), weights stored as nn.Linear does -> (B, N, D)."""
    B, N, D, hidden = 2, 5, 3, 7
    x = trial.randn(B, N, D)
    W1, b1 = trial.randn(hidden, D), trial.randn(hidden)
    W2, b2 = trial.randn(D, hidden), trial.randn(D)

    def same(y):
        return y

    def variant(inner=F.gelu, outer=same, first=1.0, second=1.0):
        return outer(F.linear(inner(F.linear(x, W1, first * b1)), W2, second * b2))

    want = variant()
    trial.stage("shape")
    try:
        got = mlp(x, W1, b1, W2, b2)
    except RuntimeError:
        if any(_works(mlp, want, x, A, b1, B, b2) for A, B in _transposed(W1, W2)):
            trial.fail("nn.Linear stores its weight as (out, in); which way round does x need it?")
        raise
    trial.stage("the numbers")
    trial.match(
        got,
        want,
        {
            "without a nonlinearity, what are two linear maps in a row?": variant(same),
            "that is ReLU; which activation function has the ViT?": variant(F.relu),
            "that is SiLU, y times the sigmoid of y; which activation function has the "
            "ViT?": variant(F.silu),
            "close, but that is the tanh approximation of the GELU; the exact one uses "
            "erf": variant(lambda y: F.gelu(y, approximate="tanh")),
            "close, but that is the GELU by a sigmoid; the exact one uses erf": [
                variant(lambda y, factor=factor: y * (factor * y).sigmoid())
                for factor in (1.7, 1.702)
            ],
            "there is a GELU behind the result as well; where does the one GELU stand?": variant(
                outer=F.gelu
            ),
            "the GELU stands after both layers; where would it make the two more than "
            "one?": variant(same, F.gelu),
            "is the first bias in it?": variant(first=0.0),
            "is the second bias in it?": variant(second=0.0),
            "are the biases in it?": variant(first=0.0, second=0.0),
            "x is added already; is that the MLP's work, or the block's?": x + want,
        },
        otherwise="linear, GELU, linear: which of the three is different?",
    )


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


@staged("layer norm", ok="each token by its own mean and variance, and eps where it belongs.")
def check_layer_norm(trial: Trial, layer_norm):
    """layer_norm(x, gain, bias, eps): tokens (B, N, D), gain and bias (D,) -> (B, N, D)."""
    B, N, D = 3, 4, 5
    x, gain, bias = 2 * trial.randn(B, N, D) + 1, trial.randn(D), trial.randn(D)
    eps = 1e-6

    def with_statistics(axes, correction=0):
        mean = x.mean(axes, keepdim=True)
        return (x - mean) / (x.var(axes, correction=correction, keepdim=True) + eps).sqrt()

    token = with_statistics(-1)
    centred = x - x.mean(-1, keepdim=True)
    root = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    variance = x.var(-1, correction=0, keepdim=True)

    def over(axes):
        return [with_statistics(axes, correction) * gain + bias for correction in (0, 1)]

    trial.stage("the numbers")
    trial.match(
        layer_norm(x, gain, bias, eps),
        token * gain + bias,
        {
            "that is the mean over the tokens of an image; what should a token depend on?": over(1),
            "that is the mean over the batch, as in BatchNorm; what if there is one image?": over(
                0
            ),
            "that is BatchNorm's choice of axes; which one makes a token stand alone?": over(
                (0, 1)
            ),
            "one mean for all tokens of an image; what happens when a token is changed?": over(
                (1, 2)
            ),
            "one mean for everything; how many means should there be?": over((0, 1, 2)),
            "divided by D - 1; does nn.LayerNorm do that?": over(-1)[1],
            "the mean is still there; what is subtracted first?": [
                x / root * gain + bias,
                x / (variance + eps).sqrt() * gain + bias,
            ],
            "centred, but how long may a token still be?": centred * gain + bias,
            "is it the variance, or its root?": centred / (variance + eps) * gain + bias,
            "gain and bias are missing": token,
            "where is the bias?": token * gain,
            "where is the gain?": token + bias,
            "is the bias to be scaled by the gain?": (token + bias) * gain,
        },
        otherwise="compare with nn.LayerNorm, number by number",
    )
    trial.stage("a token that hardly varies")
    eps = 0.01
    x = 0.1 * trial.randn(B, N, D)
    variance = x.var(-1, correction=0, keepdim=True)
    centred = x - x.mean(-1, keepdim=True)
    trial.match(
        layer_norm(x, gain, bias, eps),
        centred / (variance + eps).sqrt() * gain + bias,
        {
            question: centred / divisor * gain + bias
            for question, divisor in {
                "eps has no effect; where does it keep the root from zero?": variance.sqrt(),
                "eps stands beside the root; where should it stand?": variance.sqrt() + eps,
                "is eps squared?": (variance + eps**2).sqrt(),
                "the eps that was given is not the one in use": (variance + 1e-6).sqrt(),
                "the eps that was given is not the one in use (1e-5 is PyTorch's default)": (
                    variance + 1e-5
                ).sqrt(),
            }.items()
        },
        otherwise="how does eps come in?",
    )


@staged("a pre-norm block", ok="two branches, each reads a normed copy, and the stream stays raw.")
def check_block(trial: Trial, block):
    """block(x, norm1, attn, norm2, mlp): tokens (B, N, D) and four maps -> (B, N, D)."""
    B, N, D = 2, 4, 6
    x = 2 * trial.randn(B, N, D)
    mix, W, V = trial.randn(N, N).softmax(-1), trial.randn(D, D), trial.randn(D, D)
    gains = trial.randn(2, D)

    def norm1(y):
        return F.layer_norm(y, (D,), gains[0])

    def norm2(y):
        return F.layer_norm(y, (D,), gains[1])

    def attn(y):
        return mix @ y @ W

    def mlp(y):
        return F.gelu(y @ V)

    middle = x + attn(norm1(x))
    bare = attn(norm1(x))
    want = middle + mlp(norm2(middle))
    after = norm1(x + attn(x))
    normed = norm1(x)
    inside = normed + attn(normed)
    raw, swapped = x + attn(x), x + attn(norm2(x))
    first = x + mlp(norm2(x))
    behind = x + norm1(attn(x))
    trial.stage("the numbers")
    trial.match(
        block(x, norm1, attn, norm2, mlp),
        want,
        {
            "nothing is added; how does x get past the branches?": mlp(norm2(bare)),
            "the first addition is missing": bare + mlp(norm2(bare)),
            "the second addition is missing": mlp(norm2(middle)),
            "the MLP's result is added to x; where did the attention's go?": x + mlp(norm2(middle)),
            "x is added twice; what is already in the stream?": x + want,
            "that is post-norm: the norms stand in the stream; who should read the normed "
            "tokens?": norm2(after + mlp(after)),
            "the normed tokens are in the stream now; is it x or norm1(x) that is added to?": [
                inside + mlp(norm2(inside)),
                norm2(inside) + mlp(norm2(inside)),
            ],
            "norm2's result is in the stream now; what should the MLP's result be added to?": norm2(
                middle
            )
            + mlp(norm2(middle)),
            "the branches are not normed at all": raw + mlp(raw),
            "the attention reads the raw stream; what is norm1 for?": raw + mlp(norm2(raw)),
            "the MLP reads the raw stream; what is norm2 for?": middle + mlp(middle),
            "the two norms have changed places": swapped + mlp(norm1(swapped)),
            "one of the norms is used twice; how many are there?": middle + mlp(norm1(middle)),
            "the norms stand behind the branches; what should they be applied to?": behind
            + norm2(mlp(behind)),
            "both branches read x; may the MLP see what attention brought?": middle + mlp(norm2(x)),
            "the MLP comes first; which one comes first in the ViT?": first + attn(norm1(first)),
        },
        otherwise="norm, branch, add; norm, branch, add: which step differs?",
        tolerance=1e-4,
    )


@staged("the account", ok="parameters and multiplications, to the last one.")
def check_account(trial: Trial, account):
    """account(N, D, hidden): the (parameters, multiplications) of one block with biases."""
    for D in (6, 10):
        N, hidden = trial.integer(11, 17), 3 * D + 1
        parameters, multiplies = trial.pair(account(N, D, hidden))
        matrices = 4 * D * D + 2 * D * hidden
        biases = 3 * D + D + hidden + D
        learned, work = matrices + biases + 4 * D, N * matrices + 2 * N * N * D
        trial.stage("parameters")
        trial.match(
            parameters,
            learned,
            {
                "those are the matrices alone; what else is learned?": matrices,
                "matrices and biases; what do the norms learn?": matrices + biases,
                "matrices and norms; do the linear layers have biases?": matrices + 4 * D,
                "3 D are missing: have queries, keys and values their biases? Or the norms all of "
                "their vectors?": learned - 3 * D,
                "2 D are missing: how many norms are there, and how many vectors in each?": learned
                - 2 * D,
                "queries, keys and values; which matrix comes after them?": [
                    learned - D * D - D,
                    learned - D * D,
                ],
                "how many matrices has the MLP?": learned - D * hidden,
                "that is right for hidden = 4 D only": 12 * D * D + 13 * D,
                "that is right for hidden = 4 D only, and without the vectors": 12 * D * D,
            },
            otherwise=f"for D = {D} and hidden = {hidden} there are {learned}",
            tolerance=0,
            name="the number of parameters",
        )
        trial.stage("multiplications")
        trial.match(
            multiplies,
            work,
            {
                "those are FLOPs; how many multiplications are two of them?": 2 * work,
                "every weight once for each token; where do tokens meet?": N * matrices,
                "scores or weighted sums? There are two products with N x N": work - N * N * D,
                "how many multiplications does one score take?": N * matrices + 2 * N * N,
                "is a weight used once, or once for each token?": [
                    matrices + 2 * N * N * D,
                    matrices,
                ],
                "is a bias multiplied?": [work + N * (biases + 4 * D), work + N * biases],
                "that is right for hidden = 4 D only": 12 * N * D * D + 2 * N * N * D,
            },
            otherwise=f"for N = {N}, D = {D} and hidden = {hidden} there are {work}",
            tolerance=0,
            name="the number of multiplications",
        )


@staged("drop path", ok="whole branches are dropped, sample by sample, and the mean is kept.")
def check_drop_path(trial: Trial, drop_path):
    """drop_path(branch, rate): a branch's output (B, N, D) while training -> (B, N, D)."""
    B, N, D = 2000, 3, 4
    rate = 0.25
    branch = trial.randn(B, N, D)
    trial.stage("shape")
    got = trial.tensor(drop_path(branch, rate), (B, N, D))
    trial.stage("what is dropped")
    factor = got / branch
    dropped = (got == 0).flatten(1)  # (B, N D)
    if dropped.all() or not dropped.any():  # perhaps one lot for them all: then it varies
        few = branch[:8]
        gone = [(drop_path(few, rate) == 0).all() for _ in range(40)]
        trial.ask(
            all(gone) or not any(gone),
            "in one call all samples were dropped, in another none; does each draw its own lot?",
        )
        trial.ask(not all(gone), "everything is dropped, in every call; what is kept?")
        trial.fail("nothing was dropped in 2000 samples and 40 further calls; is a lot drawn?")
    whole = dropped.all(1) | ~dropped.any(1)
    tokens = dropped.view(B, N, D)
    alone = (tokens.all(2) | ~tokens.any(2)).all()
    if not whole.all():
        shared = torch.equal(dropped, dropped[:1].expand_as(dropped))
        trial.ask(not shared, "all samples lose the same numbers; does each draw its own lot?")
        trial.ask(not alone, "single tokens are gone; what is dropped is the whole branch")
        trial.fail("single numbers are gone, as in dropout; what is dropped is the whole branch")
    trial.stage("how often")
    share = dropped.all(1).float().mean().item()
    slack = 5 * math.sqrt(rate * (1 - rate) / B)
    trial.ask(
        abs(share - (1 - rate)) > slack,
        f"{share:.0%} of the samples are dropped; is the rate what stays, or what goes?",
    )
    trial.ask(abs(share - rate) < slack, f"{share:.0%} of the samples are dropped, not {rate:.0%}")
    trial.stage("what is left")
    kept = factor[~dropped.all(1)]
    one = torch.ones_like(kept)
    trial.match(
        kept,
        one / (1 - rate),
        {
            "the mean over many runs has shrunk; what keeps it at the branch's value?": one,
            "the samples that stay became smaller; should they make up for the others?": (1 - rate)
            * one,
            "scaled by what is dropped; how large a share is kept?": one / rate,
        },
        otherwise="which factor keeps the mean?",
        tolerance=1e-4,
    )
    trial.stage("rate 0")
    trial.close(drop_path(branch, 0.0), branch, "with rate 0, is the branch untouched?")
