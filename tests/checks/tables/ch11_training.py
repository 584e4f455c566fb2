"""Chapter 11: training."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from case import Case, stub
from torch.utils.data import DataLoader, TensorDataset

from vitbook.training import parameter_groups
from vitcheck.ch11_training import (
    check_calibration_error,
    check_decayed,
    check_schedule,
    check_smoothed_loss,
    check_training_loop,
)


def schedule(step, total, warmup, cooldown, *, off=1, end=0, low=0.0):
    if step < warmup:
        return (step + off) / warmup
    if step >= total - cooldown:
        return max((total - step - end) / cooldown, low)
    return 1.0


def cosine(step, total, warmup, cooldown):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def decayed(model):
    return [
        name
        for name, p in model.named_parameters()
        if p.requires_grad and p.ndim >= 2 and name.endswith("weight")
    ]


def by_groups(model):
    names = {id(p): name for name, p in model.named_parameters()}
    return {names[id(p)] for p in parameter_groups(model, 0.1)[0]["params"]}


def decayed_by_module(model):
    kinds = (torch.nn.Linear, torch.nn.Conv2d)
    modules = model.named_modules()
    found = {f"{name}.weight": m.weight for name, m in modules if isinstance(m, kinds)}
    return tuple(name for name, weight in found.items() if weight.requires_grad)


def picked(rule):
    return lambda model: [n for n, p in model.named_parameters() if rule(n, p)]


def smoothed(logits, labels, share):
    return F.cross_entropy(logits, labels, label_smoothing=share)


def by_target(logits, labels, share):
    K = logits.shape[-1]
    target = (1 - share) * F.one_hot(labels, K) + share / K
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def error(given, labels, bins):
    confidence, answers = given.max(-1)
    place = (confidence * bins).long().clamp(max=bins - 1)
    total = 0.0
    for i in range(bins):
        inside = place == i
        if inside.any():
            gap = confidence[inside].mean() - (answers[inside] == labels[inside]).float().mean()
            total += gap.abs() * inside.float().mean()
    return total


def fit(
    model,
    optimizer,
    images,
    labels,
    test,
    epochs,
    *,
    zero="before",
    shuffle="both",
    soft=False,
    reduction="mean",
    back="train",
    quiet=True,
    draw="order",
    step=True,
    share=True,
    tests=True,
):
    n = len(images)
    torch.manual_seed(0)
    if shuffle == "once":
        order = torch.randperm(n)
        images, labels = images[order], labels[order]
    accuracy = 0.0
    model.train()
    for _ in range(epochs):
        if back == "train":
            model.train()
        order = torch.arange(n) if shuffle in ("none", "once") else torch.randperm(n)
        if draw == "with replacement":
            order = torch.randint(n, (n,))
        if draw == "half":
            order = order[: n // 2]
        for places in order.split(8):
            y = labels[places if shuffle != "images" else torch.arange(len(places))]
            logits = model(images[places])
            loss = F.cross_entropy(logits.softmax(-1) if soft else logits, y, reduction=reduction)
            if soft == "no log":
                loss = F.nll_loss(logits.softmax(-1), y)
            if zero == "before":
                optimizer.zero_grad()
            loss.backward()
            if zero == "to None":
                optimizer.zero_grad(set_to_none=True)
            if zero == "after":
                optimizer.zero_grad(set_to_none=False)
            if step:
                optimizer.step()
        if not tests:
            return 0.5
        if quiet:
            model.eval()
        with torch.no_grad():
            right = (model(test[0]).argmax(-1) == test[1]).float()
            accuracy = right.mean() if share else right.sum()
    return accuracy.item()


def changed(f, **options):
    return lambda *args: f(*args, **options)


def schedule_as_a_minimum(step, total, warmup, cooldown):
    return min(1.0, (step + 1) / warmup if warmup else 1.0, (total - step) / cooldown)


def schedule_by_torch(step, total, warmup, cooldown):
    up = torch.arange(1, warmup + 1) / max(warmup, 1)
    down = torch.arange(cooldown, 0, -1) / cooldown
    return torch.cat([up, torch.ones(total - warmup - cooldown), down])[step]


def smoothed_by_loops(logits, labels, share):
    total = 0.0
    for row, label in zip(logits.log_softmax(-1), labels, strict=True):
        for k, log in enumerate(row):
            target = share / len(row) + (1 - share if k == label else 0.0)
            total = total - target * log
    return total / len(labels)


def smoothed_by_einsum(logits, labels, share):
    B, K = logits.shape
    target = torch.full((B, K), share / K)
    target[torch.arange(B), labels] += 1 - share
    return -torch.einsum("bk,bk->", target, logits.log_softmax(-1)) / B


def error_by_numpy(given, labels, bins):
    given, labels = given.numpy(), labels.numpy()
    confidence, right = given.max(1), given.argmax(1) == labels
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    total = 0.0
    for i in np.unique(place):
        inside = place == i
        total += abs(confidence[inside].mean() - right[inside].mean()) * inside.mean()
    return total


def error_by_upper_edges(given, labels, bins):
    """A bin holds its upper edge, not its lower one."""
    confidence, answers = given.max(-1)
    place = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    gap = confidence - (answers == labels).float()
    return torch.zeros(bins).index_add(0, place, gap).abs().sum() / len(labels)


def fit_by_loader(model, optimizer, images, labels, test, epochs):
    loader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True)
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            model.zero_grad()
            F.nll_loss(F.log_softmax(model(x), dim=1), y).backward()
            optimizer.step()
    model.eval()
    right = sum((model(x[None]).argmax(-1) == y).sum() for x, y in zip(*test, strict=True))
    return right / len(test[1])


def fit_by_numpy(model, optimizer, images, labels, test, epochs):
    random = np.random.default_rng(0)
    for _ in range(epochs):
        model.train()
        order = random.permutation(len(images))
        for start in range(0, len(images), 8):
            places = order[start : start + 8]
            optimizer.zero_grad(set_to_none=False)
            F.cross_entropy(model(images[places]), labels[places]).backward()
            optimizer.step()
        model.eval()
        answers = model(test[0]).detach().numpy().argmax(1)
    return float((answers == test[1].numpy()).mean())


def chosen_by_the_test(model, optimizer, images, labels, test, epochs):
    """Returns the best accuracy seen, not that of the model that is handed back."""
    last = fit(model, optimizer, images, labels, test, epochs)
    with torch.no_grad():
        kept = model.weight.clone()
        model.weight.copy_(torch.linalg.lstsq(test[0], F.one_hot(test[1], 3).float()).solution)
        best = (model(test[0]).argmax(-1) == test[1]).float().mean().item()
        model.weight.copy_(kept)
    return max(best, last)


def spoils_the_labels(model, optimizer, images, labels, test, epochs):
    accuracy = fit(model, optimizer, images, labels, test, epochs)
    labels.copy_(labels.flip(0).clone() + 1)
    return accuracy


def nothing(*args):
    return None


CASES = [
    Case(
        check_schedule,
        also={"in turn": schedule, "a minimum": schedule_as_a_minimum, "torch": schedule_by_torch},
        stubs=(stub, nothing),
        wrong={
            "no warm-up": (lambda s, n, w, c: 1.0, "Where is the warm-up"),
            "another first step": (changed(schedule, off=2), "not 1 / warmup"),
            "a cosine": (cosine, "the rate should stay"),
            "a bent warm-up": (
                lambda s, n, w, c: ((s + 1) / w) ** 2 * w if s == 0 else schedule(s, n, w, c) ** 2,
                "equal steps up",
            ),
            "a floor": (changed(schedule, low=0.5), "is it a line"),
            "below zero": (changed(schedule, end=2, low=-9.0), "climbs the loss"),
            "division by zero": (
                lambda s, n, w, c: min(1.0, (s + 1) / w, (n - s) / c),
                "ZeroDivisionError",
            ),
        },
    ),
    Case(
        check_decayed,
        right=decayed,
        also={"the package": by_groups, "by module": decayed_by_module},
        stubs=(stub, nothing),
        wrong={
            "all": (picked(lambda n, p: True), "why should a bias"),
            "no biases": (picked(lambda n, p: "bias" not in n), "gain of a norm"),
            "two axes": (picked(lambda n, p: p.ndim >= 2), "position table"),
            "three axes": (
                picked(lambda n, p: p.ndim >= 2 and n != "pos_table"),
                "class token",
            ),
            "frozen": (picked(lambda n, p: p.ndim >= 2 and n.endswith("weight")), "frozen"),
            "no kernel": (
                picked(lambda n, p: p.requires_grad and p.ndim == 2 and n.endswith("weight")),
                "four axes",
            ),
            "no head": (
                lambda model: [n for n in decayed(model) if "head" not in n],
                "linear layers multiply",
            ),
            "modules": (lambda model: ["head", "qkv"], "no parameter called"),
            "parameters": (lambda m: list(m.parameters()), "a list of names"),
            "nobody": (lambda model: [], "linear layers multiply"),
        },
    ),
    Case(
        check_smoothed_loss,
        also={
            "PyTorch's": smoothed,
            "target": by_target,
            "loops": smoothed_by_loops,
            "einsum": smoothed_by_einsum,
        },
        stubs=(stub, nothing),
        wrong={
            "not the loss": (lambda z, y, e: z.mean(), "it is the usual cross-entropy"),
            "the share turned round": (
                lambda z, y, e: smoothed(z, y, 1 - e if e else e),
                "target of one image",
            ),
        },
    ),
    Case(
        check_calibration_error,
        also={"loops": error, "numpy": error_by_numpy, "upper edges": error_by_upper_edges},
        stubs=(stub, nothing),
        wrong={
            "always zero": (lambda p, y, b: 0.0, "never right"),
            "always one": (lambda p, y, b: 1.0, "sure and always right"),
        },
    ),
    Case(
        check_training_loop,
        right=fit,
        also={"a loader": fit_by_loader, "numpy": fit_by_numpy},
        stubs=(stub, nothing),
        wrong={
            "no zero_grad": (changed(fit, zero="never"), "adds to .grad"),
            "cleared too late": (changed(fit, zero="after"), "cleared after"),
            "set to None too late": (changed(fit, zero="to None"), "cleared after"),
            "softmax": (changed(fit, soft=True), "softmax before the loss"),
            "no log": (changed(fit, soft="no log"), "Where is the log"),
            "softmax, no zero_grad": (changed(fit, soft=True, zero="never"), "adds to .grad"),
            "labels": (changed(fit, shuffle="images"), "*their* labels"),
            "a sum of losses": (changed(fit, reduction="sum"), "not averaged"),
            "no order": (changed(fit, shuffle="none"), "same order"),
            "one order": (changed(fit, shuffle="once"), "same order"),
            "with replacement": (changed(fit, draw="with replacement"), "come twice"),
            "half an epoch": (changed(fit, draw="half"), "went through the model in"),
            "stays in eval": (changed(fit, back="never"), "Who sets it back"),
            "tested in training": (changed(fit, quiet=False), "in training mode"),
            "no step": (changed(fit, step=False), "optimizer.step()"),
            "a count": (changed(fit, share=False), "A share"),
            "no test": (changed(fit, tests=False), "never went through"),
            "chosen by the test": (chosen_by_the_test, "best epoch's"),
            "labels changed": (spoils_the_labels, "in place"),
        },
    ),
]
