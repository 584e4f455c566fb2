"""Checks of chapter 7: updates, accumulation, who moves whom, the FFN's share, invariance."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.trial import Trial, staged


@staged("my_counts", ok="batches of an epoch and updates of a training, left-overs included")
def check_counts(trial: Trial, counts):
    """Exercise "How many updates?": counts(samples, batch_size, epochs, accumulate) -> a pair."""

    def look(stage, case, mistakes):
        """Compare the pair of one case; a None in a mistake stands for any number."""
        samples, size, epochs, accumulate = case
        trial.stage(stage)
        pair = trial.pair(counts(*case), name="the answer")
        got = [trial.number(value, name="each of the two") for value in pair]
        batches = math.ceil(samples / size)
        trial.match(
            torch.tensor(got),
            torch.tensor([batches, epochs * math.ceil(batches / accumulate)]).float(),
            {
                question: [
                    torch.tensor([g if m is None else m for g, m in zip(got, one, strict=True)])
                    for one in several
                ]
                for question, several in mistakes.items()
            },
            otherwise=f"you say {got[0]:g} batches, {got[1]:g} updates; count them one by one",
        )

    look(
        "40 samples, batches of 4, one epoch",
        (40, 4, 1, 1),
        {
            "four samples go into one batch. How often does that go?": [(4, 4), (8, None)],
            "one update in an epoch: did you accumulate where nobody asked for it?": [(10, 1)],
        },
    )
    samples, epochs = 8 * trial.integer(4, 6), trial.integer(3, 5)
    each = samples // 8
    look(
        "several epochs",
        (samples, 8, epochs, 1),
        {
            "batches of one epoch are asked, not of all": [(epochs * each, None)],
            "are the later epochs for nothing?": [(None, each)],
        },
    )
    look(
        "accumulation",
        (48, 8, epochs, 3),
        {
            "accumulating changes when you step. Does it change the batches?": [(2, None)],
            "an update after every batch: where does `accumulate` enter?": [(None, 6 * epochs)],
            "more updates than batches: multiply or divide?": [(None, 6 * 3 * epochs)],
        },
    )
    look(
        "a last batch that is not full",
        (42, 8, 1, 1),
        {
            "the last two samples are left out. Is a small batch no batch?": [(5, None)],
            "a batch comes whole or not at all": [(42 / 8, None)],
        },
    )
    look(
        "an epoch that ends in the middle of a group",
        (42, 8, 2, 4),
        {
            "the epoch ends with two batches that were accumulated and never used. When do you "
            "step?": [(None, 2)],
            "does a group run over the end of the epoch? There the rule asks for an update.": [
                (None, 3)
            ],
        },
    )


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


def _gradient(model, x, y):
    loss = F.mse_loss(model(x), y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


@staged("my_accumulate", ok="one batch at a time, and the gradient of all samples together")
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
        x, y = (torch.cat(part) for part in zip(*batches, strict=True))
        whole = _gradient(model, x, y)
        each = torch.stack([_gradient(model, *batch) for batch in batches])
        model.seen.clear()
        got = flat(accumulate(model, batches))
        pairs = zip(model.parameters(), before, strict=True)
        trial.ask(
            all(torch.equal(p, old) for p, old in pairs),
            "the weights have changed. Only the gradient is asked for: who made a step?",
        )
        trial.ask(
            max(model.seen, default=0) < len(x),
            "all samples went through the model at once; but only one batch fits into memory",
        )
        trial.ask(
            sorted(model.seen) == sorted(sizes),
            f"the model saw batches of {model.seen}; each of {list(sizes)} is needed once",
        )

        trial.match(
            got,
            whole,
            {
                "only the last batch is left. Who cleared the gradients of the others?": [
                    share * each[-1] for share in (1, 1 / len(sizes), sizes[-1] / len(x))
                ],
                "the means were added as they are: sum, mean, or neither?": each.sum(0),
                "that is the gradient of the sum, not of the mean": whole * len(x),
                "right for batches of equal size only. Here one sample is a batch of its own, and "
                "counts as much as seven others together. What should a mean be weighted by?": (
                    each.mean(0)
                ),
            },
            otherwise="not the gradient of the mean loss over all samples",
            tolerance=1e-4,
        )

    trial.stage("called a second time")
    trial.match(
        flat(accumulate(model, batches)),
        whole,
        {
            "the gradient of the first call is still inside. What comes before the first batch?": [
                2 * whole
            ]
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


@staged("my_influence", ok="row i says which tokens move output i, for any layer")
def check_influence(trial: Trial, influence):
    """Exercise "Who moves whom?": influence(layer, x (1, N, D)) -> boolean (N, N)."""
    N, D = trial.integer(4, 6), 3
    x = trial.randn(1, N, D)
    ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
    for p in ffn.parameters():
        p.data = trial.randn(*p.shape)
    everything, alone = torch.ones(N, N).bool(), torch.eye(N).bool()

    def ask_layer(layer, want, mistakes, otherwise):
        got = influence(layer, x)
        trial.match(got, want, mistakes, otherwise=otherwise, name="the table")

    trial.stage("an FFN")
    ask_layer(
        ffn,
        alone,
        {
            "everybody moves everybody, in an FFN? Did you disturb one token at a time, and "
            "compare with the undisturbed output?": everything,
            "True should mean that the token moves": ~alone,
            "nobody moves. Did you compare the disturbed output with itself?": ~everything,
        },
        "a token of an FFN moves its own output and no other",
    )
    trial.stage("a layer that looks to the left")
    want = alone | everything.tril(-1).triu(-1)
    ask_layer(
        _FromLeft(),
        want,
        {
            "token i takes from token i - 1, and your table says i + 1. Which axis is the "
            "output?": want.T,
            "only the diagonal? Each output has a neighbour in it.": alone,
            "is token i moved by all tokens before it, or by one?": everything.tril(),
        },
        "row i: which input tokens move output i?",
    )
    trial.stage("a layer in which each token takes a little from all")
    ask_layer(_ToMean(), everything, {}, "a small change is a change. How large must one be?")


@staged("my_ffn_share", ok="the FFN's share of the multiplies, for any N, D and mlp_ratio")
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
    trial.match(
        got,
        8 / 18,
        {
            "that is the share of the parameters. What multiplies, and has none?": 8 / 12,
            "how many products of the size N x N x D are in softmax(q k^T) v?": 8 / 15,
            "Q, K, V; is there a fourth matrix in the attention layer?": 8 / 17,
            "an FFN goes up and comes down. Did you count both?": 4 / 14,
            "that is the share of the attention layer": 10 / 18,
            "that is FFN over attention, a ratio; of what is it to be a share?": 8 / 10,
        },
        otherwise=f"of 18 D^2 multiplies per token, 8 are the FFN's: {got:.3f}?",
    )
    trial.stage("another number of tokens")
    got = trial.number(share(D, D, 4), name="the share")
    trial.match(
        got,
        8 / 14,
        {"a third of the tokens, and the same share: where is N?": 8 / 18},
        otherwise=f"at N = D it is 4 / 7, you say {got:.3f}",
    )
    trial.stage("another mlp_ratio")
    got = trial.number(share(2 * D, D, 2), name="the share")
    trial.match(
        got,
        4 / 12,
        {"half is right for mlp_ratio 4. Does it enter?": 8 / 16},
        otherwise=f"at N = 2 D and mlp_ratio 2 it is 1/3, you say {got:.3f}",
    )


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
