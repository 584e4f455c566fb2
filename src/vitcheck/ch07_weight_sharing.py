"""Checks of chapter 7: updates, accumulation, who moves whom, the FFN's share, invariance."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.trial import Trial, staged


def _counts(samples, batch_size, epochs, accumulate):
    batches = math.ceil(samples / batch_size)
    return batches, epochs * math.ceil(batches / accumulate)


def _updates(change):
    """Updates as a function of epochs, accumulate and the batches of one epoch."""
    return lambda n, size, epochs, accumulate: change(epochs, accumulate, math.ceil(n / size))


@staged(
    "my_counts",
    ok="batches of an epoch and updates of a training, left-overs included",
    right=_counts,
    in_part={
        0: {
            "four samples go into one batch. How often does that go?": [
                lambda n, size, e, a: size,
                lambda n, size, e, a: 2 * size,
            ],
            "batches of one epoch are asked, not of all": lambda n, size, e, a: (
                e * math.ceil(n / size)
            ),
            "accumulating changes when you step. Does it change the batches?": (
                lambda n, size, e, a: math.ceil(n / size / a)
            ),
            "the last two samples are left out. Is a small batch no batch?": (
                lambda n, size, e, a: n // size
            ),
            "a batch comes whole or not at all": lambda n, size, e, a: n / size,
        },
        1: {
            "one update in an epoch: did you accumulate where nobody asked for it?": 1,
            "are the later epochs for nothing?": _updates(lambda e, a, k: math.ceil(k / a)),
            "an update after every batch: where does `accumulate` enter?": _updates(
                lambda e, a, k: e * k
            ),
            "more updates than batches: multiply or divide?": _updates(lambda e, a, k: e * k * a),
            "the epoch ends with two batches that were accumulated and never used. When do you "
            "step?": _updates(lambda e, a, k: e * (k // a)),
            "does a group run over the end of the epoch? There the rule asks for an update.": [
                _updates(lambda e, a, k: math.ceil(e * k / a)),
                _updates(lambda e, a, k: e * k / a),
            ],
        },
    },
)
def check_counts(trial: Trial, counts):
    """Exercise "How many updates?": counts(samples, batch_size, epochs, accumulate) -> a pair."""
    samples, epochs = 8 * trial.integer(4, 6), trial.integer(3, 5)
    for stage, case in (
        ("40 samples, batches of 4, one epoch", (40, 4, 1, 1)),
        ("several epochs", (samples, 8, epochs, 1)),
        ("accumulation", (48, 8, epochs, 3)),
        ("a last batch that is not full", (42, 8, 1, 1)),
        ("an epoch that ends in the middle of a group", (42, 8, 2, 4)),
    ):
        trial.stage(stage)
        pair = trial.pair(counts(*case), name="the answer")
        batches, updates = (trial.number(value, name="each of the two") for value in pair)
        otherwise = f"you say {batches:g} batches, {updates:g} updates; count them one by one"
        for part in (0, 1):
            trial.compare(pair, *case, part=part, otherwise=otherwise)


class _Log(list):
    """What a model has seen; copies of the model write into the same list."""

    def __deepcopy__(self, memo):
        return self


class _Watched(nn.Module):
    """A small regression model that remembers how many samples each call brought."""

    def __init__(self, trial):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        for p in self.parameters():
            p.data = trial.randn(*p.shape)
        self.seen = _Log()

    def forward(self, x):
        self.seen.append(len(x))
        return self.net(x)


def _accumulate(model, batches, weight=lambda n, total, batches: n / total, from_batch=0):
    total, grads = sum(len(x) for x, _ in batches), []
    for x, y in batches:
        loss = weight(len(x), total, len(batches)) * F.mse_loss(model(x), y)
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    return [sum(each) for each in zip(*grads[from_batch:], strict=True)]


@staged(
    "my_accumulate",
    ok="one batch at a time, and the gradient of all samples together",
    right=_accumulate,
    mistakes={
        "only the last batch is left. Who cleared the gradients of the others?": [
            partial(_accumulate, from_batch=-1, weight=lambda n, total, batches: 1),
            partial(_accumulate, from_batch=-1, weight=lambda n, total, batches: 1 / batches),
            partial(_accumulate, from_batch=-1),
        ],
        "the means were added as they are: sum, mean, or neither?": partial(
            _accumulate, weight=lambda n, total, batches: 1
        ),
        "that is the gradient of the sum, not of the mean": partial(
            _accumulate, weight=lambda n, total, batches: n
        ),
        "right for batches of equal size only. Here one sample is a batch of its own, and counts "
        "as much as seven others together. What should a mean be weighted by?": partial(
            _accumulate, weight=lambda n, total, batches: 1 / batches
        ),
    },
)
def check_accumulate(trial: Trial, accumulate):
    """Exercise "Batches of unequal size": accumulate(model, batches) -> list of gradients."""

    def flat(grads):
        if not isinstance(grads, list | tuple) or len(grads) != len(before):
            trial.fail(f"a list of {len(before)} gradients is asked for, one for each parameter")
        pairs = zip(grads, before, strict=True)
        return torch.cat([trial.tensor(g, p.shape, name="a gradient").flatten() for g, p in pairs])

    for sizes in ((4, 4, 4), (7, 2, 1, 5)):
        trial.stage(f"batches of {', '.join(map(str, sizes))}")
        model = _Watched(trial)
        batches = [(trial.randn(n, 3), trial.randn(n, 1)) for n in sizes]
        before = [p.detach().clone() for p in model.parameters()]
        grads = accumulate(model, batches)
        got = flat(grads)
        pairs = zip(model.parameters(), before, strict=True)
        trial.ask(
            all(torch.equal(p, old) for p, old in pairs),
            "the weights have changed. Only the gradient is asked for: who made a step?",
        )
        trial.ask(
            max(model.seen, default=0) < sum(sizes),
            "all samples went through the model at once; but only one batch fits into memory",
        )
        trial.ask(
            sorted(model.seen) == sorted(sizes),
            f"the model saw batches of {model.seen}; each of {list(sizes)} is needed once",
        )
        otherwise = "not the gradient of the mean loss over all samples"
        trial.compare(list(grads), model, batches, otherwise=otherwise, tolerance=1e-4)

    trial.stage("called a second time")
    trial.match(
        flat(accumulate(model, batches)),
        got,
        {
            "the gradient of the first call is still inside. What comes before the first batch?": 2
            * got
        },
        otherwise="the same weights, same batches, and another gradient than at the first call",
        tolerance=1e-4,
    )


class _FromLeft(nn.Module):
    """Token i takes from token i - 1 and from itself."""

    def forward(self, x):
        return x + 0.5 * F.pad(x, (0, 0, 1, 0))[:, :-1]


class _ToMean(nn.Module):
    """Every token takes a little from all."""

    def forward(self, x):
        return x + 0.01 * x.mean(1, keepdim=True)


def _influence(layer, x):
    with torch.no_grad():
        before, columns = layer(x), []
        for j in range(x.shape[1]):
            disturbed = x.clone()
            disturbed[:, j] += 1.0
            columns.append((layer(disturbed) != before).any(-1)[0])
    return torch.stack(columns, dim=1)


def _table(fill):
    """What somebody says who gives the same table for every layer."""
    return lambda layer, x: fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))


@staged(
    "my_influence",
    ok="row i says which tokens move output i, for any layer",
    right=_influence,
    mistakes={
        "everybody moves everybody, in an FFN? Did you disturb one token at a time, and compare "
        "with the undisturbed output?": _table(lambda ones: ones),
        "True should mean that the token moves": lambda layer, x: ~_influence(layer, x),
        "nobody moves. Did you compare the disturbed output with itself?": _table(
            lambda ones: ~ones
        ),
        "token i takes from token i - 1, and your table says i + 1. Which axis is the output?": (
            lambda layer, x: _influence(layer, x).T
        ),
        "only the diagonal? Each output has a neighbour in it.": _table(
            lambda ones: ones.tril().triu()
        ),
        "is token i moved by all tokens before it, or by one?": lambda layer, x: (
            _influence(layer, x).flip(1).cummax(1).values.flip(1)
            if _influence(layer, x).tril(-1).any()
            else _influence(layer, x)
        ),
    },
)
def check_influence(trial: Trial, influence):
    """Exercise "Who moves whom?": influence(layer, x (1, N, D)) -> boolean (N, N)."""
    N, D = trial.integer(4, 6), 3
    x = trial.randn(1, N, D)
    ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
    for p in ffn.parameters():
        p.data = trial.randn(*p.shape)
    for stage, layer, otherwise in (
        ("an FFN", ffn, "a token of an FFN moves its own output and no other"),
        ("a layer that looks to the left", _FromLeft(), "row i: which input tokens move output i?"),
    ):
        trial.stage(stage)
        trial.compare(influence, layer, x, otherwise=otherwise, name="the table")
    trial.stage("a layer in which each token takes a little from all")
    question = "a small change is a change. How large must one be?"
    trial.close(influence(_ToMean(), x), torch.ones(N, N).bool(), question, name="the table")


def _share(N, D, mlp_ratio, *, products=2, matrices=4, layers=2):
    ffn, attention = layers * mlp_ratio * D, matrices * D + products * N
    return ffn / (ffn + attention)


@staged(
    "my_ffn_share",
    ok="the FFN's share of the multiplies, for any N, D and mlp_ratio",
    right=_share,
    mistakes={
        "that is the share of the parameters. What multiplies, and has none?": partial(
            _share, products=0
        ),
        "how many products of the size N x N x D are in softmax(q k^T) v?": partial(
            _share, products=1
        ),
        "Q, K, V; is there a fourth matrix in the attention layer?": partial(_share, matrices=3),
        "an FFN goes up and comes down. Did you count both?": partial(_share, layers=1),
        "that is the share of the attention layer": lambda *sizes: 1 - _share(*sizes),
        "that is FFN over attention, a ratio; of what is it to be a share?": lambda *sizes: (
            _share(*sizes) / (1 - _share(*sizes))
        ),
        "a third of the tokens, and the same share: where is N?": lambda N, D, mlp_ratio: _share(
            3 * D, D, mlp_ratio
        ),
        "half is right for mlp_ratio 4. Does it enter?": lambda N, D, mlp_ratio: _share(N, D, 4),
    },
)
def check_ffn_share(trial: Trial, share):
    """Exercise "The FFN's share": share(N, D, mlp_ratio) -> between 0 and 1."""
    D = 16 * trial.integer(4, 12)
    trial.stage("three times as many tokens as the width, mlp_ratio 4")
    got = trial.number(share(3 * D, D, 4), name="the share")
    trial.ask(0 <= got <= 1, f"a share lies between 0 and 1, not at {got:.3g}")
    trial.ask(
        got > 0.1,
        "next to nothing? The N x N part costs N D for each token: did you count it N times?",
    )
    otherwise = f"of 18 D^2 multiplies per token, 8 are the FFN's: {got:.3f}?"
    trial.compare(got, 3 * D, D, 4, otherwise=otherwise)
    trial.stage("another number of tokens")
    got = trial.number(share(D, D, 4), name="the share")
    trial.compare(got, D, D, 4, otherwise=f"at N = D it is 4 / 7, you say {got:.3f}")
    trial.stage("another mlp_ratio")
    got = trial.number(share(2 * D, D, 2), name="the share")
    otherwise = f"at N = 2 D and mlp_ratio 2 it is 1/3, you say {got:.3f}"
    trial.compare(got, 2 * D, D, 2, otherwise=otherwise)


@staged("my_feature", ok="the same for every shift of the image, and still not blind")
def check_invariant_feature(trial: Trial, feature):
    """Exercise "Shift as you like": feature(image (H, W), kernels (K, 3, 3)) -> (K,)."""
    H, W, K = trial.integer(7, 8), trial.integer(9, 11), 4
    image, kernels = trial.randn(H, W), trial.randn(K, 3, 3)

    def of(image, kernels=kernels):
        return trial.tensor(feature(image, kernels), (K,), name="the features")

    trial.stage("shape")
    first = of(image)
    size = first.abs().max().clamp(min=1.0)  # a sum over all pixels may be large

    def same(one, other):
        return bool((one - other).abs().max() <= 1e-4 * size)

    trial.stage("shifts")
    shifts = [(0, 1), (1, 0), (2, 3), (H - 2, W - 1), (3, 5)]
    changes = [(of(image.roll(s, (0, 1))) - first).abs().max() for s in shifts]
    if max(changes) > 1e-4 * size:
        inside = F.relu(F.conv2d(image[None, None], kernels[:, None])).mean((-2, -1))[0]
        hint = "What stands beyond the edge of the image, and what after the shift?"
        if same(first, inside):
            hint = "Without padding, the edge pixels are seen less often than the others."
        trial.fail(f"a shift changes the features, by up to {max(changes):.2g}. {hint}")

    trial.stage("the kernels")
    other = of(image, trial.randn(K, 3, 3))
    trial.ask(not same(other, first), "other kernels, and nothing changes?")
    order = torch.tensor([2, 0, 3, 1])
    trial.close(
        of(image, kernels[order]),
        first[order],
        "each feature belongs to one kernel; reorder the kernels and the features follow",
        tolerance=1e-4,
    )

    trial.stage("another image")
    pixels = torch.randperm(H * W, generator=trial.generator)
    if same(of(image.flatten()[pixels].view(H, W)), first):
        blind = "the same pixels in any order give the same features: "
        trial.ask(
            not same(of(-image), -first),
            f"{blind}you average something linear, and that is only the mean pixel. What has to "
            "stand between convolution and average?",
        )
        trial.fail(f"{blind}does anything that you average see more than one pixel at a time?")
    trial.ask(
        not same(of(image.flip(1)), first),
        "the mirrored image gives the same features. Do the kernels see neighbours?",
    )
