"""Checks of chapter 11: schedule, what decays, smoothed labels, calibration, a loop to mend."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.trial import staged


@staged("my_schedule", ok="up, along, and down to almost nothing, at every step")
def check_schedule(trial, schedule):
    """Exercise "Up, along, down": schedule(step, total, warmup, cooldown) -> share of the peak."""
    warmup, cooldown = trial.integer(5, 9), trial.integer(12, 18)
    total = warmup + cooldown + trial.integer(20, 30)

    def share(step):
        return trial.number(schedule(step, total, warmup, cooldown), name=f"step {step}")

    trial.stage("the first step")
    first = share(0)
    trial.ask(first != 0, "the first step moves nothing: a whole batch for no update")
    trial.ask(first < 0.9, "the first step has the full rate already. Where is the warm-up?")
    trial.ask(abs(first - 1 / warmup) < 1e-6, f"step 0 has {first:.3f} of the peak, not 1 / warmup")

    trial.stage("the warm-up")
    up = [share(s) for s in range(warmup)]
    rises = [b - a for a, b in itertools.pairwise(up)]
    trial.ask(all(abs(r - 1 / warmup) < 1e-6 for r in rises), "equal steps up: is it a line?")
    trial.ask(abs(up[-1] - 1) < 1e-6, "the last step of the warm-up should have reached the peak")

    trial.stage("the plateau")
    flat = [share(s) for s in range(warmup, total - cooldown)]
    trial.ask(all(abs(f - 1) < 1e-6 for f in flat), "between the two ramps the rate should stay")

    trial.stage("the way down")
    down = [share(s) for s in range(total - cooldown, total)]
    trial.ask(max(down) <= 1 + 1e-6, "it rises above the peak on its way down")
    trial.ask(min(down) >= -1e-6, "a negative learning rate climbs the loss")
    trial.ask(down[-1] != 0, "the last step moves nothing; let it be the last but one above zero")
    trial.ask(down[0] - down[-1] > 1e-6, "it never comes down: where is the cooldown?")
    falls = [a - b for a, b in itertools.pairwise(down)]
    trial.ask(all(abs(f - falls[0]) < 1e-6 for f in falls), "equal steps down: is it a line?")
    trial.ask(abs(falls[0] - 1 / cooldown) < 1e-6, "how many steps has the way down?")
    trial.ask(abs(down[-1] - 1 / cooldown) < 1e-6, f"the last step has {down[-1]:.3f} of the peak")

    trial.stage("no warm-up")
    start = trial.number(schedule(0, total, 0, cooldown), name="step 0 of a run without warm-up")
    trial.ask(abs(start - 1) < 1e-6, "without a warm-up the first step has the full rate")


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
def check_decayed(trial, decayed):
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


@staged("my_loss", ok="a share of the target for every class, and the mean over the batch")
def check_smoothed_loss(trial, loss):
    """Exercise "Smoothed labels": loss(logits, labels, share) -> the mean smoothed loss."""
    B, K, share = 5, 7, 0.2
    logits = 2 * trial.randn(B, K)
    labels = torch.randint(K, (B,), generator=trial.generator)
    logs = logits.log_softmax(-1)
    true, flat = logs[torch.arange(B), labels], logs.mean(-1)  # (B,), (B,)

    trial.stage("without smoothing")
    got = trial.number(loss(logits, labels, 0.0), name="the loss")
    hard = -true.mean().item()
    trial.ask(abs(got - B * hard) > 1e-4, "that is a sum; losses of batches are means")
    trial.ask(abs(got + hard) > 1e-4, "a loss below zero: where did the minus go?")
    twice = F.cross_entropy(logits.softmax(-1), labels).item()
    trial.ask(abs(got - twice) > 1e-4, "a softmax, and then another in the loss?")
    trial.ask(abs(got - hard) < 1e-4, "with share 0 it is the usual cross-entropy")

    trial.stage("with smoothing")
    got = trial.number(loss(logits, labels, share), name="the loss")

    def like(value):
        return abs(got - value.item()) < 1e-4

    others = (logs.sum(-1) - true) / (K - 1)
    trial.ask(not like(-true.mean()), "`share` changes nothing")
    trial.ask(
        not like(-((1 - share) * true + share * others).mean()),
        "is the share spread over the wrong classes only? Here the right one has its part too",
    )
    trial.ask(
        not like(-((1 - share) * true + share * K * flat).mean()),
        "does the target still sum to one? Each class gets share / K",
    )
    trial.ask(not like(-(1 - share) * true.mean()), "what became of the share that was taken away?")
    trial.ask(not like(-(true + share * flat).mean()), "the target sums to more than one")
    want = -((1 - share) * true + share * flat).mean()
    trial.ask(like(want), f"the loss is {got:.4f}; write down the target of one image first")


@staged("my_error", ok="distances weighted by how many answers a bin holds")
def check_calibration_error(trial, error):
    """Exercise "How honest?": error(probabilities, labels, bins) -> the calibration error."""

    def number(given, labels, bins):
        return trial.number(error(given, labels, bins), name="the error")

    def rows(confidence, K=4):
        rest = (1 - confidence) / (K - 1)
        return torch.cat([confidence[:, None], rest[:, None].expand(-1, K - 1)], dim=1)

    trial.stage("a model that is sure and right")
    got = number(rows(torch.ones(6)), torch.zeros(6, dtype=torch.long), 5)
    trial.ask(abs(got) < 1e-5, "sure and always right is an error of 0; in which bin is 100 %?")

    trial.stage("a model that is sure and wrong")
    got = number(rows(torch.full((8,), 0.9)), torch.ones(8, dtype=torch.long), 5)
    trial.ask(got > -1e-5, "a distance has no sign")
    trial.ask(
        abs(got - 0.1 / 3) > 1e-4,
        "0.9 sure and never right is no error? Confidence belongs to the answer, not to the label",
    )
    trial.ask(abs(got - 0.9 / 5) > 1e-4, "bins without answers were counted in")
    trial.ask(abs(got - 0.9) < 1e-4, f"it is 0.9 sure and never right; you say {got:.3f}")

    trial.stage("a model that is always 100 % sure")
    got = number(rows(torch.ones(6)), torch.tensor([0, 0, 0, 1, 1, 1]), 5)
    trial.ask(got > 1e-5, "right half the time, and no error? In which bin is 100 %?")
    trial.ask(abs(got - 0.5) < 1e-5, f"100 % sure, half right: off by 0.5; you say {got:.3f}")

    trial.stage("too sure here, too modest there")
    given = rows(torch.cat([torch.full((4,), 0.9), torch.full((4,), 0.5)]))
    labels = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0])  # 0.9 sure: half right; 0.5 sure: all right
    got = number(given, labels, 4)
    trial.ask(
        abs(abs(got) - 0.05) > 1e-4, "one bin's modesty pays for the other's pride: no signs?"
    )
    trial.ask(abs(got - 0.45) < 1e-4, f"bins are off by 0.4 and by 0.5; you say {got:.3f}")

    trial.stage("bins of unequal weight")
    given = rows(torch.cat([torch.full((18,), 0.9), torch.full((2,), 0.5)]))
    labels = torch.cat([torch.tensor([0] * 9 + [1] * 9), torch.tensor([0, 0])])
    got = number(given, labels, 4)
    trial.ask(abs(got - 0.45) > 1e-4, "two answers weigh as much as eighteen")
    trial.ask(abs(got - 0.41) < 1e-4, f"it should be 0.41 here; you say {got:.3f}")

    trial.stage("as many bins as asked for")
    given = rows(torch.tensor([0.52, 0.52, 0.68, 0.68]))
    got = number(given, torch.tensor([0, 0, 1, 1]), 2)
    trial.ask(abs(got - 0.58) > 1e-4, "two wide bins were asked for. How many did you make?")
    trial.ask(abs(got - 0.10) < 1e-4, f"in one bin: half right, 0.6 sure; you say {got:.3f}")


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
        grad = self.param_groups[0]["params"][0].grad
        self.taken.append(torch.zeros(()) if grad is None else grad.clone())
        return super().step(closure)


@staged("my_fit", ok="every image once an epoch, with its label; fresh gradients; two modes")
def check_fit(trial, fit):
    """Exercise "Mend the loop": fit(model, optimizer, images, labels, test, epochs) -> accuracy.

    `test` is a pair (images, labels); what is returned is the accuracy on it after the last epoch.
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
    best = max(reached) > right + 1e-5 and abs(accuracy - max(reached)) < 1e-5
    trial.ask(not best, "that is the best epoch's. If the test images choose it, who tests it?")
    trial.ask(abs(accuracy - right) < 1e-5, f"you say {accuracy:.3f}, the model has {right:.3f}")


def _within(x, test_images):
    return any(torch.equal(x[-1], image) for image in test_images)


def _ask_gradients(trial, learned, places, labels, taken):
    """Compare what was in .grad at each update with what should have been, and with mistakes."""

    def gradient(step, loss):
        x, _, weight = learned[step]
        weight = weight.clone().requires_grad_(True)
        return torch.autograd.grad(loss(x @ weight, labels[places[step]]), weight)[0]

    def all_like(wanted):
        pairs = zip(taken, wanted, strict=True)
        return all(torch.allclose(got, want, rtol=1e-3, atol=1e-5) for got, want in pairs)

    steps = range(len(taken))
    right = [gradient(step, F.cross_entropy) for step in steps]
    soft = [gradient(s, lambda z, y: F.cross_entropy(z.softmax(-1), y)) for s in steps]
    no_log = [gradient(s, lambda z, y: F.nll_loss(z.softmax(-1), y)) for s in steps]
    summed = [gradient(s, lambda z, y: F.cross_entropy(z, y, reduction="sum")) for s in steps]
    so_far = [torch.stack(right[: step + 1]).sum(0) for step in steps]
    soft_so_far = [torch.stack(soft[: step + 1]).sum(0) for step in steps]
    trial.ask(
        not all(bool((grad == 0).all()) for grad in taken),
        "all gradients are zero: were they cleared after backward()?",
    )
    trial.ask(
        not all_like(so_far) and not all_like(soft_so_far),
        "the gradients of all earlier batches are still in it. backward() adds to .grad",
    )
    trial.ask(not all_like(soft), "a softmax before the loss, which has one inside: what is asked?")
    trial.ask(not all_like(no_log), "minus the probability is no cross-entropy. Where is the log?")
    trial.ask(not all_like(summed), "the losses of a batch are summed, not averaged")
    trial.ask(
        all_like(right),
        "it is not the one of these images with *their* labels. Were both shuffled alike?",
    )
