"""Checks of chapter 7: updates, accumulation, who moves whom, the FFN's share, invariance."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.trial import staged


@staged("my_counts", ok="batches of an epoch and updates of a training, left-overs included")
def check_counts(trial, counts):
    """Exercise "How many updates?": counts(samples, batch_size, epochs, accumulate) -> a pair."""

    def pair(*case):
        got = trial.pair(counts(*case), name="the answer")
        return tuple(trial.number(value, name="each of the two") for value in got)

    def expect(samples, batch_size, epochs, accumulate):
        batches = math.ceil(samples / batch_size)
        return batches, epochs * math.ceil(batches / accumulate)

    trial.stage("40 samples, batches of 4, one epoch")
    batches, updates = pair(40, 4, 1, 1)
    if (batches, updates) == (4, 4) or batches == 8:
        trial.fail(f"{batches:.0f} batches? Four samples go into one. How often does that go?")
    if (batches, updates) == (10, 1):
        trial.fail("one update in an epoch: did you accumulate where nobody asked for it?")
    trial.ask((batches, updates) == (10, 10), f"you say {batches:g} batches, {updates:g} updates")

    trial.stage("several epochs")
    samples, size, epochs = 8 * trial.integer(4, 6), 8, trial.integer(3, 5)
    batches, updates = pair(samples, size, epochs, 1)
    trial.ask(batches != epochs * samples // size, "batches of one epoch are asked, not of all")
    trial.ask(updates != samples // size, "are the later epochs for nothing?")
    trial.ask(
        (batches, updates) == expect(samples, size, epochs, 1), "how many updates has an epoch?"
    )

    trial.stage("accumulation")
    batches, updates = pair(48, 8, epochs, 3)
    trial.ask(batches == 6, "accumulating changes when you step. Does it change the batches?")
    trial.ask(updates != 6 * epochs, "an update after every batch: where does `accumulate` enter?")
    trial.ask(updates != 6 * 3 * epochs, "more updates than batches: multiply or divide?")
    trial.ask(updates == 2 * epochs, f"{updates:g} updates; after which batches do you step?")

    trial.stage("a last batch that is not full")
    batches, updates = pair(42, 8, 1, 1)
    trial.ask(batches != 5, "the last two samples are left out. Is a small batch no batch?")
    trial.ask(batches == int(batches), f"{batches:g} batches: a batch comes whole or not at all")
    trial.ask((batches, updates) == (6, 6), f"you say {batches:g} batches, {updates:g} updates")

    trial.stage("an epoch that ends in the middle of a group")
    batches, updates = pair(42, 8, 2, 4)
    trial.ask(
        updates != 2,
        "the epoch ends with two batches that were accumulated and never used. When do you step?",
    )
    trial.ask(
        updates not in (3, 12 / 4),
        "does a group run over the end of the epoch? There the rule asks for an update.",
    )
    trial.ask((batches, updates) == (6, 4), f"you say {batches:g} batches, {updates:g} updates")


class _Watched(nn.Module):
    """A small regression model that remembers how many samples each call brought."""

    def __init__(self, trial):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        for p in self.parameters():
            p.data = trial.randn(*p.shape)
        self.seen: list[int] = []

    def forward(self, x):
        self.seen.append(len(x))
        return self.net(x)


def _gradient(model, x, y):
    loss = F.mse_loss(model(x), y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


@staged("my_accumulate", ok="one batch at a time, and the gradient of all samples together")
def check_accumulate(trial, accumulate):
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

        def like(other, got=got):
            return torch.allclose(got, other, rtol=1e-3, atol=1e-5)

        shares = (1, 1 / len(sizes), sizes[-1] / len(x))
        trial.ask(
            not any(like(share * each[-1]) for share in shares),
            "only the last batch is left. Who cleared the gradients of the others?",
        )
        trial.ask(not like(each.sum(0)), "the means were added as they are: sum, mean, or neither?")
        trial.ask(not like(whole * len(x)), "that is the gradient of the sum, not of the mean")
        trial.ask(
            not like(each.mean(0)) or len(set(sizes)) == 1,
            "right for batches of equal size only. Here one sample is a batch of its own, and "
            "counts as much as seven others together. What should a mean be weighted by?",
        )
        trial.ask(like(whole), "not the gradient of the mean loss over all samples")

    trial.stage("called a second time")
    trial.ask(
        not torch.allclose(flat(accumulate(model, batches)), 2 * whole, rtol=1e-3, atol=1e-5),
        "the gradient of the first call is still inside. What comes before the first batch?",
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
def check_influence(trial, influence):
    """Exercise "Who moves whom?": influence(layer, x (1, N, D)) -> boolean (N, N)."""
    N, D = trial.integer(4, 6), 3
    x = trial.randn(1, N, D)
    ffn = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
    for p in ffn.parameters():
        p.data = trial.randn(*p.shape)
    everything, alone = torch.ones(N, N).bool(), torch.eye(N).bool()

    def ask_layer(layer):
        return trial.tensor(influence(layer, x), (N, N), dtype=torch.bool, name="the table")

    trial.stage("an FFN")
    got = ask_layer(ffn)
    trial.ask(
        not torch.equal(got, everything),
        "everybody moves everybody, in an FFN? Did you disturb one token at a time, and compare "
        "with the undisturbed output?",
    )
    trial.ask(not torch.equal(got, ~alone), "True should mean that the token moves")
    trial.ask(got.any(), "nobody moves. Did you compare the disturbed output with itself?")
    trial.ask(torch.equal(got, alone), "a token of an FFN moves its own output and no other")

    trial.stage("a layer that looks to the left")
    got, want = ask_layer(_FromLeft()), alone | torch.ones(N, N).bool().tril(-1).triu(-1)
    trial.ask(
        not torch.equal(got, want.T),
        "token i takes from token i - 1, and your table says i + 1. Which axis is the output?",
    )
    trial.ask(not torch.equal(got, alone), "only the diagonal? Each output has a neighbour in it.")
    trial.ask(
        not torch.equal(got, everything.tril()),
        "is token i moved by all tokens before it, or by one?",
    )
    trial.ask(torch.equal(got, want), "row i: which input tokens move output i?")

    trial.stage("a layer in which each token takes a little from all")
    trial.ask(ask_layer(_ToMean()).all(), "a small change is a change. How large must one be?")


@staged("my_ffn_share", ok="the FFN's share of the multiplies, for any N, D and mlp_ratio")
def check_ffn_share(trial, share):
    """Exercise "The FFN's share": share(N, D, mlp_ratio) -> between 0 and 1."""
    D = 16 * trial.integer(4, 12)
    mistakes = {  # at N = 3 D and mlp_ratio 4
        8 / 12: "that is the share of the parameters. What multiplies, and has none?",
        8 / 15: "how many products of the size N x N x D are in softmax(q k^T) v?",
        8 / 17: "Q, K, V; is there a fourth matrix in the attention layer?",
        4 / 14: "an FFN goes up and comes down. Did you count both?",
        10 / 18: "that is the share of the attention layer",
        8 / 10: "that is FFN over attention, a ratio; of what is it to be a share?",
    }
    trial.stage("three times as many tokens as the width, mlp_ratio 4")
    got = trial.number(share(3 * D, D, 4), name="the share")
    trial.ask(0 <= got <= 1, f"a share lies between 0 and 1, not at {got:.3g}")
    for value, question in mistakes.items():
        trial.ask(abs(got - value) > 1e-6, question)
    trial.ask(
        got > 0.1,
        "next to nothing? The N x N part costs N D for each token: did you count it N times?",
    )
    trial.ask(
        abs(got - 8 / 18) < 1e-6, f"of 18 D^2 multiplies per token, 8 are the FFN's: {got:.3f}?"
    )

    trial.stage("another number of tokens")
    got = trial.number(share(D, D, 4), name="the share")
    trial.ask(abs(got - 8 / 18) > 1e-6, "a third of the tokens, and the same share: where is N?")
    trial.ask(abs(got - 8 / 14) < 1e-6, f"at N = D it is 4 / 7, you say {got:.3f}")

    trial.stage("another mlp_ratio")
    got = trial.number(share(2 * D, D, 2), name="the share")
    trial.ask(abs(got - 0.5) > 1e-6, "half is right for mlp_ratio 4. Does it enter?")
    trial.ask(abs(got - 4 / 12) < 1e-6, f"at N = 2 D and mlp_ratio 2 it is 1/3, you say {got:.3f}")


@staged("my_feature", ok="the same for every shift of the image, and still not blind")
def check_invariant_feature(trial, feature):
    """Exercise "Shift as you like": feature(image (H, W), kernels (K, 3, 3)) -> (K,)."""
    H, W, K = trial.integer(7, 8), trial.integer(9, 11), 4
    image, kernels = trial.randn(H, W), trial.randn(K, 3, 3)

    def moved(down, right):
        return feature(image.roll((down, right), (0, 1)), kernels)

    trial.stage("shape")
    first = trial.tensor(feature(image, kernels), (K,), name="the features")

    trial.stage("shifts")
    shifts = [(0, 1), (1, 0), (2, 3), (H - 2, W - 1), (3, 5)]
    changes = [(trial.tensor(moved(*s), (K,)) - first).abs().max().item() for s in shifts]
    if max(changes) > 1e-4:
        inside = F.relu(F.conv2d(image[None, None], kernels[:, None])).mean((-2, -1))[0]
        hint = "What stands beyond the edge of the image, and what after the shift?"
        if torch.allclose(first, inside, atol=1e-4):
            hint = "Without padding, the edge pixels are seen less often than the others."
        trial.fail(f"a shift changes the features, by up to {max(changes):.2g}. {hint}")

    trial.stage("the kernels")
    other = trial.tensor(feature(image, trial.randn(K, 3, 3)), (K,))
    trial.ask(not torch.allclose(other, first, atol=1e-4), "other kernels, and nothing changes?")
    order = torch.tensor([2, 0, 3, 1])
    trial.close(
        feature(image, kernels[order]),
        first[order],
        "each feature belongs to one kernel; reorder the kernels and the features follow",
        tolerance=1e-4,
    )

    trial.stage("another image")
    pixels = torch.randperm(H * W, generator=trial.generator)
    shuffled = image.flatten()[pixels].view(H, W)
    trial.ask(
        not torch.allclose(feature(shuffled, kernels), first, atol=1e-3),
        "the same pixels in any order give the same features: you average something linear, and "
        "that is only the mean pixel. What has to stand between convolution and average?",
    )
    trial.ask(
        not torch.allclose(feature(image.flip(1), kernels), first, atol=1e-4),
        "the mirrored image gives the same features. Do the kernels see neighbours?",
    )
