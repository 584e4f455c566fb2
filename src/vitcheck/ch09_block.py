"""Checks of chapter 9: the block."""

import math

import torch
import torch.nn.functional as F

from vitcheck.trial import staged


@staged("the MLP", ok="widened, bent once, and brought back, each token on its own.")
def check_mlp(trial, mlp):
    """mlp(x, W1, b1, W2, b2): tokens (B, N, D), weights stored as nn.Linear does -> (B, N, D)."""
    B, N, D, hidden = 2, 5, 3, 7
    x = trial.randn(B, N, D)
    W1, b1 = trial.randn(hidden, D), trial.randn(hidden)
    W2, b2 = trial.randn(D, hidden), trial.randn(D)
    trial.stage("shape")
    got = trial.tensor(mlp(x, W1, b1, W2, b2), (B, N, D))

    def variant(inner=F.gelu, outer=lambda y: y, first=1.0, second=1.0):
        return outer(F.linear(inner(F.linear(x, W1, first * b1)), W2, second * b2))

    want = variant()
    trial.stage("the nonlinearity")
    mistakes = [
        ("without a bend, what are two linear maps in a row?", variant(inner=lambda y: y)),
        ("that is ReLU; which function has the ViT?", variant(inner=F.relu)),
        ("the result is bent as well; where does the GELU stand?", variant(outer=F.gelu)),
        (
            "the GELU stands after both layers; where would it make the two more than one?",
            variant(inner=lambda y: y, outer=F.gelu),
        ),
        (
            "close, but that is the tanh approximation of the GELU; the exact one uses erf",
            variant(inner=lambda y: F.gelu(y, approximate="tanh")),
        ),
    ]
    for question, mistaken in mistakes:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-6, rtol=1e-6), question)
    trial.stage("the biases")
    for question, mistaken in [
        ("is the first bias in it?", variant(first=0.0)),
        ("is the second bias in it?", variant(second=0.0)),
        ("are the biases in it?", variant(first=0.0, second=0.0)),
    ]:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-5), question)
    trial.stage("the addition")
    trial.ask(
        not torch.allclose(got, x + want, atol=1e-5),
        "x is added already; is that the MLP's work, or the block's?",
    )
    trial.stage("the numbers")
    trial.close(got, want, "linear, GELU, linear: which of the three is different?")


@staged("layer norm", ok="each token by its own mean and variance, and eps where it belongs.")
def check_layer_norm(trial, layer_norm):
    """layer_norm(x, gain, bias, eps): tokens (B, N, D), gain and bias (D,) -> (B, N, D)."""
    B, N, D = 3, 4, 5
    x, gain, bias = 2 * trial.randn(B, N, D) + 1, trial.randn(D), trial.randn(D)
    eps = 1e-6

    def with_statistics(axes, correction=0):
        mean = x.mean(axes, keepdim=True)
        return (x - mean) / (x.var(axes, correction=correction, keepdim=True) + eps).sqrt()

    trial.stage("shape")
    got = trial.tensor(layer_norm(x, gain, bias, eps), (B, N, D))
    trial.stage("which axis")
    token = with_statistics(-1)
    for axes, question in [
        (1, "that is the mean over the tokens of an image; what should a token depend on?"),
        (0, "that is the mean over the batch, as in BatchNorm; what if there is one image?"),
        ((0, 1), "that is BatchNorm's choice of axes; which one makes a token stand alone?"),
        ((1, 2), "one mean for all tokens of an image; what happens when a token is changed?"),
        ((0, 1, 2), "one mean for everything; how many means should there be?"),
    ]:
        for correction in (0, 1):
            mistaken = with_statistics(axes, correction) * gain + bias
            trial.ask(not torch.allclose(got, mistaken, atol=1e-5), question)
    trial.stage("mean and variance")
    root = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    variance = x.var(-1, correction=0, keepdim=True)
    for mistaken, question in [
        (with_statistics(-1, 1), "divided by D - 1; does nn.LayerNorm do that?"),
        (x / root, "the mean is still there; what is subtracted first?"),
        (x / (variance + eps).sqrt(), "the mean is still there; what is subtracted first?"),
        (x - x.mean(-1, keepdim=True), "centred, but how long may a token still be?"),
        ((x - x.mean(-1, keepdim=True)) / (variance + eps), "is it the variance, or its root?"),
    ]:
        trial.ask(not torch.allclose(got, mistaken * gain + bias, atol=1e-5), question)
    trial.stage("gain and bias")
    for mistaken, question in [
        (token, "gain and bias are missing"),
        (token * gain, "where is the bias?"),
        (token + bias, "where is the gain?"),
        ((token + bias) * gain, "is the bias to be scaled by the gain?"),
    ]:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-5), question)
    trial.close(got, token * gain + bias, "compare with nn.LayerNorm, number by number")
    trial.stage("a token that hardly varies")
    eps = 0.01
    x = 0.1 * trial.randn(B, N, D)
    variance = x.var(-1, correction=0, keepdim=True)
    centred = x - x.mean(-1, keepdim=True)
    got = trial.tensor(layer_norm(x, gain, bias, eps), (B, N, D))
    for mistaken, question in [
        (centred / variance.sqrt(), "eps has no effect; where does it keep the root from zero?"),
        (centred / (variance.sqrt() + eps), "eps stands beside the root; where should it stand?"),
        (centred / (variance + eps**2).sqrt(), "is eps squared?"),
        (centred / (variance + 1e-6).sqrt(), "the eps that was given is not the one in use"),
    ]:
        trial.ask(not torch.allclose(got, mistaken * gain + bias, atol=1e-4), question)
    want = centred / (variance + eps).sqrt() * gain + bias
    trial.close(got, want, "how does eps come in?")


@staged("a pre-norm block", ok="two branches, each reads a normed copy, and the stream stays raw.")
def check_block(trial, block):
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

    trial.stage("shape")
    got = trial.tensor(block(x, norm1, attn, norm2, mlp), (B, N, D))
    trial.stage("additions")
    middle = x + attn(norm1(x))
    want = middle + mlp(norm2(middle))
    bare = attn(norm1(x))
    mistakes = [
        ("nothing is added; how does x get past the branches?", mlp(norm2(bare))),
        ("the first addition is missing", bare + mlp(norm2(bare))),
        ("the second addition is missing", mlp(norm2(middle))),
        ("the MLP's result is added to x; where did the attention's go?", x + mlp(norm2(middle))),
        ("x is added twice; what is already in the stream?", x + want),
    ]
    for question, mistaken in mistakes:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-4), question)
    trial.stage("where the norms stand")
    after = norm1(x + attn(x))
    normed = norm1(x)
    inside = normed + attn(normed)
    raw, swapped = x + attn(x), x + attn(norm2(x))
    mistakes = [
        (
            "that is post-norm: the norms stand in the stream; who should read the normed tokens?",
            norm2(after + mlp(after)),
        ),
        (
            "the normed tokens are in the stream now; is it x or norm1(x) that is added to?",
            inside + mlp(norm2(inside)),
        ),
        (
            "the normed tokens are in the stream now; is it x or norm1(x) that is added to?",
            norm2(inside) + mlp(norm2(inside)),
        ),
        (
            "norm2's result is in the stream now; what should the MLP's result be added to?",
            norm2(middle) + mlp(norm2(middle)),
        ),
        ("the branches are not normed at all", raw + mlp(raw)),
        ("the attention reads the raw stream; what is norm1 for?", raw + mlp(norm2(raw))),
        ("the MLP reads the raw stream; what is norm2 for?", middle + mlp(middle)),
        ("the two norms have changed places", swapped + mlp(norm1(swapped))),
        ("one of the norms is used twice; how many are there?", middle + mlp(norm1(middle))),
        (
            "the norms stand behind the branches; what should they be applied to?",
            (x + norm1(attn(x))) + norm2(mlp(x + norm1(attn(x)))),
        ),
    ]
    for question, mistaken in mistakes:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-4), question)
    trial.stage("order")
    first = x + mlp(norm2(x))
    mistakes = [
        ("both branches read x; may the MLP see what attention brought?", middle + mlp(norm2(x))),
        ("the MLP comes first; which one comes first in the ViT?", first + attn(norm1(first))),
    ]
    for question, mistaken in mistakes:
        trial.ask(not torch.allclose(got, mistaken, atol=1e-4), question)
    trial.close(got, want, "norm, branch, add; norm, branch, add: which step differs?")


@staged("the account", ok="parameters and multiplications, to the last one.")
def check_account(trial, account):
    """account(N, D, hidden): the (parameters, multiplications) of one block with biases."""
    for D in (6, 10):
        N, hidden = trial.integer(11, 17), 3 * D + 1
        parameters, multiplies = trial.pair(account(N, D, hidden))
        parameters = trial.number(parameters, name="the number of parameters")
        matrices = 4 * D * D + 2 * D * hidden
        biases = 3 * D + D + hidden + D
        want = matrices + biases + 4 * D
        trial.stage("parameters")
        for mistaken, question in [
            (matrices, "those are the matrices alone; what else is learned?"),
            (matrices + biases, "matrices and biases; what do the norms learn?"),
            (matrices + 4 * D, "matrices and norms; do the linear layers have biases?"),
            (matrices + biases + 2 * D, "how many norms, and how many vectors in each?"),
            (matrices + biases + D, "how many norms, and how many vectors in each?"),
            (want - D * D - D, "queries, keys and values; which matrix comes after them?"),
            (want - D * D, "queries, keys and values; which matrix comes after them?"),
            (want - D * hidden, "how many matrices has the MLP?"),
            (12 * D * D + 13 * D, "that is right for hidden = 4 D only"),
            (12 * D * D, "that is right for hidden = 4 D only, and without the vectors"),
        ]:
            trial.ask(parameters != mistaken or mistaken == want, question)
        trial.ask(parameters == want, f"for D = {D} and hidden = {hidden} there are {want}")
        trial.stage("multiplications")
        multiplies = trial.number(multiplies, name="the number of multiplications")
        want = N * matrices + 2 * N * N * D
        for mistaken, question in [
            (2 * want, "those are FLOPs; how many multiplications are two of them?"),
            (N * matrices, "every weight once for each token; where do tokens meet?"),
            (
                N * matrices + N * N * D,
                "scores or weighted sums? There are two products with N x N",
            ),
            (N * matrices + 2 * N * N, "how many multiplications does one score take?"),
            (matrices + 2 * N * N * D, "is a weight used once, or once for each token?"),
            (matrices, "is a weight used once, or once for each token?"),
            (N * (matrices + biases + 4 * D) + 2 * N * N * D, "is a bias multiplied?"),
            (N * (matrices + biases) + 2 * N * N * D, "is a bias multiplied?"),
            (12 * N * D * D + 2 * N * N * D, "that is right for hidden = 4 D only"),
        ]:
            trial.ask(multiplies != mistaken, question)
        trial.ask(
            multiplies == want, f"for N = {N}, D = {D} and hidden = {hidden} there are {want}"
        )


@staged("drop path", ok="whole branches are dropped, sample by sample, and the mean is kept.")
def check_drop_path(trial, drop_path):
    """drop_path(branch, rate): a branch's output (B, N, D) while training -> (B, N, D)."""
    B, N, D = 2000, 3, 4
    rate = 0.25
    branch = trial.randn(B, N, D)
    trial.stage("shape")
    got = trial.tensor(drop_path(branch, rate), (B, N, D))
    trial.stage("what is dropped")
    factor = got / branch
    dropped = (got == 0).flatten(1)  # (B, N D)
    trial.ask(dropped.any(), "nothing was dropped in 2000 samples; are lots drawn at all?")
    trial.ask(~dropped.all(), "all samples were dropped at once; does each draw its own lot?")
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
    trial.ask(
        not torch.allclose(kept, torch.ones(()), atol=1e-4),
        "the mean over many runs has shrunk; what keeps it at the branch's value?",
    )
    trial.ask(
        not torch.allclose(kept, torch.tensor(1 - rate), atol=1e-4),
        "the samples that stay became smaller; should they make up for the others?",
    )
    trial.ask(
        not torch.allclose(kept, torch.tensor(1 / rate), atol=1e-3),
        "scaled by what is dropped; how large a share is kept?",
    )
    trial.close(
        kept, torch.full_like(kept, 1 / (1 - rate)), "which factor keeps the mean?", tolerance=1e-4
    )
    trial.stage("rate 0")
    trial.close(drop_path(branch, 0.0), branch, "with rate 0, is the branch untouched?")
