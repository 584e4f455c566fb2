"""Each check of chapter 7 passes the right answer and names the planted mistakes."""

import math

import pytest
import torch
import torch.nn.functional as F

from vitcheck import CheckFailed
from vitcheck.ch07_weight_sharing import (
    check_accumulate,
    check_counts,
    check_ffn_share,
    check_influence,
    check_invariant_feature,
)

CHECKS = [
    check_counts,
    check_accumulate,
    check_influence,
    check_ffn_share,
    check_invariant_feature,
]


def counts(samples, batch_size, epochs, accumulate):
    batches = math.ceil(samples / batch_size)
    return batches, epochs * math.ceil(batches / accumulate)


def whole_counts(samples, batch_size, epochs, accumulate):
    batches = (samples + batch_size - 1) // batch_size
    return batches, epochs * ((batches + accumulate - 1) // accumulate)


def accumulate(model, batches, *, weight="samples", clear="first", step=0.0):
    total = sum(len(x) for x, _ in batches)
    if clear == "first":
        model.zero_grad()
    for x, y in batches:
        if clear == "each":
            model.zero_grad()
        factor = {"samples": len(x) / total, "batches": 1 / len(batches), "none": 1, "sum": len(x)}
        (factor[weight] * F.mse_loss(model(x), y)).backward()
    if step:
        torch.optim.SGD(model.parameters(), lr=step).step()
    return [p.grad.clone() for p in model.parameters()]


def at_once(model, batches):
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    return list(torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters())))


def only_first(model, batches):
    return accumulate(model, batches[:1])


def by_hand(model, batches):
    total, sums = sum(len(x) for x, _ in batches), None
    for x, y in batches:
        loss = F.mse_loss(model(x), y, reduction="sum") / total
        grads = torch.autograd.grad(loss, list(model.parameters()))
        sums = grads if sums is None else [a + b for a, b in zip(sums, grads, strict=True)]
    return sums


def influence(layer, x, *, size=1.0, threshold=0.0):
    with torch.no_grad():
        before, columns = layer(x), []
        for j in range(x.shape[1]):
            disturbed = x.clone()
            disturbed[:, j] += size
            columns.append(((layer(disturbed) - before).abs() > threshold).any(-1)[0])
    return torch.stack(columns, dim=1)


def by_jacobian(layer, x):
    J = torch.autograd.functional.jacobian(layer, x)[0, :, :, 0]  # (N, D, N, D)
    return J.abs().amax((1, 3)) > 0


def in_place(layer, x):
    x[:, 0] += 1
    return influence(layer, x)


def all_disturbed(layer, x):
    moved = ((layer(x + 1) - layer(x)).abs() > 0).any(-1)[0]
    return moved[:, None].expand(-1, len(moved)).clone()


def share(N, D, ratio, *, products=2, matrices=4, layers=2):
    ffn, attention = layers * ratio * D, matrices * D + products * N
    return ffn / (ffn + attention)


def feature(image, kernels, *, mode="circular", bend=torch.relu, stride=1):
    padded = image[None, None]
    if mode is not None:
        padded = F.pad(padded, (1, 1, 1, 1), mode=mode)
    maps = bend(F.conv2d(padded, kernels[:, None], stride=stride))
    return maps.mean((-2, -1))[0]


RIGHT = [
    ("counts", check_counts, counts),
    ("counts in whole numbers", check_counts, whole_counts),
    ("accumulated mean losses", check_accumulate, accumulate),
    ("accumulated sums", check_accumulate, by_hand),
    ("influence by disturbing", check_influence, influence),
    ("influence by derivatives", check_influence, by_jacobian),
    ("share", check_ffn_share, share),
    ("share of the whole", check_ffn_share, lambda N, D, r: r * D / (r * D + 2 * D + N)),
    ("circular and mean", check_invariant_feature, feature),
    (
        "circular and largest",
        check_invariant_feature,
        lambda image, kernels: F.conv2d(
            F.pad(image[None, None], (1, 1, 1, 1), mode="circular"), kernels[:, None]
        ).amax((-2, -1))[0],
    ),
]


@pytest.mark.parametrize(("check", "answer"), [r[1:] for r in RIGHT], ids=[r[0] for r in RIGHT])
def test_a_right_answer_passes_with_one_line(check, answer, capsys):
    for _ in range(5):  # other inputs each time
        check(answer)
        printed = capsys.readouterr().out
        assert printed.startswith("ok:")
        assert printed.count("\n") == 1


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_unanswered_stub_passes_on(check, capsys):
    check(lambda *inputs: ...)
    assert capsys.readouterr().out.startswith("not answered yet")


def changed_counts(change):
    def answer(samples, batch_size, epochs, accumulate):
        return change(samples, batch_size, epochs, accumulate, math.ceil(samples / batch_size))

    return answer


def over_the_edge(n, b, e, a, batches):
    return batches, math.ceil(e * batches / a)


MISTAKES = [
    ("eight", check_counts, lambda n, b, e, a: (2 * b, 2 * b), "How often does that go"),
    ("size for number", check_counts, lambda n, b, e, a: (b, b), "How often does that go"),
    ("one update", check_counts, changed_counts(lambda n, b, e, a, k: (k, 1)), "nobody asked"),
    (
        "batches of all epochs",
        check_counts,
        changed_counts(lambda n, b, e, a, k: (e * k, e * math.ceil(k / a))),
        "one epoch are asked",
    ),
    (
        "epochs left out",
        check_counts,
        changed_counts(lambda n, b, e, a, k: (k, math.ceil(k / a))),
        "later epochs",
    ),
    (
        "accumulate ignored",
        check_counts,
        changed_counts(lambda n, b, e, a, k: (k, e * k)),
        "where does .accumulate. enter",
    ),
    (
        "accumulate multiplied",
        check_counts,
        changed_counts(lambda n, b, e, a, k: (k, e * k * a)),
        "multiply or divide",
    ),
    (
        "larger batches",
        check_counts,
        lambda n, b, e, a: (math.ceil(n / b / a), e * math.ceil(n / b / a)),
        "Does it change the batches",
    ),
    ("rounded down", check_counts, lambda n, b, e, a: (n // b, e * (n // b // a)), "left out"),
    ("not rounded", check_counts, lambda n, b, e, a: (n / b, e * n / b / a), "whole"),
    (
        "left-over group",
        check_counts,
        changed_counts(lambda n, b, e, a, k: (k, e * (k // a))),
        "never used",
    ),
    ("over the end", check_counts, changed_counts(over_the_edge), "over the end of the epoch"),
    ("one number", check_counts, lambda n, b, e, a: 10, "pair"),
    (
        "not divided",
        check_accumulate,
        lambda m, b: accumulate(m, b, weight="none"),
        "added as they are",
    ),
    (
        "by the number of batches",
        check_accumulate,
        lambda m, b: accumulate(m, b, weight="batches"),
        "equal size only",
    ),
    ("sum", check_accumulate, lambda m, b: accumulate(m, b, weight="sum"), "of the sum"),
    (
        "cleared each time",
        check_accumulate,
        lambda m, b: accumulate(m, b, clear="each"),
        "Who cleared",
    ),
    (
        "never cleared",
        check_accumulate,
        lambda m, b: accumulate(m, b, clear="never"),
        "first call is still inside",
    ),
    ("stepped", check_accumulate, lambda m, b: accumulate(m, b, step=0.1), "who made a step"),
    ("all at once", check_accumulate, at_once, "fits into memory"),
    ("one batch", check_accumulate, only_first, "needed once"),
    ("a number", check_accumulate, lambda m, b: 0.5, "one for each parameter"),
    (
        "transposed",
        check_influence,
        lambda layer, x: influence(layer, x).T,
        "Which axis is the output",
    ),
    ("all disturbed", check_influence, all_disturbed, "one token at a time"),
    ("diagonal", check_influence, lambda layer, x: torch.eye(x.shape[1]).bool(), "neighbour"),
    (
        "everything before",
        check_influence,
        lambda layer, x: (
            (influence(layer, x).flip(1).cumsum(1).flip(1) > 0)
            if (influence(layer, x).sum() > x.shape[1])
            else influence(layer, x)
        ),
        "all tokens before it",
    ),
    (
        "coarse",
        check_influence,
        lambda layer, x: influence(layer, x, threshold=0.1),
        "How large must one be",
    ),
    ("unmoved", check_influence, lambda layer, x: ~influence(layer, x), "True should mean"),
    (
        "compared with itself",
        check_influence,
        lambda layer, x: influence(layer, x, size=0.0),
        "nobody moves",
    ),
    ("in place", check_influence, in_place, "in place"),
    ("numbers", check_influence, lambda layer, x: influence(layer, x).float(), "type"),
    ("parameters", check_ffn_share, lambda N, D, r: share(0, D, r), "share of the parameters"),
    (
        "one product",
        check_ffn_share,
        lambda N, D, r: share(N, D, r, products=1),
        "how many products",
    ),
    ("no W_O", check_ffn_share, lambda N, D, r: share(N, D, r, matrices=3), "fourth matrix"),
    ("only up", check_ffn_share, lambda N, D, r: share(N, D, r, layers=1), "up and comes down"),
    ("attention", check_ffn_share, lambda N, D, r: 1 - share(N, D, r), "of the attention"),
    ("ratio", check_ffn_share, lambda N, D, r: 2 * r * D / (4 * D + 2 * N), "a ratio"),
    ("N times", check_ffn_share, lambda N, D, r: share(N * N, D, r), "count it N times"),
    ("one case", check_ffn_share, lambda N, D, r: 8 / 18, "where is N"),
    ("fixed ratio", check_ffn_share, lambda N, D, r: share(N, D, 4), "Does it enter"),
    ("per cent", check_ffn_share, lambda N, D, r: 100 * share(N, D, r), "between 0 and 1"),
    (
        "zeros around",
        check_invariant_feature,
        lambda i, k: feature(i, k, mode="constant"),
        "beyond the edge",
    ),
    ("no padding", check_invariant_feature, lambda i, k: feature(i, k, mode=None), "edge pixels"),
    ("strided", check_invariant_feature, lambda i, k: feature(i, k, stride=2), "a shift changes"),
    (
        "linear",
        check_invariant_feature,
        lambda i, k: feature(i, k, bend=lambda maps: maps),
        "stand between convolution and average",
    ),
    (
        "kernels unused",
        check_invariant_feature,
        lambda i, k: torch.stack([i.mean(), i.std(), i.max(), i.min()]),
        "other kernels",
    ),
    (
        "kernels mixed",
        check_invariant_feature,
        lambda i, k: feature(i, k).cumsum(0),
        "belongs to one kernel",
    ),
    (
        "one pixel wide",
        check_invariant_feature,
        lambda i, k: (i[None] * k[:, 1, 1, None, None]).relu().mean((1, 2)),
        "same pixels in any order",
    ),
    (
        "map, not feature",
        check_invariant_feature,
        lambda i, k: F.conv2d(i[None, None], k[:, None])[0],
        "shape",
    ),
]


@pytest.mark.parametrize(
    ("check", "answer", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_planted_mistake_is_named(check, answer, words):
    for _ in range(5):  # other inputs each time, the same mistake
        with pytest.raises(CheckFailed, match=words):
            check(answer)


def test_every_check_has_at_least_three_planted_mistakes():
    for check in CHECKS:
        assert sum(mistake[1] is check for mistake in MISTAKES) >= 3
