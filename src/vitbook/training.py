"""One training loop for every model. It knows no model class: images in, logits out.

Everything random in a run is a pure function of (seed, step): the order of the images, the
augmentation, the dropout. That is why a run that was killed ends in the same weights, bit for bit,
as one that was not, and why several processes make the same updates as one.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from vitbook import _arguments as check
from vitbook import processes
from vitbook.run_folder import RunFolder

FLUSH_EVERY = 50  # steps between looks at the losses: each look waits for an accelerator


@dataclass(frozen=True)
class TrainConfig:
    """What was asked of a training run. Exactly one of ``epochs`` and ``steps`` is given.

    Args:
        epochs: Passes over the images; what does not fill a batch is left out of an epoch.
        steps: Or the number of updates.
        batch_size: Images per update, over all processes together.
        learning_rate: The peak, reached after the warm-up.
        weight_decay: AdamW's, on weight matrices only, see :func:`parameter_groups`.
        warmup_steps: Updates until the peak is reached.
        label_smoothing: Share of the target spread over all classes, 0 ... 1.
        clip_norm: Largest norm of the gradient, or None.
        betas: AdamW's two decay rates.
        seed: Decides the order of the images, the augmentation and the dropout; the weights are
            drawn before, where the model is made.
        precision: "fp32", or "bf16" for matrix products in bfloat16.
        compile: Whether the model goes through ``torch.compile``.
    """

    epochs: int | None = None
    steps: int | None = None
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup_steps: int = 100
    label_smoothing: float = 0.0
    clip_norm: float | None = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    seed: int = 0
    precision: str = "fp32"
    compile: bool = False

    def __post_init__(self):
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(
                f"give either epochs or steps, got epochs={self.epochs} and steps={self.steps}"
            )
        check.whole("epochs" if self.steps is None else "steps", self.steps or self.epochs)
        check.whole("batch_size", self.batch_size)
        check.real("learning_rate", self.learning_rate, above=0)
        if check.real("weight_decay", self.weight_decay) < 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        check.whole("warmup_steps", self.warmup_steps, at_least=0)
        check.fraction("label_smoothing", self.label_smoothing)
        if self.clip_norm is not None:
            check.real("clip_norm", self.clip_norm, above=0)
        if not isinstance(self.betas, (tuple, list)) or len(self.betas) != 2:
            raise ValueError(f"betas must be two numbers, got {self.betas!r}")
        object.__setattr__(self, "betas", tuple(check.fraction("betas", b) for b in self.betas))
        check.whole("seed", self.seed, at_least=0)
        check.one_of("precision", self.precision, ("fp32", "bf16"))
        check.truth("compile", self.compile)

    def total_steps(self, num_images: int) -> int:
        """How many updates the run makes with that many images."""
        return self.steps or self.epochs * (num_images // self.batch_size)


class Evaluation(NamedTuple):
    """Mean cross-entropy in nats, share of right answers, and over how many images."""

    loss: float
    accuracy: float
    count: int


def warmup_cosine(step: int, total_steps: int, warmup_steps: int) -> float:
    """The share of the peak learning rate at one step: up on a line, down on half a cosine.

    Args:
        step: 0 ... total_steps - 1.
        total_steps: Updates of the whole run.
        warmup_steps: Updates until the peak; 0 starts there.

    Returns:
        A number above 0, at most 1.

    Source: Goyal et al. 2017, section 2.2 (warm-up); Loshchilov and Hutter 2017, equation 5.
    """
    check.whole("total_steps", total_steps)
    check.whole("warmup_steps", warmup_steps, at_least=0)
    if not 0 <= check.whole("step", step, at_least=0) < total_steps:
        raise ValueError(f"step must be below total_steps = {total_steps}, got {step}")
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * done))


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Two groups for AdamW: weight matrices decay; biases, norms, positions, class token do not.

    A parameter decays if its name ends in "weight" and it has at least two axes. Parameters that
    are not trained (``requires_grad`` is False) are in neither group.
    """
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_matrix = name.endswith("weight") and parameter.ndim >= 2
            (decayed if is_matrix else others).append(parameter)
    if not decayed and not others:
        raise ValueError(f"model ({type(model).__name__}) has no parameter that can be trained")
    groups = [{"params": decayed, "weight_decay": weight_decay}]
    groups.append({"params": others, "weight_decay": 0.0})
    return [group for group in groups if group["params"]]


def epoch_order(num_images: int, seed: int, epoch: int) -> Tensor:
    """The order in which one epoch shows the images, (num_images,); a function of its arguments."""
    return torch.randperm(num_images, generator=_generator("order", seed, epoch))


@torch.no_grad()
def evaluate(
    model: nn.Module, images: Tensor, labels: Tensor, *, batch_size: int = 500
) -> Evaluation:
    """Loss and accuracy of a model, in evaluation mode; its own mode comes back afterwards.

    Args:
        model: Images (B, C, H, W) -> logits (B, K).
        images: (n, C, H, W), float, or uint8 that stands for 0 ... 1.
        labels: Class numbers (n,).
        batch_size: Images at a time; changes nothing but memory and time.

    Returns:
        Evaluation(loss, accuracy, count).

    Introduced in chapter 11.
    """
    check.whole("batch_size", batch_size)
    _check_data(images, labels)
    was_training = model.training
    model.eval()
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        x, y = _batch(model, images, labels, slice(start, start + batch_size))
        logits = model(x)  # (B, K)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=-1) == y).sum().item()
    model.train(was_training)
    return Evaluation(loss / len(labels), correct / len(labels), len(labels))


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    labels: Tensor,
    config: TrainConfig,
    loss_function: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of gradient descent on one batch.

    Args:
        model: Images (B, C, H, W) -> logits (B, K).
        optimizer: Its learning rate is already that of the step.
        images: (B, C, H, W) in float.
        labels: Class numbers (B,).
        config: Label smoothing, precision and the largest norm are read from it.
        loss_function: (outputs, labels) -> scalar, instead of cross-entropy.

    Returns:
        The loss and the norm of the gradient before clipping, both ().

    Introduced in chapter 11.
    """
    with torch.autocast(images.device.type, torch.bfloat16, enabled=config.precision == "bf16"):
        logits = model(images)  # (B, K)
        if loss_function is None:
            loss = F.cross_entropy(logits, labels, label_smoothing=config.label_smoothing)
        else:
            loss = loss_function(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    grad_norm = nn.utils.clip_grad_norm_(parameters, config.clip_norm or math.inf)
    optimizer.step()
    return loss.detach(), grad_norm


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    config: TrainConfig,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    loss_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    evaluate_on: tuple[Tensor, Tensor] | None = None,
    evaluate_every: int | None = None,
    folder: RunFolder | None = None,
    progress: bool | None = None,
    report: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Train a model in place with AdamW, warm-up and cosine; leave it in evaluation mode.

    Args:
        model: Images (B, C, H, W) -> logits (B, K). It is trained on the device it is on.
        images: (n, C, H, W), float, or uint8 that stands for 0 ... 1.
        labels: Class numbers (n,).
        config: The recipe.
        augment: (images (B, C, H, W) in float, generator) -> images; whatever is random in it
            comes from the generator.
        loss_function: (outputs, labels) -> scalar, instead of cross-entropy.
        evaluate_on: Images and labels to evaluate on while training. They choose nothing.
        evaluate_every: Steps between evaluations; if not said, after each epoch. The last step is
            always evaluated.
        folder: Where metrics and checkpoints go, and whether the run goes on from there.
        progress: Whether a bar shows the time that is left; if not said, on a terminal.
        report: Called with the row of each evaluation.

    Returns:
        One dict for each step: step and epoch (from 1), seconds, learning_rate, loss, grad_norm
        (before clipping), and val_loss and val_accuracy, None where nothing was evaluated.

    Raises:
        TypeError, ValueError: An argument is not what it has to be, or a checkpoint does not fit.
        ArithmeticError: The loss is no longer finite.
        OSError: The folder cannot be written; the last checkpoint stays whole.

    Introduced in chapter 11.
    """
    _check_data(images, labels)
    if evaluate_on is not None:
        _check_data(*evaluate_on, "evaluate_on: ")
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {type(config).__name__}")
    b, rank, world = config.batch_size, processes.rank(), processes.world()
    if b > len(images):
        raise ValueError(f"batch_size must be at most the number of images, {len(images)}, got {b}")
    if b % world:
        raise ValueError(f"batch_size must be a multiple of the {world} processes, got {b}")
    share = slice(rank * b // world, (rank + 1) * b // world)  # this process's part of a batch
    per_epoch, total = len(images) // b, config.total_steps(len(images))
    evaluate_every = per_epoch if evaluate_every is None else evaluate_every
    check.whole("evaluate_every", evaluate_every)

    optimizer = torch.optim.AdamW(parameter_groups(model, config.weight_decay), betas=config.betas)
    history, first, seconds = [], 0, 0.0
    if folder is not None:
        history, first, seconds = folder.start(model, optimizer, config, images, labels)
    save_every = (folder and folder.checkpoint_every) or per_epoch
    net = processes.replicate(model)
    net = torch.compile(net) if config.compile else net
    began, pending = time.perf_counter() - seconds, []
    model.train()
    bar = tqdm(total=total, initial=first, disable=None if progress is None else not progress)
    with torch.random.fork_rng(_gpus(model)), bar:
        for step in range(first, total):
            epoch, i = divmod(step, per_epoch)
            if i == 0 or step == first:
                order = epoch_order(len(images), config.seed, epoch)
            x, y = _batch(model, images, labels, order[i * b : (i + 1) * b])  # (b, C, H, W), (b,)
            if augment is not None:  # of the whole batch, so that each process draws the same
                x = augment(x, _generator("augment", config.seed, step))
            torch.manual_seed(_seed("dropout", config.seed, step, rank))
            rate = config.learning_rate * warmup_cosine(step, total, config.warmup_steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss, grad_norm = update(net, optimizer, x[share], y[share], config, loss_function)

            done, seconds = step + 1, time.perf_counter() - began
            pending.append((done, epoch + 1, seconds, rate, loss, grad_norm))
            evaluates = evaluate_on is not None and (done % evaluate_every == 0 or done == total)
            saves = folder is not None and (done % save_every == 0 or done == total)
            if evaluates or saves or done == total or len(pending) == FLUSH_EVERY:
                rows, pending = _rows(pending), []
                if evaluates:
                    result = _evaluate_together(model, *evaluate_on)
                    rows[-1] |= {"val_loss": result.loss, "val_accuracy": result.accuracy}
                    if report is not None:
                        report(rows[-1])
                if folder is not None:
                    folder.append(rows)
                if saves:
                    folder.save(done, seconds)
                history += rows
                bar.set_postfix_str(f"loss {rows[-1]['loss']:.3f}", refresh=False)
            bar.update()
    model.eval()
    return history


def _rows(pending: list[tuple]) -> list[dict]:
    """One dict for each step; losses are averaged over the processes."""
    losses, norms = (torch.stack([entry[i] for entry in pending]).double() for i in (4, 5))
    losses = (processes.total(losses) / processes.world()).tolist()
    rows = []
    for (step, epoch, seconds, rate, _, _), loss, norm in zip(
        pending, losses, norms.tolist(), strict=True
    ):
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise ArithmeticError(
                f"training diverged: step {step} has the loss {loss} and the gradient norm {norm}; "
                "try a lower learning_rate, a longer warm-up (warmup_steps) or clip_norm=1.0"
            )
        row = {"step": step, "epoch": epoch, "seconds": round(seconds, 3), "learning_rate": rate}
        rows.append(row | {"loss": loss, "grad_norm": norm, "val_loss": None, "val_accuracy": None})
    return rows


def _evaluate_together(model: nn.Module, images: Tensor, labels: Tensor) -> Evaluation:
    """``evaluate``, each process on its part of the images."""
    rank, world = processes.rank(), processes.world()
    sums = torch.zeros(3, dtype=torch.float64, device=_device(model))
    if rank < len(images):
        part = evaluate(model, images[rank::world], labels[rank::world])
        sums += torch.tensor([part.loss * part.count, part.accuracy * part.count, part.count])
    loss, correct, count = processes.total(sums).tolist()
    return Evaluation(loss / count, correct / count, int(count))


def _batch(model: nn.Module, images: Tensor, labels: Tensor, index) -> tuple[Tensor, Tensor]:
    """Some images in float and their labels, on the device of the model."""
    device = _device(model)
    x, y = images[index].to(device), labels[index].to(device)
    return (x if x.is_floating_point() else x.float() / 255), y


def _device(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def _gpus(model: nn.Module) -> list[torch.device]:
    device = _device(model)
    return [device] if device.type == "cuda" else []


def _seed(purpose: str, *numbers: int) -> int:
    """A seed that has nothing to do with those of the neighbouring steps, below 2 ** 63."""
    digest = blake2b(repr((purpose, *numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _generator(purpose: str, *numbers: int) -> torch.Generator:
    return torch.Generator().manual_seed(_seed(purpose, *numbers))


def _check_data(images: Tensor, labels: Tensor, where: str = "") -> None:
    if not isinstance(images, Tensor) or not (
        images.is_floating_point() or images.dtype == torch.uint8
    ):
        kind = images.dtype if isinstance(images, Tensor) else type(images).__name__
        raise TypeError(f"{where}images must be a float or uint8 tensor, got {kind}")
    if len(images) == 0:
        raise ValueError(f"{where}images must not be empty")
    if not isinstance(labels, Tensor) or labels.is_floating_point():
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"{where}labels must be a tensor of class numbers, got {kind}")
    if labels.shape != images.shape[:1]:
        raise ValueError(
            f"{where}labels must have the shape ({len(images)},), one for each image, "
            f"got {tuple(labels.shape)}"
        )
