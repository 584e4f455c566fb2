"""A student's token mixer, called from outside: tokens go in, tokens and gradients come out.

The grader trains the model; in here is the layer alone. It is sent its parameters with each call
and sees tokens and gradients: no image, no label, no seed from which they were drawn.
"""

import sys
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from vitbook.comparison.layer import made, require_offered
from vitbook.models.cost import count_multiplies


@dataclass
class Kept:
    """A layer, and its last call that waits for gradients."""

    layer: nn.Module
    weights: dict[str, nn.Parameter]
    call: tuple[Tensor, Tensor] | None = None


@dataclass
class Layers:
    """All layers of one training, by number."""

    kept: list[Kept] = field(default_factory=list)

    def make(self, name: str, seed: int, offered: dict) -> tuple[int, dict[str, Tensor]]:
        """Build the class of that name: its number, and the start values of its parameters."""
        found = vars(sys.modules["__main__"]).get(name)
        if not callable(found):
            raise ValueError(f"the file has no class {name}")
        require_offered(found, name)
        torch.manual_seed(seed)
        layer = made(found, **offered)
        weights = {n: p for n, p in layer.named_parameters() if p.requires_grad}
        self.kept.append(Kept(layer, weights))
        return len(self.kept) - 1, dict(weights)

    def forward(
        self, number: int, weights: dict, x: Tensor, seed: int, training: bool, keep: bool
    ) -> Tensor:
        """Tokens (B, N, D) -> what the layer gives, with these weights."""
        one = self.kept[number]
        with torch.no_grad():
            for name, weight in weights.items():
                one.weights[name].copy_(weight)
        one.layer.train(training)
        torch.manual_seed(seed)
        with torch.set_grad_enabled(keep):
            y = one.layer(x.requires_grad_(keep))
        one.call = (x, y) if keep else None
        return y

    def backward(self, number: int, given: Tensor) -> tuple[Tensor | None, dict]:
        """Gradient of the last call's result -> gradients of its tokens and of the weights."""
        one = self.kept[number]
        if one.call is None or not one.call[1].requires_grad:
            return None, {}
        x, y = one.call
        one.call = None
        wanted = [x, *one.weights.values()]
        first, *others = torch.autograd.grad(y, wanted, given, allow_unused=True)
        return first, dict(zip(one.weights, others, strict=True))

    def multiplies(self, number: int, x: Tensor) -> int:
        """Multiplications of a call, as far as they can be counted."""
        return count_multiplies(self.kept[number].layer, x)


_layers = Layers()
contest_make, contest_forward = _layers.make, _layers.forward
contest_backward, contest_multiplies = _layers.backward, _layers.multiplies
