"""Chapter 9: the block."""

import math

import torch
import torch.nn.functional as F
from case import Case, stub

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


def mlp_with(inner):
    return lambda x, W1, b1, W2, b2: F.linear(inner(F.linear(x, W1, b1)), W2, b2)


def mlp_by_loops(x, W1, b1, W2, b2):
    out = torch.empty_like(x)
    for i, image in enumerate(x):
        for j, token in enumerate(image):
            z = W1 @ token + b1
            out[i, j] = W2 @ (z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))) + b2
    return out


def mlp_by_einsum(x, W1, b1, W2, b2):
    hidden = F.gelu(torch.einsum("bnd,kd->bnk", x, W1) + b1)
    return torch.einsum("bnk,dk->bnd", hidden, W2) + b2


def layer_norm_by_loops(x, gain, bias, eps):
    tokens = []
    for token in x.flatten(0, 1):
        mean = sum(token) / len(token)
        variance = sum((number - mean) ** 2 for number in token) / len(token)
        tokens.append((token - mean) / (variance + eps) ** 0.5 * gain + bias)
    return torch.stack(tokens).view_as(x)


def drop_path_by_loops(branch, rate):
    return torch.stack(
        [0 * image if torch.rand(()) < rate else image / (1 - rate) for image in branch]
    )


def drop_path_by_bernoulli(branch, rate):
    return branch * torch.full((len(branch), 1, 1), 1 - rate).bernoulli() / (1 - rate)


def no_query_bias(D, hidden):
    return 4 * D * D + 2 * D * hidden + 6 * D + hidden


CASES = [
    Case(
        check_mlp,
        right=mlp,
        also={"loops": mlp_by_loops, "einsum": mlp_by_einsum},
        mistakes={
            "no bend": (
                lambda x, W1, b1, W2, b2: F.linear(F.linear(x, W1, b1), W2, b2),
                "without a nonlinearity",
            ),
            "relu": (lambda x, W1, b1, W2, b2: (x @ W1.T + b1).relu() @ W2.T + b2, "that is ReLU"),
            "bent twice": (lambda *a: F.gelu(mlp(*a)), "behind the result as well"),
            "bent at the end": (
                lambda x, W1, b1, W2, b2: F.gelu(F.linear(F.linear(x, W1, b1), W2, b2)),
                "after both layers",
            ),
            "tanh": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T + b1, approximate="tanh") @ W2.T + b2,
                "tanh approximation",
            ),
            "no first bias": (lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T) @ W2.T + b2, "first bias"),
            "no second bias": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1.T + b1) @ W2.T,
                "second bias",
            ),
            "adds x": (lambda x, *a: x + mlp(x, *a), "or the block's"),
            "not transposed": (
                lambda x, W1, b1, W2, b2: F.gelu(x @ W1 + b1) @ W2 + b2,
                "(out, in)",
            ),
            "bare transposes": (
                lambda x, W1, b1, W2, b2: F.gelu(F.linear(x, W1, b1)) @ W2 + b2,
                "(out, in)",
            ),
            "silu": (mlp_with(F.silu), "that is SiLU"),
            "sigmoid": (mlp_with(lambda y: y * torch.sigmoid(1.702 * y)), "GELU by a sigmoid"),
            "something broken": (
                lambda x, W1, b1, W2, b2: x @ torch.zeros(9, 9),
                "your code stopped",
            ),
        },
    ),
    Case(
        check_layer_norm,
        right=layer_norm,
        also={
            "F.layer_norm": lambda x, g, b, e: F.layer_norm(x, g.shape, g, b, e),
            "loops": layer_norm_by_loops,
        },
        mistakes={
            "over tokens": (normed_over(1), "over the tokens"),
            "over the batch": (normed_over(0), "over the batch"),
            "batch norm": (normed_over((0, 1)), "BatchNorm's choice"),
            "over the image": (normed_over((1, 2)), "one mean for all tokens"),
            "over everything": (normed_over((0, 1, 2)), "one mean for everything"),
            "D - 1": (
                lambda x, g, b, e: (
                    (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + e).sqrt() * g + b
                ),
                "D - 1",
            ),
            "root mean square": (
                lambda x, g, b, e: x / (x.square().mean(-1, keepdim=True) + e).sqrt() * g + b,
                "mean is still there",
            ),
            "not centred": (
                lambda x, g, b, e: x / (x.var(-1, correction=0, keepdim=True) + e).sqrt() * g + b,
                "mean is still there",
            ),
            "variance": (centred_over(lambda v, e: v + e), "or its root"),
            "no bias": (lambda x, g, b, e: layer_norm(x, g, 0, e), "where is the bias"),
            "no gain": (lambda x, g, b, e: layer_norm(x, 1, b, e), "where is the gain"),
            "neither": (lambda x, g, b, e: layer_norm(x, 1, 0, e), "are missing"),
            "bias scaled": (
                lambda x, g, b, e: (layer_norm(x, 1, 0, e) + b) * g,
                "scaled by the gain",
            ),
            "no eps": (centred_over(lambda v, e: v.sqrt()), "eps has no effect"),
            "eps outside": (centred_over(lambda v, e: v.sqrt() + e), "beside the root"),
            "own eps": (centred_over(lambda v, e: (v + 1e-6).sqrt()), "that was given"),
            "PyTorch's eps": (centred_over(lambda v, e: (v + 1e-5).sqrt()), "that was given"),
        },
    ),
    Case(
        check_block,
        right=block,
        also={"one line": lambda x, n1, a, n2, m: (y := x + a(n1(x))) + m(n2(y))},
        mistakes={
            "post-norm": (post_norm, "that is post-norm"),
            "normed stream": (normed_stream, "in the stream now"),
            "no additions": (no_additions, "nothing is added"),
            "parallel": (parallel, "both branches read x"),
            "one norm": (one_norm, "used twice"),
            "mlp first": (mlp_first, "comes first"),
            "attention lost": (lost_attention, "where did the attention's go"),
            "normed branches": (normed_branches, "behind the branches"),
            "second norm in the stream": (half_normed_stream, "norm2's result is in"),
            "swapped norms": (lambda x, n1, a, n2, m: block(x, n2, a, n1, m), "changed places"),
            "no norm 1": (
                lambda x, n1, a, n2, m: block(x, lambda y: y, a, n2, m),
                "what is norm1 for",
            ),
            "in place": (in_place, "change an input in place"),
            "no norm 2": (
                lambda x, n1, a, n2, m: block(x, n1, a, lambda y: y, m),
                "what is norm2 for",
            ),
            "no norms": (
                lambda x, n1, a, n2, m: block(x, lambda y: y, a, lambda y: y, m),
                "not normed at all",
            ),
        },
    ),
    Case(
        check_account,
        right=account,
        also={"floats": lambda N, D, hidden: [float(n) for n in account(N, D, hidden)]},
        mistakes={
            "matrices": (
                changed(lambda D, hidden: 4 * D * D + 2 * D * hidden),
                "what else is learned",
            ),
            "no norms counted": (
                changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 5 * D + hidden),
                "what do the norms learn",
            ),
            "no biases": (
                changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 4 * D),
                "have biases",
            ),
            "gains only": (
                changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 7 * D + hidden),
                "how many vectors",
            ),
            "no W_O": (
                changed(lambda D, hidden: 3 * D * D + 2 * D * hidden + 8 * D + hidden),
                "which matrix comes after",
            ),
            "4 D assumed": (changed(lambda D, hidden: 12 * D * D + 13 * D), "hidden = 4 D only"),
            "FLOPs": (
                changed(None, lambda N, D, hidden: 2 * account(N, D, hidden)[1]),
                "those are FLOPs",
            ),
            "no N x N": (
                changed(None, lambda N, D, hidden: N * (4 * D * D + 2 * D * hidden)),
                "where do tokens meet",
            ),
            "one N x N": (
                changed(None, lambda N, D, hidden: account(N, D, hidden)[1] - N * N * D),
                "scores or weighted sums",
            ),
            "scores for one": (
                changed(None, lambda N, D, hidden: N * (4 * D * D + 2 * D * hidden) + 2 * N * N),
                "does one score take",
            ),
            "one token": (
                changed(None, lambda N, D, hidden: 4 * D * D + 2 * D * hidden + 2 * N * N * D),
                "once for each token",
            ),
            "biases multiplied": (
                changed(None, lambda N, D, hidden: account(N, D, hidden)[1] + N * (5 * D + hidden)),
                "is a bias multiplied",
            ),
            "4 D assumed in the products": (
                changed(None, lambda N, D, hidden: 12 * N * D * D + 2 * N * N * D),
                "hidden = 4 D only",
            ),
            "q k v without bias": (changed(no_query_bias), "queries, keys and values their biases"),
            "three vectors in the norms": (
                changed(lambda D, hidden: 4 * D * D + 2 * D * hidden + 6 * D + hidden),
                "Or the norms all of their vectors",
            ),
            "one matrix in the MLP": (
                changed(lambda D, hidden: account(1, D, hidden)[0] - D * hidden),
                "how many matrices",
            ),
        },
        stubs=(stub, lambda N, D, hidden: (..., ...)),
    ),
    Case(
        check_drop_path,
        right=drop_path,
        also={"loops": drop_path_by_loops, "bernoulli": drop_path_by_bernoulli},
        mistakes={
            "dropout": (lambda b, rate: F.dropout(b, rate) if rate else b, "as in dropout"),
            "tokens": (
                lambda b, rate: b * (torch.rand(*b.shape[:2], 1) >= rate) / (1 - rate),
                "single tokens",
            ),
            "not scaled": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate),
                "mean over many runs",
            ),
            "scaled down": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) * (1 - rate),
                "became smaller",
            ),
            "keeps the rate": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) < rate) / (1 - rate),
                "what stays, or what goes",
            ),
            "nothing": (lambda b, rate: b, "nothing was dropped"),
            "everything": (lambda b, rate: 0 * b, "everything is dropped"),
            "same for all": (
                lambda b, rate: b * (torch.arange(b.shape[1]) > 0)[:, None],
                "all samples lose the same",
            ),
            "scaled by rate": (
                lambda b, rate: b * (torch.rand(len(b), 1, 1) >= rate) / (rate or 1),
                "scaled by what is dropped",
            ),
            "one lot for all": (
                lambda b, rate: b * (torch.rand(1) >= rate) / (1 - rate),
                "does each draw its own lot",
            ),
        },
    ),
]
