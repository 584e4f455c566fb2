"""Checks: accumulation, the FFN's share, a report."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


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


_STATEMENTS = {
    "at rate 0.1, a step after every batch reaches more": (
        YES,
        "compare the two rows with rate 0.1. Are they further apart than their intervals are wide?",
    ),
    "each accumulating row ends over three points below row 1": (
        NO,
        "which rows accumulate? Compare each of them with row 1",
    ),
    "row 2 has seen fewer images than row 1": (
        NO,
        "fewer steps are not fewer images. How many does an epoch have?",
    ),
    "at rate 0.8, a step after every batch of 64 does as well": (
        OPEN,
        "which row has batches of 64, a step after each, and rate 0.8?",
    ),
    "rows 3 and 4 have the same gradients, up to rounding": (
        OPEN,
        "which layers does the model have? Equal accuracy does not tell",
    ),
}


check_report = reading("what four trainings allow one to say about accumulating", _STATEMENTS)
