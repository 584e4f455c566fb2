"""Each check of chapter 9 passes the right answer and names the planted mistakes."""

import pytest
import torch
import torch.nn.functional as F

from vitcheck import CheckFailed
from vitcheck.ch09_block import (
    check_account,
    check_block,
    check_drop_path,
    check_layer_norm,
    check_mlp,
)


def mlp(x, W1, b1, W2, b2):
    return F.gelu(x @ W1.T + b1) @ W2.T + b2


def layer_norm(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + eps).sqrt() * gain + bias


def normed_over(axes):
    def wrong(x, gain, bias, eps):
        centred = x - x.mean(axes, keepdim=True)
        return centred / (x.var(axes, correction=0, keepdim=True) + eps).sqrt() * gain + bias

    return wrong


def centred_over(divisor):
    def wrong(x, gain, bias, eps):
        centred = x - x.mean(-1, keepdim=True)
        return centred / divisor(x.var(-1, correction=0, keepdim=True), eps) * gain + bias

    return wrong


def block(x, norm1, attn, norm2, mlp):
    x = x + attn(norm1(x))
    return x + mlp(norm2(x))


def post_norm(x, norm1, attn, norm2, mlp):
    x = norm1(x + attn(x))
    return norm2(x + mlp(x))


def normed_stream(x, norm1, attn, norm2, mlp):
    x = norm1(x)
    x = x + attn(x)
    x = norm2(x)
    return x + mlp(x)


def half_normed_stream(x, norm1, attn, norm2, mlp):
    x = norm2(x + attn(norm1(x)))
    return x + mlp(x)


def in_place(x, norm1, attn, norm2, mlp):
    x += attn(norm1(x))
    x += mlp(norm2(x))
    return x


def no_additions(x, norm1, attn, norm2, mlp):
    return mlp(norm2(attn(norm1(x))))


def parallel(x, norm1, attn, norm2, mlp):
    return x + attn(norm1(x)) + mlp(norm2(x))


def one_norm(x, norm1, attn, norm2, mlp):
    x = x + attn(norm1(x))
    return x + mlp(norm1(x))


def mlp_first(x, norm1, attn, norm2, mlp):
    x = x + mlp(norm2(x))
    return x + attn(norm1(x))


def lost_attention(x, norm1, attn, norm2, mlp):
    return x + mlp(norm2(x + attn(norm1(x))))


def normed_branches(x, norm1, attn, norm2, mlp):
    x = x + norm1(attn(x))
    return x + norm2(mlp(x))


def account(N, D, hidden):
    matrices = 4 * D * D + 2 * D * hidden
    return matrices + 5 * D + hidden + 4 * D, N * matrices + 2 * N * N * D


def changed(parameters=None, multiplies=None):
    def wrong(N, D, hidden):
        right = account(N, D, hidden)
        return (
            parameters(D, hidden) if parameters else right[0],
            multiplies(N, D, hidden) if multiplies else right[1],
        )

    return wrong


def drop_path(branch, rate):
    keep = torch.rand(len(branch), 1, 1) >= rate
    return branch * keep / (1 - rate)


RIGHT = [
    (check_mlp, mlp),
    (check_layer_norm, layer_norm),
    (check_block, block),
    (check_account, account),
    (check_drop_path, drop_path),
]

MISTAKES = [
    (
        "no bend",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.linear(F.linear(x, W1, b1), W2, b2),
        "without a bend",
    ),
    (
        "relu",
        check_mlp,
        lambda x, W1, b1, W2, b2: (x @ W1.T + b1).relu() @ W2.T + b2,
        "that is ReLU",
    ),
    ("bent twice", check_mlp, lambda *a: F.gelu(mlp(*a)), "bent as well"),
    (
        "bent at the end",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.gelu(F.linear(F.linear(x, W1, b1), W2, b2)),
        "after both layers",
    ),
    (
        "tanh",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T + b1, approximate="tanh") @ W2.T + b2,
        "tanh approximation",
    ),
    (
        "no first bias",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T) @ W2.T + b2,
        "first bias",
    ),
    (
        "no second bias",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T + b1) @ W2.T,
        "second bias",
    ),
    ("adds x", check_mlp, lambda x, *a: x + mlp(x, *a), "or the block's"),
    (
        "not transposed",
        check_mlp,
        lambda x, W1, b1, W2, b2: F.gelu(x @ W1 + b1) @ W2 + b2,
        "your code stopped",
    ),
    ("over tokens", check_layer_norm, normed_over(1), "over the tokens"),
    ("over the batch", check_layer_norm, normed_over(0), "over the batch"),
    ("batch norm", check_layer_norm, normed_over((0, 1)), "BatchNorm's choice"),
    ("over the image", check_layer_norm, normed_over((1, 2)), "one mean for all tokens"),
    ("over everything", check_layer_norm, normed_over((0, 1, 2)), "one mean for everything"),
    (
        "D - 1",
        check_layer_norm,
        lambda x, g, b, e: (
            (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + e).sqrt() * g + b
        ),
        "D - 1",
    ),
    (
        "root mean square",
        check_layer_norm,
        lambda x, g, b, e: x / (x.square().mean(-1, keepdim=True) + e).sqrt() * g + b,
        "mean is still there",
    ),
    (
        "not centred",
        check_layer_norm,
        lambda x, g, b, e: x / (x.var(-1, correction=0, keepdim=True) + e).sqrt() * g + b,
        "mean is still there",
    ),
    ("variance", check_layer_norm, centred_over(lambda v, e: v + e), "or its root"),
    ("no bias", check_layer_norm, lambda x, g, b, e: layer_norm(x, g, 0, e), "where is the bias"),
    ("no gain", check_layer_norm, lambda x, g, b, e: layer_norm(x, 1, b, e), "where is the gain"),
    ("neither", check_layer_norm, lambda x, g, b, e: layer_norm(x, 1, 0, e), "are missing"),
    (
        "bias scaled",
        check_layer_norm,
        lambda x, g, b, e: (layer_norm(x, 1, 0, e) + b) * g,
        "scaled by the gain",
    ),
    ("no eps", check_layer_norm, centred_over(lambda v, e: v.sqrt()), "eps has no effect"),
    ("eps outside", check_layer_norm, centred_over(lambda v, e: v.sqrt() + e), "beside the root"),
    ("own eps", check_layer_norm, centred_over(lambda v, e: (v + 1e-6).sqrt()), "that was given"),
    ("post-norm", check_block, post_norm, "that is post-norm"),
    ("normed stream", check_block, normed_stream, "in the stream now"),
    ("no additions", check_block, no_additions, "nothing is added"),
    ("parallel", check_block, parallel, "both branches read x"),
    ("one norm", check_block, one_norm, "used twice"),
    ("mlp first", check_block, mlp_first, "comes first"),
    ("attention lost", check_block, lost_attention, "where did the attention's go"),
    ("normed branches", check_block, normed_branches, "behind the branches"),
    ("second norm in the stream", check_block, half_normed_stream, "norm2's result is in"),
    (
        "swapped norms",
        check_block,
        lambda x, n1, a, n2, m: block(x, n2, a, n1, m),
        "changed places",
    ),
    (
        "no norm 1",
        check_block,
        lambda x, n1, a, n2, m: block(x, lambda y: y, a, n2, m),
        "what is norm1 for",
    ),
    (
        "in place",
        check_block,
        in_place,
        "change an input in place",
    ),
    (
        "no norm 2",
        check_block,
        lambda x, n1, a, n2, m: block(x, n1, a, lambda y: y, m),
        "what is norm2 for",
    ),
    (
        "no norms",
        check_block,
        lambda x, n1, a, n2, m: block(x, lambda y: y, a, lambda y: y, m),
        "not normed at all",
    ),
    (
        "matrices",
        check_account,
        changed(lambda D, hidden: 4 * D * D + 2 * D * hidden),
        "what else is learned",
    ),
    (
        "no norms counted",
        check_account,
        changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 5 * D + hidden),
        "what do the norms learn",
    ),
    (
        "no biases",
        check_account,
        changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 4 * D),
        "have biases",
    ),
    (
        "gains only",
        check_account,
        changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 7 * D + hidden),
        "how many vectors",
    ),
    (
        "no W_O",
        check_account,
        changed(lambda D, hidden: 3 * D * D + 2 * D * hidden + 8 * D + hidden),
        "which matrix comes after",
    ),
    (
        "4 D assumed",
        check_account,
        changed(lambda D, hidden: 12 * D * D + 13 * D),
        "hidden = 4 D only",
    ),
    (
        "FLOPs",
        check_account,
        changed(None, lambda N, D, hidden: 2 * account(N, D, hidden)[1]),
        "those are FLOPs",
    ),
    (
        "no N x N",
        check_account,
        changed(None, lambda N, D, hidden: N * (4 * D * D + 2 * D * hidden)),
        "where do tokens meet",
    ),
    (
        "one N x N",
        check_account,
        changed(None, lambda N, D, hidden: account(N, D, hidden)[1] - N * N * D),
        "scores or weighted sums",
    ),
    (
        "scores for one",
        check_account,
        changed(None, lambda N, D, hidden: N * (4 * D * D + 2 * D * hidden) + 2 * N * N),
        "does one score take",
    ),
    (
        "one token",
        check_account,
        changed(None, lambda N, D, hidden: 4 * D * D + 2 * D * hidden + 2 * N * N * D),
        "once for each token",
    ),
    (
        "biases multiplied",
        check_account,
        changed(None, lambda N, D, hidden: account(N, D, hidden)[1] + N * (5 * D + hidden)),
        "is a bias multiplied",
    ),
    (
        "4 D assumed in the products",
        check_account,
        changed(None, lambda N, D, hidden: 12 * N * D * D + 2 * N * N * D),
        "hidden = 4 D only",
    ),
    (
        "dropout",
        check_drop_path,
        lambda b, rate: F.dropout(b, rate) if rate else b,
        "as in dropout",
    ),
    (
        "tokens",
        check_drop_path,
        lambda b, rate: b * (torch.rand(*b.shape[:2], 1) >= rate) / (1 - rate),
        "single tokens",
    ),
    (
        "not scaled",
        check_drop_path,
        lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate),
        "mean over many runs",
    ),
    (
        "scaled down",
        check_drop_path,
        lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) * (1 - rate),
        "became smaller",
    ),
    (
        "keeps the rate",
        check_drop_path,
        lambda b, rate: b * (torch.rand(len(b), 1, 1) < rate) / (1 - rate),
        "what stays, or what goes",
    ),
    ("nothing", check_drop_path, lambda b, rate: b, "nothing was dropped"),
    ("everything", check_drop_path, lambda b, rate: 0 * b, "all samples were dropped at once"),
    (
        "same for all",
        check_drop_path,
        lambda b, rate: b * (torch.arange(b.shape[1]) > 0)[:, None],
        "all samples lose the same",
    ),
    (
        "scaled by rate",
        check_drop_path,
        lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) / (rate or 1),
        "scaled by what is dropped",
    ),
]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=[row[0].__name__ for row in RIGHT])
def test_the_right_answer_passes(check, answer, capsys):
    for _ in range(5):  # other inputs each time
        check(answer)
    assert capsys.readouterr().out.count("ok:") == 5


@pytest.mark.parametrize("check", [row[0] for row in RIGHT])
def test_a_stub_is_not_answered_yet(check, capsys):
    check(lambda *inputs: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_half_an_account_is_not_answered_yet(capsys):
    check_account(lambda N, D, hidden: (..., ...))
    assert capsys.readouterr().out.startswith("not answered yet")


@pytest.mark.parametrize(
    ("check", "answer", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_named(check, answer, words):
    for _ in range(3):
        with pytest.raises(CheckFailed) as failure:
            check(answer)
        assert words in str(failure.value)
