"""Checks of chapter 11: schedule, what decays, smoothed labels, calibration, a loop to mend."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.trial import Trial, staged


def _schedule(step, total, warmup, cooldown, *, off=1, end=0):
    if step < warmup:
        return (step + off) / warmup
    if step >= total - cooldown:
        return (total - step - end) / cooldown
    return 1.0


@staged(
    "my_schedule",
    ok="up, along, and down to almost nothing, at every step",
    right=_schedule,
    mistakes={
        "the first step moves nothing: a whole batch for no update": partial(_schedule, off=0),
        "the first step has the full rate already. Where is the warm-up?": (
            lambda step, total, warmup, cooldown: _schedule(step, total, 0, cooldown)
        ),
        "it never comes down: where is the cooldown?": lambda step, total, warmup, cooldown: (
            _schedule(step, total, warmup, 0)
        ),
        "the last step moves nothing; let it be the last but one above zero": [
            partial(_schedule, end=1),
            lambda step, total, warmup, cooldown: (
                _schedule(step, total, warmup, 0)
                if step < total - cooldown
                else (total - 1 - step) / (cooldown - 1)
            ),
        ],
    },
)
def check_schedule(trial: Trial, schedule):
    """Exercise "Up, along, down": schedule(step, total, warmup, cooldown) -> share of the peak."""
    warmup, cooldown = trial.integer(5, 9), trial.integer(12, 18)
    total = warmup + cooldown + trial.integer(20, 30)

    def shares(start, stop):
        steps = range(start, stop)
        return [
            trial.number(schedule(step, total, warmup, cooldown), name=f"step {step}")
            for step in steps
        ]

    def compare(start, shares, otherwise):
        for step, share in enumerate(shares, start):
            trial.compare(share, step, total, warmup, cooldown, otherwise=otherwise)

    trial.stage("the first step")
    first = shares(0, 1)
    compare(0, first, f"step 0 has {first[0]:.3f} of the peak, not 1 / warmup")

    trial.stage("the warm-up")
    up = shares(0, warmup)
    trial.close(up[-1], 1.0, "its last step should reach the peak")
    compare(0, up, "equal steps up: is it a line?")

    trial.stage("the plateau")
    along = shares(warmup, total - cooldown)
    compare(warmup, along, "between the two ramps the rate should stay")

    trial.stage("the way down")
    down = shares(total - cooldown, total)
    otherwise = "equal steps down, from 1 to 1 / cooldown: is it a line?"
    if min(down) < -1e-5:
        otherwise = "a negative learning rate climbs the loss"
    elif max(down) > 1 + 1e-5:
        otherwise = "it rises above the peak on its way down"
    compare(total - cooldown, down, otherwise)

    trial.stage("no warm-up")
    trial.close(
        schedule(0, total, 0, cooldown),
        1.0,
        "without a warm-up the first step has the full rate",
        name="step 0 of a run without warm-up",
    )


class _Small(nn.Module):
    """Parts of a ViT, and a table that ends in "weight"."""

    def __init__(self):
        super().__init__()
        self.patch_embed = nn.Conv2d(1, 6, 2, stride=2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 6))
        self.pos_table = nn.Parameter(torch.randn(5, 6))
        self.norm = nn.LayerNorm(6)
        self.qkv = nn.Linear(6, 18)
        self.frozen = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3, bias=False)
        self.frozen.requires_grad_(False)


@staged("my_decayed", ok="matrices and kernels decay; biases, norms, positions, class token do not")
def check_decayed(trial: Trial, decayed):
    """Exercise "What decays?": decayed(model) -> the names of the parameters that decay."""
    model = _Small()
    trial.stage("names")
    got = decayed(model)
    if not isinstance(got, list | tuple | set) or not all(isinstance(n, str) for n in got):
        trial.fail("a list of names is asked for, as model.named_parameters() gives them")
    known, got = dict(model.named_parameters()), set(got)
    strange = sorted(got - known.keys())
    trial.ask(not strange, f"the model has no parameter called {', '.join(strange)}")

    trial.stage("who must not decay")
    trial.ask(not any(n.endswith("bias") for n in got), "why should a bias be drawn to zero?")
    trial.ask("norm.weight" not in got, "at zero, the gain of a norm silences its whole branch")
    trial.ask("pos_table" not in got, "a position table is looked up, it multiplies nothing")
    trial.ask("cls_token" not in got, "has the class token one axis or three? Is it a matrix?")
    trial.ask(not any(n.startswith("frozen") for n in got), "a frozen weight would go on shrinking")

    trial.stage("who must decay")
    trial.ask("head.weight" in got and "qkv.weight" in got, "linear layers multiply: they decay")
    trial.ask("patch_embed.weight" in got, "a kernel has four axes. Is it no weight matrix?")


def _smoothed(entries):
    """The loss with a target that has these entries, (right, each wrong) of (share, K)."""

    def loss(logits, labels, share):
        logs = logits.log_softmax(-1)
        true = logs.gather(1, labels[:, None])[:, 0]  # (B,)
        right, wrong = entries(share, logits.shape[-1])
        return -(right * true + wrong * (logs.sum(-1) - true)).mean()

    return loss


_loss = _smoothed(lambda share, K: (1 - share + share / K, share / K))


@staged(
    "my_loss",
    ok="a share of the target for every class, and the mean over the batch",
    right=_loss,
    mistakes={
        "that is a sum; losses of batches are means": lambda logits, labels, share: (
            len(labels) * _loss(logits, labels, share)
        ),
        "a loss below zero: where did the minus go?": lambda logits, labels, share: (
            -_loss(logits, labels, share)
        ),
        "a softmax, and then another in the loss?": lambda logits, labels, share: _loss(
            logits.softmax(-1), labels, share
        ),
        "`share` changes nothing": _smoothed(lambda share, K: (1, 0)),
        "is the share spread over the wrong classes only? The right one has its part too": (
            _smoothed(lambda share, K: (1 - share, share / (K - 1)))
        ),
        "the target sums to less than one: the right class has its part of the share, too": (
            _smoothed(lambda share, K: (1 - share, share / K))
        ),
        "does the target still sum to one? Each class gets share / K": _smoothed(
            lambda share, K: (1, share)
        ),
        "what became of the share that was taken away?": _smoothed(lambda share, K: (1 - share, 0)),
        "the target sums to more than one": [
            _smoothed(lambda share, K: (1 + share / K, share / K)),
            _smoothed(lambda share, K: (1, share / K)),
        ],
    },
)
def check_smoothed_loss(trial: Trial, loss):
    """Exercise "Smoothed labels": loss(logits, labels, share) -> the mean smoothed loss."""
    B, K = 5, 7
    logits = 2 * trial.randn(B, K)
    labels = torch.randint(K, (B,), generator=trial.generator)
    for stage, share, otherwise in (
        ("without smoothing", 0.0, "with share 0 it is the usual cross-entropy"),
        ("with smoothing", 0.2, "the loss is {:.4f}; write down the target of one image first"),
    ):
        trial.stage(stage)
        got = trial.number(loss(logits, labels, share), name="the loss")
        otherwise = otherwise.format(got)
        trial.compare(got, logits, labels, share, otherwise=otherwise, tolerance=1e-4)


def _error(given, labels, bins, *, signed=False, weighted=True, empty=False, top=None):
    """``top``: the highest bin that a confidence can fall into."""
    confidence, answers = given.max(-1)
    gap = confidence - (answers == labels).float()
    place = (confidence * bins).long().clamp(max=bins - 1 if top is None else top)
    gaps = [gap[place == i].sum() for i in range(bins)]
    size = [int((place == i).sum()) for i in range(bins)]
    if not weighted:
        gaps = [gap / max(n, 1) for gap, n in zip(gaps, size, strict=True)]
    gaps = gaps if signed else [gap.abs() for gap in gaps]
    return sum(gaps) / (len(labels) if weighted else bins if empty else sum(n > 0 for n in size))


def _error_of_the_label(given, labels, bins):
    confidence = given.gather(1, labels[:, None])
    sure = torch.cat([confidence, torch.zeros_like(confidence)], dim=1)
    return _error(sure, (given.argmax(-1) != labels).long(), bins)


@staged(
    "my_error",
    ok="distances weighted by how many answers a bin holds",
    right=_error,
    mistakes={
        "a distance has no sign": lambda *given: -_error(*given, signed=True),
        "0.9 sure and never right is no error? Confidence belongs to the answer, not to the "
        "label": _error_of_the_label,
        "bins without answers were counted in": partial(_error, weighted=False, empty=True),
        "right half the time, and no error? In which bin is 100 %?": lambda given, labels, bins: (
            _error(given, labels, bins, top=bins)
        ),
        "positive and negative gaps cancel: take the absolute value in each bin": [
            partial(_error, signed=True),
            lambda *given: abs(_error(*given, signed=True)),
        ],
        "two answers weigh as much as eighteen": partial(_error, weighted=False),
        "two wide bins were asked for. How many did you make?": lambda given, labels, bins: _error(
            given, labels, 10
        ),
    },
)
def check_calibration_error(trial: Trial, error):
    """Exercise "How honest?": error(probabilities, labels, bins) -> the calibration error."""

    def rows(confidence, K=4):
        rest = (1 - confidence) / (K - 1)
        return torch.cat([confidence[:, None], rest[:, None].expand(-1, K - 1)], dim=1)

    for stage, confidence, labels, bins, otherwise in (  # answer 0 is always the surest
        (
            "a model that is sure and right",
            *([1.0] * 6, [0] * 6, 5),
            "sure and always right is an error of 0",
        ),
        (
            "a model that is sure and wrong",
            *([0.9] * 8, [1] * 8, 5),
            "it is 0.9 sure and never right",
        ),
        (
            "a model that is always 100 % sure",
            *([1.0] * 6, [0, 0, 0, 1, 1, 1], 5),
            "100 % sure, half right: off by 0.5",
        ),
        (
            "too sure here, too modest there",  # 0.9 sure: half right; 0.5 sure: all right
            *([0.9] * 4 + [0.5] * 4, [0, 0, 1, 1, 0, 0, 0, 0], 4),
            "bins are off by 0.4 and by 0.5",
        ),
        (
            "bins of unequal weight",
            *([0.9] * 18 + [0.5] * 2, [0] * 9 + [1] * 9 + [0, 0], 4),
            "it should be 0.41 here",
        ),
        (
            "as many bins as asked for",
            *([0.52, 0.52, 0.68, 0.68], [0, 0, 1, 1], 2),
            "in one bin: half right, 0.6 sure",
        ),
    ):
        trial.stage(stage)
        given = rows(torch.tensor(confidence)), torch.tensor(labels), bins
        got = trial.number(error(*given), name="the error")
        says = f"{otherwise}; you say {got:.3f}"
        trial.compare(got, *given, otherwise=says, tolerance=1e-4)


class _Recorder(nn.Module):
    """A linear classifier that remembers what came in, in which mode, and its own weights then."""

    def __init__(self, trial, features):
        super().__init__()
        self.weight = nn.Parameter(0.1 * trial.randn(features, 3))
        self.seen: list[tuple[torch.Tensor, bool, torch.Tensor]] = []

    def forward(self, x):
        self.seen.append((x.detach().clone(), self.training, self.weight.detach().clone()))
        return x @ self.weight


class _Watched(torch.optim.SGD):
    """Plain descent that keeps the gradient of each step."""

    def __init__(self, model):
        super().__init__(model.parameters(), lr=0.1)
        self.taken: list[torch.Tensor] = []

    def step(self, closure=None):
        weight = self.param_groups[0]["params"][0].detach()
        grad = self.param_groups[0]["params"][0].grad
        self.taken.append(torch.zeros_like(weight) if grad is None else grad.clone())
        return super().step(closure)


@staged("my_fit", ok="every image once an epoch, with its label; fresh gradients; two modes")
def check_training_loop(trial: Trial, fit):
    """Exercise "Mend the loop": fit(model, optimizer, images, labels, test, epochs) -> accuracy.

    ``test`` is a pair (images, labels); the accuracy on it after the last epoch is returned.
    """
    n, epochs = 24, 6
    labels = torch.randint(3, (n,), generator=trial.generator)
    images = trial.randn(n, 6)
    images[:, 5] = torch.arange(n) / n  # a number on each image, to be recognised by
    test = (trial.randn(30, 6), torch.randint(3, (30,), generator=trial.generator))
    kept = images.clone(), labels.clone()
    model = _Recorder(trial, 6)
    optimizer = _Watched(model)

    trial.stage("updates")
    accuracy = trial.number(fit(model, optimizer, images, labels, test, epochs), name="accuracy")
    same = torch.equal(images, kept[0]) and torch.equal(labels, kept[1])
    trial.ask(same, "the images or labels that you were given have changed")
    trial.ask(len(optimizer.taken) > 0, "no update was made: who calls optimizer.step()?")

    trial.stage("two modes")
    tested = [training for x, training, _ in model.seen if torch.equal(x[-1], test[0][-1])]
    trial.ask(len(tested) > 0, "the test images never went through the model")
    trial.ask(not any(tested), "the test images went through the model in training mode")
    learned = [row for row in model.seen if not _within(row[0], test[0])]
    trial.ask(
        all(training for _, training, _ in learned),
        "the model learned in evaluation mode. Who sets it back after a test?",
    )

    trial.stage("the images of an epoch")
    places = [(x[:, 5] * n).round().long() for x, _, _ in learned]
    shown = torch.cat(places)
    trial.ask(
        len(shown) == epochs * n,
        f"{len(shown)} images went through the model in {epochs} epochs, not {epochs * n}",
    )
    each = [shown[i * n : (i + 1) * n] for i in range(epochs)]
    trial.ask(
        all(len(epoch.unique()) == n for epoch in each),
        "some images come twice in an epoch and others not at all",
    )
    trial.ask(not torch.equal(each[0], each[1]), "each epoch shows the images in the same order")
    trial.ask(len(optimizer.taken) == len(learned), "how many updates should a batch make?")

    trial.stage("the gradient of an update")
    _ask_gradients(trial, learned, places, labels, optimizer.taken)

    trial.stage("the accuracy")
    with torch.no_grad():
        right = ((test[0] @ model.weight).argmax(-1) == test[1]).float().mean().item()
    trial.ask(0 <= accuracy <= 1, f"an accuracy of {accuracy:g}? A share is asked for")
    asked = [weight for x, _, weight in model.seen if _within(x, test[0])]
    reached = [((test[0] @ w).argmax(-1) == test[1]).float().mean().item() for w in asked]
    trial.match(
        accuracy,
        right,
        {
            "that is the best epoch's. If the test images choose it, who tests it?": max(reached),
        },
        otherwise=f"you say {accuracy:.3f}, the model has {right:.3f}",
    )


def _within(x, test_images):
    return any(torch.equal(x[-1], image) for image in test_images)


def _ask_gradients(trial: Trial, learned, places, labels, taken):
    """Compare what was in .grad at each update with what should have been, and with mistakes."""

    def gradient(step, loss):
        x, _, weight = learned[step]
        weight = weight.clone().requires_grad_(True)
        return torch.autograd.grad(loss(x @ weight, labels[places[step]]), weight)[0]

    def all_of(loss):
        return torch.stack([gradient(step, loss) for step in range(len(taken))])

    right = all_of(F.cross_entropy)  # (updates, features, classes)
    soft = all_of(lambda z, y: F.cross_entropy(z.softmax(-1), y))
    trial.match(
        torch.stack(taken),
        right,
        {
            "all gradients are zero: were they cleared after backward()?": torch.zeros_like(right),
            "the gradients of all earlier batches are still in it. backward() adds to .grad": [
                right.cumsum(0),
                soft.cumsum(0),
            ],
            "a softmax before the loss, which has one inside: what is asked?": soft,
            "minus the probability is no cross-entropy. Where is the log?": all_of(
                lambda z, y: F.nll_loss(z.softmax(-1), y)
            ),
            "the losses of a batch are summed, not averaged": all_of(
                lambda z, y: F.cross_entropy(z, y, reduction="sum")
            ),
        },
        otherwise="it is not the one of these images with *their* labels. Were both shuffled "
        "alike?",
        tolerance=1e-4,
    )
