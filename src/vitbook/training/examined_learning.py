"""Trials of :func:`~vitbook.training.examine` that let copies of the model learn."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from vitbook.training.findings import Finding

RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of AdamW, tried one by one
LEAST = 0.05  # of what the best rate gains, a chosen one gains at least so much
HALF = 0.5  # of it, one that is FAR from the best
FAR = 5
SURE = 2  # standard deviations of a guess, by which right answers are no chance
SETTLED = 50  # passes in which averages of BatchNorm catch up with weights that moved fast
LEARNED = 0.1  # loss, in nats, at which one batch counts as learned


def copied(model: nn.Module) -> nn.Module:
    """A copy; of what its modules keep of an earlier run, without the graph that made it."""
    kept = [x for module in model.modules() for x in tree_leaves(list(vars(module).values()))]
    graphs = [x for x in kept if isinstance(x, Tensor) and not x.is_leaf]
    return copy.deepcopy(model, {id(x): x.detach().clone() for x in graphs})


def one_batch(
    model: nn.Module, images: Tensor, labels: Tensor, updates: int, best: float
) -> tuple[Finding, nn.Module | None, float]:
    """Can the model learn one batch by heart? The copy that came closest, if any, and its loss."""
    trial, ends = "one batch is learned", []
    nearest, least = None, math.inf
    for rate in (best, best / 5):
        learner = copied(model).train()
        losses = learn(learner, [(images, labels)] * updates, rate, enough=LEARNED)
        if losses[-1] < least:
            nearest, least = learner, losses[-1]
        if least <= LEARNED:
            seen = f"Loss {least:.2f} after {len(losses)} updates at the rate {rate:g}."
            return Finding(trial, "fine", seen), nearest, least
        ends.append(f"{losses[-1]:.2f} at {rate:g}")
    seen = f"Loss after {updates} updates with {len(images)} images: {', '.join(ends)}."
    if least < 0.5 * losses[0]:
        return Finding(trial, "fine", f"{seen} It falls; its end was not awaited."), nearest, least
    advice = "Look above for the reason; else for attention, residual stream or norm."
    return Finding(trial, "wrong", seen, advice), None, least


@torch.no_grad()
def in_evaluation(
    learned: nn.Module, images: Tensor, labels: Tensor, training_loss: float
) -> Finding:
    """Does a model that learned a batch know it in evaluation mode, too?"""
    trial = "evaluation mode agrees"
    for _ in range(SETTLED):
        learned.train()(images)
    loss = F.cross_entropy(learned.eval()(images), labels).item()
    seen = f"On the batch that was learned: loss {training_loss:.2f} in training mode, {loss:.2f} "
    seen += "in evaluation mode."
    if loss > training_loss + 1:
        advice = "Look at BatchNorm (its averages) and at dropout that does not rescale."
        return Finding(trial, "look", seen, advice)
    return Finding(trial, "fine", seen)


@torch.no_grad()
def shuffled(learned: nn.Module, images: Tensor) -> Finding:
    """Does the order of the patches count?"""
    trial = "places count"
    size = patch_size(learned, images)
    patches = F.unfold(images, size, stride=size)  # (B, C * P * P, N)
    mixed = patches[..., torch.randperm(patches.shape[-1], device=images.device)]
    mixed = F.fold(mixed, images.shape[-2:], size, stride=size)
    logits = learned.eval()(images)
    change = (learned(mixed) - logits).std().item() / (logits.std().item() + 1e-12)
    seen = f"With the patches of {size[0]} x {size[1]} shuffled, logits change by {change:.1g} of "
    seen += "their standard deviation."
    if change < 1e-3:
        advice = "Are positions added, before the first block?"
        return Finding(trial, "look", seen, advice)
    return Finding(trial, "fine", seen)


def rates(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    batch_size: int,
    updates: int,
    chosen: float | None,
) -> tuple[Finding, float]:
    """Which learning rates suit, and is the chosen one among them? Returns the best one tried."""
    trial, ends = "the learning rate suits", {}
    batches = drawn(images, labels, batch_size, updates)
    tried = sorted({*RATES, chosen}) if chosen else RATES
    for rate in tried:
        losses = learn(copied(model).train(), batches, rate)
        tail = losses[-max(1, len(losses) // 4) :]
        ends[rate] = sum(tail) / len(tail) if all(map(math.isfinite, losses)) else math.inf
        start = losses[0]
    best = min(ends, key=ends.__getitem__)
    table = ", ".join(f"{ends[rate]:.2f} at {rate:g}" for rate in tried)
    seen = f"Loss after {len(batches)} updates of AdamW, at first {start:.2f}: {table}."
    if not math.isfinite(ends[best]) or ends[best] >= start:
        return Finding(trial, "look", seen, "No rate lowers it so soon."), best
    if not chosen:
        return Finding(trial, "fine", f"{seen} None was chosen: {best:g} suits."), best
    gained = (start - ends[chosen]) / (start - ends[best])
    where = "high" if chosen > best else "low"
    advice = f"The chosen rate {chosen:g} is too {where}: try about {best:g}."
    if gained < LEAST:
        return Finding(trial, "wrong", seen, advice), best
    if gained < HALF and chosen > FAR * best:
        return Finding(trial, "look", seen, advice), best
    if gained < HALF and best > FAR * chosen:  # in a longer training it may be the better one
        seen += f" The chosen {chosen:g} needs many more updates than {best:g}."
    return Finding(trial, "fine", seen), best


def belongs(
    model: nn.Module, images: Tensor, labels: Tensor, batch_size: int, updates: int, rate: float
) -> Finding:
    """Does what is learned from one half of the images hold for the other?"""
    trial = "labels belong to their images"
    order = torch.randperm(len(images), device=images.device)
    some, others = order[: len(order) // 2], order[len(order) // 2 :]
    learner = copied(model).train()
    learn(learner, drawn(images[some], labels[some], batch_size, updates), rate)
    with torch.no_grad():
        learner.eval()
        answers = torch.cat([learner(part) for part in images[others].split(64)]).argmax(dim=1)
    n, right = len(others), int((answers == labels[others]).sum())
    most = int(labels[others].bincount().max())  # so often is right who always says one class
    spread = (n * (most / n) * (1 - most / n)) ** 0.5
    seen = f"After {updates} updates on {len(some)} images {right} of {n} others are right; of one "
    seen += f"class there are {most}."
    if right <= most:
        advice = "Are images and labels still paired? If so, the task needs more images or updates."
        return Finding(trial, "look", seen, advice)
    if right <= most + SURE * spread:
        advice = "That may be chance: give more images. Are images and labels still paired?"
        return Finding(trial, "look", seen, advice)
    return Finding(trial, "fine", seen)


def learn(
    model: nn.Module, batches: list[tuple[Tensor, Tensor]], rate: float, enough: float = -1.0
) -> list[float]:
    """Update with AdamW, batch by batch, until the loss is low enough or not finite; the losses."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0)
    losses: list[float] = []
    for images, labels in batches:
        loss = F.cross_entropy(model(images), labels)
        losses.append(loss.item())
        if losses[-1] <= enough or not math.isfinite(losses[-1]):
            break
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return losses


def drawn(
    images: Tensor, labels: Tensor, batch_size: int, number: int
) -> list[tuple[Tensor, Tensor]]:
    """Batches of images drawn by lot."""
    draws = [torch.randperm(len(images))[:batch_size] for _ in range(number)]
    return [(images[draw], labels[draw]) for draw in draws]


def patch_size(model: nn.Module, images: Tensor) -> tuple[int, int]:
    """The patches of a model's first convolution, if it has such; else a quarter of the image."""
    H, W = images.shape[-2:]
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.in_channels == images.shape[1]:
            rows, columns = module.kernel_size
            fits = module.stride == module.kernel_size and H % rows == W % columns == 0
            if fits and (rows < H or columns < W):
                return rows, columns
            break
    return max(1, H // 4) if H % 4 == 0 else 1, max(1, W // 4) if W % 4 == 0 else 1
