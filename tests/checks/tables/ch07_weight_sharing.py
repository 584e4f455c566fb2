"""Chapter 7: updates, accumulation, who moves whom, the FFN's share, invariance."""

import copy
from functools import partial

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


def accumulate(model, batches, *, clear="first", step=0.0):
    total = sum(len(x) for x, _ in batches)
    if clear == "first":
        model.zero_grad()
    for x, y in batches:
        if clear == "each":
            model.zero_grad()
        (len(x) / total * F.mse_loss(model(x), y)).backward()
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


def in_place(layer, x):
    x[:, 0] += 1
    return influence(layer, x)


def all_disturbed(layer, x):
    moved = ((layer(x + 1) - layer(x)).abs() > 0).any(-1)[0]
    return moved[:, None].expand(-1, len(moved)).clone()


def share(N, D, ratio):
    return ratio * D / (ratio * D + 2 * D + N)


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
        also={"whole numbers": counts_in_whole_numbers, "loops": counts_by_loops},
        wrong={
            "size for number": (lambda n, b, e, a: (b, b), "How often does that go"),
            "twice the size": (lambda n, b, e, a: (2 * b, 2 * b), "How often does that go"),
            "larger batches": (
                lambda n, b, e, a: counts_in_whole_numbers(n, a * b, e, 1),
                "Does it change the batches",
            ),
            "rounded down": (lambda n, b, e, a: (n // b, e * (n // b // a)), "left out"),
            "not rounded": (lambda n, b, e, a: (n / b, e * n / b / a), "whole"),
            "one number": (lambda n, b, e, a: 10, "pair"),
        },
        stubs=(stub, lambda n, b, e, a: (..., ...)),
    ),
    Case(
        check_accumulate,
        also={
            "backward": accumulate,
            "sums, divided by all": accumulate_sums,
            "on a copy": accumulate_on_a_copy,
        },
        wrong={
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
        also={
            "a larger disturbance": partial(influence, size=5.0),
            "derivatives": influence_by_jacobian,
            "einsum": influence_by_einsum,
            "loops": influence_by_loops,
        },
        wrong={
            "all disturbed": (all_disturbed, "one token at a time"),
            "coarse": (lambda layer, x: influence(layer, x, threshold=0.1), "How large must one"),
            "compared with itself": (lambda layer, x: influence(layer, x, size=0.0), "nobody mov"),
            "in place": (in_place, "in place"),
            "numbers": (lambda layer, x: influence(layer, x).float(), "type"),
        },
    ),
    Case(
        check_ffn_share,
        also={
            "halved": share,
            "a tensor": lambda N, D, r: torch.tensor(share(N, D, r), dtype=torch.float32),
        },
        wrong={
            "N times": (lambda N, D, r: share(N * N, D, r), "count it N times"),
            "one case": (lambda N, D, r: 8 / 18, "where is N"),
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
