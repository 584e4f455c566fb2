"""Chapter 7: updates, accumulation, who moves whom, the FFN's share, invariance."""

import copy
import math

import torch
import torch.nn.functional as F
from case import Case, stub

from vitcheck.ch07_weight_sharing import (
    check_accumulate,
    check_counts,
    check_ffn_share,
    check_influence,
    check_invariant_feature,
)


def counts(samples, batch_size, epochs, accumulate):
    batches = math.ceil(samples / batch_size)
    return batches, epochs * math.ceil(batches / accumulate)


def counts_in_whole_numbers(samples, batch_size, epochs, accumulate):
    batches = (samples + batch_size - 1) // batch_size
    return batches, epochs * ((batches + accumulate - 1) // accumulate)


def counts_by_loops(samples, batch_size, epochs, accumulate):
    updates = 0
    for _ in range(epochs):
        batches = len(range(0, samples, batch_size))
        for i in range(batches):
            updates += (i + 1) % accumulate == 0 or i + 1 == batches
    return [torch.tensor(float(batches)), torch.tensor(float(updates))]


def changed_counts(change):
    def answer(samples, batch_size, epochs, accumulate):
        return change(samples, batch_size, epochs, accumulate, math.ceil(samples / batch_size))

    return answer


def over_the_edge(n, b, e, a, batches):
    return batches, math.ceil(e * batches / a)


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


def accumulate_sums(model, batches):
    total, sums = sum(len(x) for x, _ in batches), None
    for x, y in batches:
        loss = F.mse_loss(model(x), y, reduction="sum") / total
        grads = torch.autograd.grad(loss, list(model.parameters()))
        sums = grads if sums is None else [a + b for a, b in zip(sums, grads, strict=True)]
    return sums


def accumulate_on_a_copy(model, batches):
    return accumulate(copy.deepcopy(model), batches)


def at_once(model, batches):
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    return list(torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters())))


def half_at_the_second_call(model, batches):
    """Its gradient fades: a second call on the same weights gives something else."""
    used = getattr(model, "used", 1)
    model.used = used + 1
    return [g / used for g in accumulate(model, batches)]


def influence(layer, x, *, size=1.0, threshold=0.0):
    with torch.no_grad():
        before, columns = layer(x), []
        for j in range(x.shape[1]):
            disturbed = x.clone()
            disturbed[:, j] += size
            columns.append(((layer(disturbed) - before).abs() > threshold).any(-1)[0])
    return torch.stack(columns, dim=1)


def influence_by_jacobian(layer, x):
    J = torch.autograd.functional.jacobian(layer, x)[0, :, :, 0]  # (N, D, N, D)
    return J.abs().amax((1, 3)) > 0


def influence_by_einsum(layer, x):
    J = torch.autograd.functional.jacobian(layer, x)[0, :, :, 0]
    return torch.einsum("idje->ij", J.square()).bool()


def influence_by_loops(layer, x):
    N = x.shape[1]
    table = torch.zeros(N, N, dtype=torch.bool)
    for i in range(N):
        for j in range(N):
            disturbed = x.clone()
            disturbed[0, j] = torch.randn(x.shape[2])
            table[i, j] = not torch.equal(layer(disturbed)[0, i], layer(x)[0, i])
    return table


def all_before(layer, x):
    table = influence(layer, x)
    return table.flip(1).cumsum(1).flip(1) > 0 if table.sum() > len(table) else table


def in_place(layer, x):
    x[:, 0] += 1
    return influence(layer, x)


def all_disturbed(layer, x):
    moved = ((layer(x + 1) - layer(x)).abs() > 0).any(-1)[0]
    return moved[:, None].expand(-1, len(moved)).clone()


def share(N, D, ratio, *, products=2, matrices=4, layers=2):
    ffn, attention = layers * ratio * D, matrices * D + products * N
    return ffn / (ffn + attention)


def feature(image, kernels, *, mode="circular", bend=torch.relu, stride=1, read=torch.mean):
    padded = image[None, None]
    if mode is not None:
        padded = F.pad(padded, (1, 1, 1, 1), mode=mode)
    maps = bend(F.conv2d(padded, kernels[:, None], stride=stride))
    return read(maps, dim=(-2, -1))[0]


def feature_by_rolling(image, kernels):
    maps = torch.zeros(len(kernels), *image.shape)
    for i in range(3):
        for j in range(3):
            maps += kernels[:, i, j, None, None] * image.roll((1 - i, 1 - j), (0, 1))
    return maps.relu().mean((1, 2))


def feature_by_einsum(image, kernels):
    rolled = torch.stack(
        [image.roll((1 - i, 1 - j), (0, 1)) for i in range(3) for j in range(3)]
    ).double()
    maps = torch.einsum("kp,phw->khw", kernels.double().flatten(1), rolled)
    return torch.einsum("khw->k", maps.square())  # a sum of squares, and large


def feature_by_fourier(image, kernels):
    spectrum = torch.fft.fft2(image.double()) * torch.fft.fft2(kernels.double(), image.shape)
    return torch.fft.ifft2(spectrum).real.relu().mean((-2, -1))


CASES = [
    Case(
        check_counts,
        right=counts,
        also={"whole numbers": counts_in_whole_numbers, "loops": counts_by_loops},
        wrong={
            "eight": (lambda n, b, e, a: (2 * b, 2 * b), "How often does that go"),
            "size for number": (lambda n, b, e, a: (b, b), "How often does that go"),
            "one update": (changed_counts(lambda n, b, e, a, k: (k, 1)), "nobody asked"),
            "batches of all epochs": (
                changed_counts(lambda n, b, e, a, k: (e * k, e * math.ceil(k / a))),
                "one epoch are asked",
            ),
            "epochs left out": (
                changed_counts(lambda n, b, e, a, k: (k, math.ceil(k / a))),
                "later epochs",
            ),
            "accumulate ignored": (
                changed_counts(lambda n, b, e, a, k: (k, e * k)),
                "where does `accumulate` enter",
            ),
            "accumulate multiplied": (
                changed_counts(lambda n, b, e, a, k: (k, e * k * a)),
                "multiply or divide",
            ),
            "larger batches": (
                lambda n, b, e, a: (math.ceil(n / b / a), e * math.ceil(n / b / a)),
                "Does it change the batches",
            ),
            "rounded down": (lambda n, b, e, a: (n // b, e * (n // b // a)), "left out"),
            "not rounded": (lambda n, b, e, a: (n / b, e * n / b / a), "whole"),
            "left-over group": (
                changed_counts(lambda n, b, e, a, k: (k, e * (k // a))),
                "never used",
            ),
            "over the end": (changed_counts(over_the_edge), "over the end of the epoch"),
            "half an update": (
                changed_counts(lambda n, b, e, a, k: (k, e * k / a)),
                "over the end of the epoch",
            ),
            "one number": (lambda n, b, e, a: 10, "pair"),
        },
        stubs=(stub, lambda n, b, e, a: (..., ...)),
    ),
    Case(
        check_accumulate,
        right=accumulate,
        also={"sums, divided by all": accumulate_sums, "on a copy": accumulate_on_a_copy},
        wrong={
            "not divided": (lambda m, b: accumulate(m, b, weight="none"), "added as they are"),
            "by the number of batches": (
                lambda m, b: accumulate(m, b, weight="batches"),
                "equal size only",
            ),
            "sum": (lambda m, b: accumulate(m, b, weight="sum"), "of the sum"),
            "cleared each time": (lambda m, b: accumulate(m, b, clear="each"), "Who cleared"),
            "never cleared": (
                lambda m, b: accumulate(m, b, clear="never"),
                "first call is still inside",
            ),
            "fades": (half_at_the_second_call, "same weights, same batches"),
            "stepped": (lambda m, b: accumulate(m, b, step=0.1), "who made a step"),
            "all at once": (at_once, "fits into memory"),
            "one batch": (lambda m, b: accumulate(m, b[:1]), "needed once"),
            "a number": (lambda m, b: 0.5, "one for each parameter"),
        },
    ),
    Case(
        check_influence,
        right=influence,
        also={
            "derivatives": influence_by_jacobian,
            "einsum": influence_by_einsum,
            "loops": influence_by_loops,
        },
        wrong={
            "transposed": (lambda layer, x: influence(layer, x).T, "Which axis is the output"),
            "all disturbed": (all_disturbed, "one token at a time"),
            "diagonal": (lambda layer, x: torch.eye(x.shape[1]).bool(), "neighbour"),
            "everything before": (all_before, "all tokens before it"),
            "coarse": (lambda layer, x: influence(layer, x, threshold=0.1), "How large must one"),
            "unmoved": (lambda layer, x: ~influence(layer, x), "True should mean"),
            "compared with itself": (lambda layer, x: influence(layer, x, size=0.0), "nobody mov"),
            "in place": (in_place, "in place"),
            "numbers": (lambda layer, x: influence(layer, x).float(), "type"),
        },
    ),
    Case(
        check_ffn_share,
        right=share,
        also={
            "of the whole": lambda N, D, r: r * D / (r * D + 2 * D + N),
            "a tensor": lambda N, D, r: torch.tensor(share(N, D, r), dtype=torch.float32),
        },
        wrong={
            "parameters": (lambda N, D, r: share(0, D, r), "share of the parameters"),
            "one product": (lambda N, D, r: share(N, D, r, products=1), "how many products"),
            "no W_O": (lambda N, D, r: share(N, D, r, matrices=3), "fourth matrix"),
            "only up": (lambda N, D, r: share(N, D, r, layers=1), "up and comes down"),
            "attention": (lambda N, D, r: 1 - share(N, D, r), "of the attention"),
            "ratio": (lambda N, D, r: 2 * r * D / (4 * D + 2 * N), "a ratio"),
            "N times": (lambda N, D, r: share(N * N, D, r), "count it N times"),
            "one case": (lambda N, D, r: 8 / 18, "where is N"),
            "fixed ratio": (lambda N, D, r: share(N, D, 4), "Does it enter"),
            "per cent": (lambda N, D, r: 100 * share(N, D, r), "between 0 and 1"),
        },
    ),
    Case(
        check_invariant_feature,
        right=feature,
        also={
            "largest": lambda i, k: feature(i, k, read=torch.amax),
            "large sums": lambda i, k: feature(30 * i, 30 * k, read=torch.sum),
            "loops": feature_by_rolling,
            "einsum": feature_by_einsum,
            "Fourier": feature_by_fourier,
        },
        wrong={
            "zeros around": (lambda i, k: feature(i, k, mode="constant"), "beyond the edge"),
            "no padding": (lambda i, k: feature(i, k, mode=None), "edge pixels"),
            "strided": (lambda i, k: feature(i, k, stride=2), "a shift changes"),
            "linear": (
                lambda i, k: feature(i, k, bend=lambda maps: maps),
                "stand between convolution and average",
            ),
            "one pixel times the kernel's sum": (
                lambda i, k: (i[None] * k.sum((1, 2))[:, None, None]).relu().mean((1, 2)),
                "more than one pixel at a time",
            ),
            "one pixel wide": (
                lambda i, k: (i[None] * k[:, 1, 1, None, None]).relu().mean((1, 2)),
                "same pixels in any order",
            ),
            "a sum of kernel and pixels": (
                lambda i, k: k.sum((1, 2)) + i.square().mean(),
                "more than one pixel at a time",
            ),
            "kernels unused": (
                lambda i, k: torch.stack([i.mean(), i.std(), i.max(), i.min()]),
                "other kernels",
            ),
            "kernels mixed": (lambda i, k: feature(i, k).cumsum(0), "belongs to one kernel"),
            "map, not feature": (
                lambda i, k: F.conv2d(i[None, None], k[:, None])[0],
                "shape",
            ),
        },
    ),
]
