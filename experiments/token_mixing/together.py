"""Many trainings of one model side by side, as one: each with its own start and its own batches.

The updates are those of `vitbook.training.train`. All weights lie in one matrix, a row for each
training, so that a step is a handful of operations; on an accelerator it is recorded once and
repeated.
"""

import os
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitbook.data import ImageSet
from vitbook.training import TrainConfig
from vitbook.training.randomness import epoch_order
from vitbook.training.schedule import parameter_groups

DEVICE = os.environ.get("VITBOOK_DEVICE", "cpu")
EPS = 1e-8  # of AdamW
WARM = 3  # updates before one is recorded


class Together:
    """The trainings, one update at a time.

    Args:
        models: of one kind, before training, with outputs (B, N, K); no dropout.
        known: images (n, C, H, W) and labels (n, N).
        config: the recipe of all; its seed is not read.
        seeds: of the order of the batches, one for each model.
        device: where they are trained.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        known: ImageSet,
        config: TrainConfig,
        seeds: Sequence[int],
        device: str = "cpu",
    ) -> None:
        self.config, self.seeds, self.device = config, seeds, device
        self.images, self.labels = (part.to(device) for part in known)
        self.model = models[0].to(device)
        weights, self.buffers = stack_module_state([model.to(device) for model in models])
        self.shapes = {name: one.shape[1:] for name, one in weights.items()}
        self.weights = torch.cat([one.detach().flatten(1) for one in weights.values()], dim=1)
        self.first, self.second = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.decay = self._decay()
        self.order = torch.zeros(len(models), config.batch_size, dtype=torch.long, device=device)
        self.rate, self.bias1, self.bias2 = (torch.zeros((), device=device) for _ in range(3))
        self.losses = torch.zeros(len(models), device=device)
        self.done = 0
        self._orders: list[Tensor] = []
        self._update: Callable[[], None] = self._once
        self.model.train()
        if device != "cpu":
            torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.deterministic = True
            self._record()

    def update(self) -> Tensor:
        """One update of each: the losses (S,), before it."""
        config, (epoch, i) = self.config, divmod(self.done, len(self.images) // self._size)
        if i == 0:
            n = len(self.images)
            self._orders = [epoch_order(n, seed, epoch) for seed in self.seeds]
        batch = slice(i * self._size, (i + 1) * self._size)
        self.order.copy_(torch.stack([order[batch] for order in self._orders]))
        self.done += 1
        self.rate.fill_(config.learning_rate * min(1, self.done / max(1, config.warmup_steps)))
        self.bias1.fill_(1 - config.betas[0] ** self.done)
        self.bias2.fill_(1 - config.betas[1] ** self.done)
        self._update()
        return self.losses

    @torch.no_grad()
    def answered(self, asked: ImageSet) -> tuple[Tensor, Tensor]:
        """Cross-entropy in nats and share of right answers over all patches, each (S,)."""
        self.model.eval()
        images, labels = (part.to(self.device) for part in asked)
        logits = vmap(self._call, in_dims=(0, 0, None))(self._named(), self.buffers, images)
        self.model.train()
        y = labels.expand(len(self.seeds), *labels.shape).flatten()
        losses = F.cross_entropy(logits.flatten(0, -2), y, reduction="none")
        right = logits.argmax(dim=-1) == labels
        return losses.unflatten(0, (len(self.seeds), -1)).mean(1), right.double().mean((1, 2))

    @property
    def _size(self) -> int:
        return self.config.batch_size

    def _call(self, weights: dict, buffers: dict, images: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):  # vmap knows no other
            return functional_call(self.model, (weights, buffers), (images,))

    def _named(self, weights: Tensor | None = None) -> dict[str, Tensor]:
        """Rows of numbers (S, P) -> a tensor (S, ...) for each name of the model."""
        weights = self.weights if weights is None else weights
        parts = weights.split([shape.numel() for shape in self.shapes.values()], dim=1)
        pairs = zip(self.shapes.items(), parts, strict=True)
        return {name: part.unflatten(1, shape or (1,)) for (name, shape), part in pairs}

    def _decay(self) -> Tensor:
        """The weight decay of each number (P,)."""
        of: dict[int, float] = {}
        for group in parameter_groups(self.model, self.config.weight_decay):
            of |= {id(one): group["weight_decay"] for one in group["params"]}
        named = dict(self.model.named_parameters())
        rows = [torch.full((named[name].numel(),), of[id(named[name])]) for name in self.shapes]
        return torch.cat(rows).to(self.device)

    def _once(self) -> None:
        """An update with the batch and the rate that lie ready.

        AdamW: Loshchilov and Hutter 2019, algorithm 2, with the decay times the rate.
        """
        config, weights = self.config, self.weights.detach().requires_grad_()
        images, labels = self.images[self.order], self.labels[self.order]  # (S, B, ...)
        logits = vmap(self._call)(self._named(weights), self.buffers, images)  # (S, B, N, K)
        losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
        losses = losses.unflatten(0, (len(self.seeds), -1)).mean(1)
        (gradient,) = torch.autograd.grad(losses.sum(), weights)
        if config.clip_norm is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (config.clip_norm / (norm + 1e-6)).clamp(max=1)
        with torch.no_grad():
            self.losses.copy_(losses)
            self.weights.mul_(1 - self.rate * self.decay)
            self.first.lerp_(gradient, 1 - config.betas[0])
            self.second.mul_(config.betas[1]).addcmul_(
                gradient, gradient, value=1 - config.betas[1]
            )
            size = self.second.sqrt() / self.bias2.sqrt() + EPS
            self.weights.sub_(self.rate / self.bias1 * self.first / size)

    def _record(self) -> None:
        """Record an update; what the trials of it changed is put back."""
        changed = [self.weights, self.first, self.second, *self.buffers.values()]
        before = [one.clone() for one in changed]
        self.bias1.fill_(1)
        self.bias2.fill_(1)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                self._once()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._once()
        for one, was in zip(changed, before, strict=True):
            one.copy_(was)
        self._update = graph.replay
