"""Checks: what decays, a table of faults, a loop to mend."""

import torch
import torch.nn.functional as F
from torch import nn

from vitcheck.reading import NO, OPEN, YES, reading
from vitcheck.trial import Trial, staged


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


_STATEMENTS = {
    "A would be mended by a larger learning rate alone": (
        NO,
        "what does its row say about one batch? Are its steps long enough to learn 32 images?",
    ),
    "B learns too slowly, and nothing else is wrong": (
        OPEN,
        "it may. What do frozen weights look like, and a rate that is far too high?",
    ),
    "C has a softmax before its loss": (
        OPEN,
        "it may have one. Which other faults leave a loss like this?",
    ),
    "D began with a head that was sure of itself": (
        YES,
        "what does a model pay that gives all ten classes the same probability?",
    ),
    "E's learning rate is the best one": (OPEN, "which other rates were tried for E?"),
}


check_faults = reading("what four numbers of a run allow one to say", _STATEMENTS)


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
