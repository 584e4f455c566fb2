"""The loop: an update, and a run made of updates."""

import math
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from vitbook import require
from vitbook.data.room import Images
from vitbook.training import processes
from vitbook.training.batches import batch, device_of, require_data
from vitbook.training.config import TrainConfig
from vitbook.training.evaluation import evaluate_together
from vitbook.training.randomness import epoch_order, generator, seed_of
from vitbook.training.run_folder import RunFolder
from vitbook.training.schedule import parameter_groups, warmup_cosine

FLUSH_EVERY = 50  # steps between looks at the losses: each look waits for an accelerator


def update(
    model: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    labels: Tensor,
    config: TrainConfig,
    loss_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    micro_batch: int | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of gradient descent on one batch.

    Args:
        model: Images (B, C, H, W) -> logits (B, K).
        optimizer: Its learning rate is already that of the step.
        images: (B, C, H, W) in float.
        labels: Class numbers (B,), or what the loss_function takes, (B, ...).
        config: Label smoothing, precision and the largest norm are read from it.
        loss_function: (outputs, labels) -> scalar, a mean over images, instead of cross-entropy.
        micro_batch: Images that go through the model at once; by default, all of them. The
            gradients are summed to that of the whole batch.

    Returns:
        The loss and the norm of the gradient before clipping, both ().
    """
    optimizer.zero_grad()
    losses = []
    size = micro_batch or len(images)
    for x, y in zip(images.split(size), labels.split(size), strict=True):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=config.precision == "bf16"):
            logits = model(x)  # (B, K)
            if loss_function is None:
                loss = F.cross_entropy(logits, y, label_smoothing=config.label_smoothing)
            else:
                loss = loss_function(logits, y)
        loss = loss * (len(x) / len(images))
        loss.backward()
        losses.append(loss.detach())
    loss = torch.stack(losses).sum()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    grad_norm = nn.utils.clip_grad_norm_(parameters, config.clip_norm or math.inf)
    optimizer.step()
    return loss, grad_norm


def train(
    model: nn.Module,
    images: Images,
    labels: Tensor,
    config: TrainConfig,
    *,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    loss_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    schedule: Callable[[int, int, int], float] = warmup_cosine,
    evaluate_on: tuple[Images, Tensor] | None = None,
    evaluate_every: int | None = None,
    micro_batch: int | None = None,
    folder: RunFolder | None = None,
    progress: bool | None = None,
    report: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Train a model in place with AdamW, warm-up and cosine; leave it in evaluation mode.

    Args:
        model: Images (B, C, H, W) -> logits (B, K). It is trained on the device it is on.
        images: (n, C, H, W), float, or uint8 that stands for 0 ... 1.
        labels: Class numbers (n,); with a loss_function also other targets (n, ...), such as
            numbers to be predicted or a yes or no for each of several labels.
        config: The recipe.
        augment: (images (B, C, H, W) in float, generator) -> images; whatever is random in it
            comes from the generator.
        loss_function: (outputs, labels) -> scalar, a mean over images, instead of cross-entropy.
        schedule: (step, total_steps, warmup_steps) -> the fraction of the peak learning rate.
        evaluate_on: Images and class numbers to evaluate on while training. They choose nothing.
        evaluate_every: Steps between evaluations; by default, after each epoch. The last step is
            always evaluated.
        micro_batch: Images that go through the model at once, for a large batch in little memory;
            by default, all. The updates are those of the whole batch, but for rounding, for
            dropout, which is drawn for each part, and for norms over the batch.
        folder: Where metrics and checkpoints go, and whether the run goes on from there.
        progress: Whether a bar shows the time that is left; by default, on a terminal.
        report: Called with the row of each evaluation.

    Returns:
        One dict for each step: step and epoch (from 1), seconds, learning_rate, loss, grad_norm
        (before clipping), and val_loss and val_accuracy, None where nothing was evaluated.

    Raises:
        TypeError, ValueError: An argument is not what it has to be, or a checkpoint does not fit.
        ArithmeticError: The loss is no longer finite.
        OSError: The folder cannot be written; the last checkpoint stays whole.
    """
    require_data(images, labels, classes=loss_function is None)
    if evaluate_on is not None:
        require_data(*evaluate_on, "evaluate_on: ")
    require_batches(config, len(images))
    per_epoch, total = len(images) // config.batch_size, config.total_steps(len(images))
    evaluate_every = per_epoch if evaluate_every is None else evaluate_every
    require.whole("evaluate_every", evaluate_every)
    if micro_batch is not None:
        require.whole("micro_batch", micro_batch)

    optimizer = torch.optim.AdamW(parameter_groups(model, config.weight_decay), betas=config.betas)
    history: list[dict] = []
    first, seconds = 0, 0.0
    if folder is not None:
        history, first, seconds = folder.start(model, optimizer, config, images, labels)
    save_every = (folder and folder.checkpoint_every) or per_epoch
    net: Callable[[Tensor], Tensor] = processes.replicate(model)
    net = torch.compile(net) if config.compile else net
    model.train()
    bar = tqdm(total=total, initial=first, disable=None if progress is None else not progress)
    log = _Log(
        model, total, history, seconds, bar, evaluate_on, evaluate_every, folder, save_every, report
    )
    with torch.random.fork_rng(_gpus(model)), bar:
        for step, epoch, x, y in _batches(model, images, labels, config, augment, first):
            torch.manual_seed(seed_of("dropout", config.seed, step, processes.rank()))
            rate = config.learning_rate * schedule(step, total, config.warmup_steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss, grad_norm = update(net, optimizer, x, y, config, loss_function, micro_batch)
            log.add(step, epoch, rate, loss, grad_norm)
    model.eval()
    return log.history


def _batches(
    model: nn.Module,
    images: Images,
    labels: Tensor,
    config: TrainConfig,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None,
    first: int,
) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Step, epoch, images and labels of each update that is left; this process's part of them."""
    b, rank, world = config.batch_size, processes.rank(), processes.world()
    share = slice(rank * b // world, (rank + 1) * b // world)
    for step in range(first, config.total_steps(len(images))):
        epoch, i = divmod(step, len(images) // b)
        if i == 0 or step == first:
            order = epoch_order(len(images), config.seed, epoch)
        x, y = batch(model, images, labels, order[i * b : (i + 1) * b])  # (b, C, H, W), (b,)
        if augment is not None:  # of the whole batch, so that each process draws the same
            x = augment(x, generator("augment", config.seed, step))
        yield step, epoch, x[share], y[share]


class _Log:
    """What is written, and when: a row for each step, now and then an evaluation, a checkpoint."""

    def __init__(
        self,
        model: nn.Module,
        total: int,
        history: list[dict],
        seconds: float,
        bar: tqdm,
        evaluate_on: tuple[Images, Tensor] | None,
        evaluate_every: int,
        folder: RunFolder | None,
        save_every: int,
        report: Callable[[dict], None] | None,
    ):
        self.model, self.total, self.bar, self.report = model, total, bar, report
        self.evaluate_on, self.evaluate_every = evaluate_on, evaluate_every
        self.folder, self.save_every = folder, save_every
        self.history = history
        self.pending: list[tuple] = []  # steps whose losses were not looked at
        self.began = time.perf_counter() - seconds

    def add(self, step: int, epoch: int, rate: float, loss: Tensor, grad_norm: Tensor) -> None:
        """Note an update, and do what is due after it."""
        done, seconds = step + 1, time.perf_counter() - self.began
        self.pending.append((done, epoch + 1, seconds, rate, loss, grad_norm))
        last = done == self.total
        evaluates = self.evaluate_on is not None and (last or done % self.evaluate_every == 0)
        saves = self.folder is not None and (last or done % self.save_every == 0)
        if evaluates or saves or last or len(self.pending) == FLUSH_EVERY:
            self._flush(evaluates)
        if saves and self.folder is not None:
            self.folder.save(done, seconds)
        self.bar.update()

    def _flush(self, evaluates: bool) -> None:
        rows, self.pending = _rows(self.pending), []
        if evaluates and self.evaluate_on is not None:
            result = evaluate_together(self.model, *self.evaluate_on)
            rows[-1] |= {"val_loss": result.loss, "val_accuracy": result.accuracy}
            if self.report is not None:
                self.report(rows[-1])
        if self.folder is not None:
            self.folder.append(rows)
        self.history += rows
        self.bar.set_postfix_str(f"loss {rows[-1]['loss']:.3f}", refresh=False)


def require_batches(config: TrainConfig, num_images: int) -> None:
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {type(config).__name__}")
    b, world = config.batch_size, processes.world()
    if b > num_images:
        raise ValueError(f"batch_size must be at most the number of images, {num_images}, got {b}")
    if b % world:
        raise ValueError(f"batch_size must be a multiple of the {world} processes, got {b}")


def _rows(pending: list[tuple]) -> list[dict]:
    """One dict for each step; losses are averaged over the processes."""
    losses, norms = (torch.stack([entry[i] for entry in pending]).double() for i in (4, 5))
    means = (processes.total(losses) / processes.world()).tolist()
    rows = []
    for (step, epoch, seconds, rate, _, _), loss, norm in zip(
        pending, means, norms.tolist(), strict=True
    ):
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise ArithmeticError(
                f"training diverged: step {step} has the loss {loss} and the gradient norm {norm}; "
                "try a lower learning_rate, a longer warm-up (warmup_steps) or clip_norm=1.0"
            )
        row = {"step": step, "epoch": epoch, "seconds": round(seconds, 3), "learning_rate": rate}
        rows.append(row | {"loss": loss, "grad_norm": norm, "val_loss": None, "val_accuracy": None})
    return rows


def _gpus(model: nn.Module) -> list[torch.device]:
    device = device_of(model)
    return [device] if device.type == "cuda" else []
