"""Each check of chapter 11 passes the right answer and names the planted mistakes."""

import math

import pytest
import torch
import torch.nn.functional as F

from vitbook.training import parameter_groups
from vitcheck import CheckFailed
from vitcheck.ch11_training import (
    check_calibration_error,
    check_decayed,
    check_fit,
    check_schedule,
    check_smoothed_loss,
)

CHECKS = [
    check_schedule,
    check_decayed,
    check_smoothed_loss,
    check_calibration_error,
    check_fit,
]


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


def picked(rule):
    return lambda model: [n for n, p in model.named_parameters() if rule(n, p)]


def smoothed(logits, labels, share, *, reduction="mean"):
    return F.cross_entropy(logits, labels, label_smoothing=share, reduction=reduction)


def by_target(logits, labels, share, *, keep=None, each=None):
    K = logits.shape[-1]
    keep = (lambda e: 1 - e) if keep is None else keep
    each = (lambda e: e / K) if each is None else each
    target = keep(share) * F.one_hot(labels, K) + each(share)
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def over_others(logits, labels, share):
    K = logits.shape[-1]
    hot = F.one_hot(labels, K)
    target = (1 - share) * hot + share / (K - 1) * (1 - hot)
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def error(given, labels, bins, *, signed=False, weighted=True, empty=False, whose="answer"):
    confidence, answers = given.max(-1)
    if whose == "label":
        confidence = given.gather(1, labels[:, None])[:, 0]
    place = (confidence * bins).long().clamp(max=bins - 1)
    total, count = 0.0, 0
    for i in range(bins):
        inside = place == i
        if not inside.any():
            count += empty
            continue
        gap = confidence[inside].mean() - (answers[inside] == labels[inside]).float().mean()
        total += (gap if signed else gap.abs()) * (inside.float().mean() if weighted else 1)
        count += 1
    return total if weighted else total / count


def overflows(given, labels, bins):
    confidence, answers = given.max(-1)
    gaps = torch.zeros(bins)
    for i in range(bins):
        inside = (confidence >= i / bins) & (confidence < (i + 1) / bins)
        if inside.any():
            gap = confidence[inside].mean() - (answers == labels)[inside].float().mean()
            gaps[i] = gap.abs() * inside.sum() / len(labels)
    return gaps.sum()


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


RIGHT = [
    ("schedule", check_schedule, schedule),
    (
        "schedule as a minimum",
        check_schedule,
        lambda s, n, w, c: min(1.0, (s + 1) / w if w else 1.0, (n - s) / c),
    ),
    ("decayed", check_decayed, decayed),
    ("decayed, from the package", check_decayed, by_groups),
    ("smoothed", check_smoothed_loss, smoothed),
    ("smoothed by its target", check_smoothed_loss, by_target),
    ("error", check_calibration_error, error),
    ("fit", check_fit, fit),
]

MISTAKES = [
    ("zero first step", check_schedule, changed(schedule, off=0), "moves nothing"),
    ("no warm-up", check_schedule, lambda s, n, w, c: 1.0, "Where is the warm-up"),
    ("a cosine", check_schedule, cosine, "the rate should stay"),
    ("ends at zero", check_schedule, changed(schedule, end=1), "the last step moves nothing"),
    ("never down", check_schedule, lambda s, n, w, c: min(1.0, (s + 1) / max(w, 1)), "never comes"),
    ("a floor", check_schedule, changed(schedule, low=0.5), "is it a line"),
    ("all", check_decayed, picked(lambda n, p: True), "why should a bias"),
    ("no biases", check_decayed, picked(lambda n, p: "bias" not in n), "gain of a norm"),
    ("two axes", check_decayed, picked(lambda n, p: p.ndim >= 2), "position table"),
    (
        "three axes",
        check_decayed,
        picked(lambda n, p: p.ndim >= 2 and n != "pos_table"),
        "class token",
    ),
    (
        "frozen",
        check_decayed,
        picked(lambda n, p: p.ndim >= 2 and n.endswith("weight")),
        "frozen",
    ),
    (
        "no kernel",
        check_decayed,
        picked(lambda n, p: p.requires_grad and p.ndim == 2 and n.endswith("weight")),
        "four axes",
    ),
    ("modules", check_decayed, lambda model: ["head", "qkv"], "no parameter called"),
    ("parameters", check_decayed, lambda m: list(m.parameters()), "a list of names"),
    ("a sum", check_smoothed_loss, changed(smoothed, reduction="sum"), "a sum"),
    ("no minus", check_smoothed_loss, lambda z, y, e: -smoothed(z, y, e), "the minus"),
    (
        "two softmaxes",
        check_smoothed_loss,
        lambda z, y, e: smoothed(z.softmax(-1), y, e),
        "another",
    ),
    ("hard", check_smoothed_loss, lambda z, y, e: smoothed(z, y, 0.0), "changes nothing"),
    ("wrong classes", check_smoothed_loss, over_others, "the wrong classes only"),
    ("a share each", check_smoothed_loss, changed(by_target, each=lambda e: e), "sum to one"),
    ("less", check_smoothed_loss, changed(by_target, each=lambda e: 0 * e), "taken away"),
    ("more", check_smoothed_loss, changed(by_target, keep=lambda e: 1), "more than one"),
    ("signed", check_calibration_error, changed(error, signed=True), "modesty pays"),
    ("unweighted", check_calibration_error, changed(error, weighted=False), "as much as"),
    (
        "empty bins",
        check_calibration_error,
        changed(error, weighted=False, empty=True),
        "without answers",
    ),
    ("of the label", check_calibration_error, changed(error, whose="label"), "to the answer"),
    ("overflow", check_calibration_error, overflows, "which bin is 100 %"),
    (
        "always ten bins",
        check_calibration_error,
        lambda p, y, b: error(p, y, 10),
        "How many did you make",
    ),
    ("no zero_grad", check_fit, changed(fit, zero="never"), "adds to .grad"),
    ("cleared too late", check_fit, changed(fit, zero="after"), "cleared after"),
    ("softmax", check_fit, changed(fit, soft=True), "softmax before the loss"),
    ("no log", check_fit, changed(fit, soft="no log"), "Where is the log"),
    ("softmax, no zero_grad", check_fit, changed(fit, soft=True, zero="never"), "adds to .grad"),
    ("labels", check_fit, changed(fit, shuffle="images"), "*their* labels"),
    ("a sum of losses", check_fit, changed(fit, reduction="sum"), "not averaged"),
    ("no order", check_fit, changed(fit, shuffle="none"), "same order"),
    ("one order", check_fit, changed(fit, shuffle="once"), "same order"),
    ("with replacement", check_fit, changed(fit, draw="with replacement"), "come twice"),
    ("half an epoch", check_fit, changed(fit, draw="half"), "went through the model in"),
    ("stays in eval", check_fit, changed(fit, back="never"), "Who sets it back"),
    ("tested in training", check_fit, changed(fit, quiet=False), "in training mode"),
    ("no step", check_fit, changed(fit, step=False), "optimizer.step()"),
    ("a count", check_fit, changed(fit, share=False), "A share"),
    ("no test", check_fit, changed(fit, tests=False), "never went through"),
]


@pytest.mark.parametrize(
    ("check", "answer"), [row[1:] for row in RIGHT], ids=[row[0] for row in RIGHT]
)
def test_the_right_answer_passes(check, answer, capsys):
    for _ in range(3):
        check(answer)
        assert capsys.readouterr().out.startswith("ok:")


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_is_not_answered_yet(check, capsys):
    for stub in (lambda *args: ..., lambda *args: None):
        check(stub)
        assert capsys.readouterr().out.startswith("not answered yet")


@pytest.mark.parametrize(
    ("check", "answer", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_named(check, answer, words):
    for _ in range(3):
        with pytest.raises(CheckFailed) as failure:
            check(answer)
        assert words in str(failure.value)
