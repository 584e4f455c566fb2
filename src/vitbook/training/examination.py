"""What is wrong with my training? A model and its data are put to a row of short trials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from vitbook import require
from vitbook.training import examined_data, examined_learning, examined_model, examined_weights
from vitbook.training.examined_learning import copied
from vitbook.training.findings import Finding

LONGEST = 512  # images that are looked at; more tell little more


@dataclass(frozen=True)
class Examination:
    """What every trial found, causes before their effects; printed, it is a table."""

    findings: tuple[Finding, ...]

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that would spoil a training."""
        return tuple(one for one in self.findings if one.verdict == "wrong")

    @property
    def sentence(self) -> str:
        """The first thing to repair: what stands below it may be its effect."""
        for verdict in ("wrong", "look"):
            for one in self.findings:
                if one.verdict == verdict:
                    start = "First to mend" if verdict == "wrong" else "Nothing wrong; to look at"
                    return f"{start}: {one.trial}. {one.seen} {one.advice}"
        return f"Nothing was found: {len(self.findings)} trials."

    def __str__(self) -> str:
        width = max(len(one.trial) for one in self.findings)
        lines = [f"{one.verdict:5}  {one.trial:{width}}  {one.seen}" for one in self.findings]
        return "\n".join([*lines, "", self.sentence])

    __repr__ = __str__


def examine(
    model: nn.Module,
    images: Any,
    labels: Any = None,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    learning_rate: float | None = None,
    batch_size: int = 32,
    updates: int = 100,
    seed: int = 0,
    progress: bool | None = None,
) -> Examination:
    """Try a classifier and its data for what commonly spoils a training.

    The data: labels that the logits do not have, pixels on a scale of their own, copies, one image
    with two labels, batches in order of class. The model: a softmax in it, a first loss far from
    ln K, another answer to the same image, an answer that depends on the rest of the batch, a
    softmax over queries.
    Learning: weights that do not move, one batch that is not learned, another answer in evaluation
    mode, patches whose order does not matter, rates that suit and the one that was chosen, labels
    that do not belong to their images. All is tried on copies; the model stays as it is.

    What it cannot see: a fault that leaves all of this as it should be, such as tokens that are
    scrambled the same way each time, or a part of the labels that is wrong.

    Args:
        model: Images (B, C, H, W) -> logits (B, K), trained or not.
        images: (n, C, H, W), as the model takes them, a tensor, an array or a list of images; or an
            iterable of (images, labels), such as a ``DataLoader``. The first 512 images are looked
            at.
        labels: Class numbers (n,), a tensor, an array or a list; not with an iterable.
        optimizer: The one to train with, if it is there already: its parameters are compared with
            the model's, and its learning rate is tried.
        learning_rate: Or the rate to try, of AdamW.
        batch_size: Images in the trials that learn.
        updates: At most so many in each trial that learns. A trial counts in updates, so a large
            model takes long: about ``6 * updates`` updates in all.
        seed: Of what is random in the trials.
        progress: Whether a bar shows the time that is left; by default, on a terminal.

    Returns:
        The :class:`Examination`.

    Raises:
        TypeError, ValueError: An argument is not what it has to be. What is wrong with images,
            labels and logits is a finding, and raises nothing.

    Source: Karpathy 2019, A recipe for training neural networks.
    """
    examined_weights.require_free(require.module("model", model))
    require.whole("batch_size", batch_size, at_least=2)
    require.whole("updates", updates, at_least=50)
    require.whole("seed", seed, at_least=0)
    if learning_rate is not None:
        require.real("learning_rate", learning_rate, above=0)
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(seed)
        trials = _trials(model, images, labels, optimizer, learning_rate, batch_size, updates)
        hidden = None if progress is None else not progress
        return Examination(tuple(tqdm(trials, total=15, disable=hidden, unit="trial")))


def _trials(
    model: nn.Module,
    images: Any,
    labels: Any,
    optimizer: torch.optim.Optimizer | None,
    learning_rate: float | None,
    batch_size: int,
    updates: int,
) -> Iterator[Finding]:
    """One finding after the other; where one leaves nothing to try, the last."""
    images, labels = examined_data.as_tensors(images, labels)
    if not isinstance(images, Tensor):
        yield examined_data.order(images, labels, LONGEST)
        images, labels = examined_data.gathered(images, LONGEST)
    elif labels is None:
        raise TypeError("labels must be given with images as a tensor")
    images, labels = images[:LONGEST], labels[:LONGEST]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    images, labels = images.to(device), labels.to(device)
    found = examined_data.pixels(images)
    yield found
    if found.verdict == "wrong" and not (len(images) and images.is_floating_point()):
        return
    yield examined_data.copies(images, labels)
    quiet = copied(model).eval()
    found, logits = examined_model.output(quiet, images[:batch_size])
    yield found
    if logits is None:
        return
    found = examined_data.classes(labels, logits.shape[1], len(images))
    yield found
    if found.verdict == "wrong":
        return
    with torch.random.fork_rng():
        found, in_training = examined_model.output(copied(model).train(), images[:batch_size])
    if in_training is None:
        yield replace(found, seen=f"In training mode: {found.seen}")
        return
    labels = labels.long()
    yield examined_model.first_loss(quiet, images, labels)
    found = examined_model.twice(quiet, images[:batch_size])
    yield found
    if found.verdict == "fine":  # else the rest of the batch is not what makes a difference
        yield examined_model.alone(quiet, images[:batch_size])
    yield examined_model.weights_of_a_query(quiet, images)
    if optimizer is not None:
        yield examined_weights.optimized(model, optimizer)
        rates = {group["lr"] for group in optimizer.param_groups}
        learning_rate = learning_rate or max(rates)
    found, learns = examined_weights.moves(model, images[:batch_size], labels[:batch_size])
    yield found
    if not learns:
        return
    found, best = examined_learning.rates(
        model, images, labels, batch_size, updates // 2, learning_rate
    )
    yield found
    if not math.isfinite(best):
        return
    found, learned, loss = examined_learning.one_batch(
        model, images[:batch_size], labels[:batch_size], updates, best
    )
    yield found
    if learned is not None:
        batch = images[:batch_size], labels[:batch_size]
        yield examined_learning.in_evaluation(learned, *batch, loss)
        yield examined_learning.shuffled(learned, images[:batch_size])
    yield examined_learning.belongs(model, images, labels, batch_size, updates, best)
