"""A layer whose code runs in the sandbox, as a module of a model that is trained out here."""

from typing import Any

import torch
from torch import Tensor, nn

from gradebox.process import BrokenError, LostError
from gradebox.session import Session
from gradebox.words import quoted
from vitbook.comparison.layer import StoppedError
from vitbook.models.cost import count_multiplies
from vitcheck.cases import Case

CALLS = ("make", "forward", "backward", "multiplies")
SET_UP = [f"from gradebox.inside.layers import {', '.join(f'contest_{name}' for name in CALLS)}"]


class EntryError(StoppedError):
    """An entry is out; the message says why, in words that a student may read."""


class MachineError(StoppedError):
    """The sandbox ended or does not start: no entry's fault."""


class Remote:
    """The class ``name`` of a file's text, in a worker of its own; makes layers.

    Raises:
        EntryError: The file stops with an error.
    """

    def __init__(self, session: Session, source: str, name: str):
        self.session, self.name = session, name
        try:
            session.fresh()
            said, _ = session.cell(source, session.limits.cell_s)
        except LostError as lost:
            raise EntryError(f"its file: {lost}") from None
        except BrokenError as error:
            raise MachineError(str(error)) from None
        if said:
            raise EntryError(f"its file stops and says {quoted(said, 300)}")

    def ask(self, what: str, *given: Any) -> Any:
        """Call in the sandbox; gives what anybody may have written.

        Raises:
            ValueError: The code in there raised; its words.
            EntryError: It did not end, or ended its process.
        """
        case = Case("case", "", f"contest_{what}", None, 0, args=given)
        try:
            answer = self.session.call(case)
        except LostError as lost:
            raise EntryError(f"a call of it: {lost}") from None
        except BrokenError as error:
            raise MachineError(str(error)) from None
        if answer.error is not None:
            raise ValueError(f"it says {quoted(answer.error, 300)}")
        return answer.value

    def __call__(
        self, *, embed_dim: int, num_tokens: int, grid: tuple, num_heads: int
    ) -> nn.Module:
        """The layer, as ``vitbook.comparison.layer.made`` asks for it."""
        offered = {"embed_dim": embed_dim, "num_tokens": num_tokens}
        return RemoteLayer(self, offered | {"grid": grid, "num_heads": num_heads})


class RemoteLayer(nn.Module):
    """Its parameters are here, and trained here; what it does to tokens happens in the sandbox."""

    def __init__(self, remote: Remote, offered: dict):
        super().__init__()
        self.remote = remote
        self.names: list[str] = []
        match remote.ask("make", remote.name, drawn(), offered):
            case (int(number), dict(found)):
                self.number = number
            case _:
                raise EntryError("its parameters are not what a layer has")
        for i, (name, start) in enumerate(found.items()):
            if not isinstance(start, Tensor) or start.dtype != torch.float32:
                raise EntryError(f"its parameter {quoted(name)} must be of float32")
            self.names.append(name)  # below, the last letters say whether weight decay takes it
            self.register_parameter(f"p{i}_{name.replace('.', '_')}", nn.Parameter(start))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return _InTheSandbox.apply(self, torch.is_grad_enabled(), x, *self.parameters())

    def mixed(self, keep: bool, x: Tensor, weights: tuple) -> Tensor:
        """The call itself, its result held against what it must be."""
        named = dict(zip(self.names, weights, strict=True))
        y = self.remote.ask("forward", self.number, named, x, drawn(), self.training, keep)
        return same_kind(y, x, "its result")

    def gradients(self, given: Tensor, x: Tensor, weights: tuple) -> list[Tensor | None]:
        """Gradients of tokens and weights; None where the layer has none."""
        match self.remote.ask("backward", self.number, given):
            case (first, dict(others)):
                pass
            case _:
                raise EntryError("its gradients are none")
        pairs = [(first, x)] + [
            (others.get(n), w) for n, w in zip(self.names, weights, strict=True)
        ]
        return [None if g is None else same_kind(g, w, "its gradient") for g, w in pairs]


class _InTheSandbox(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layer: RemoteLayer, keep: bool, x: Tensor, *weights: Tensor) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(x, *weights)
        return layer.mixed(keep, x, weights)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple:
        x, *weights = ctx.saved_tensors
        return None, None, *ctx.layer.gradients(given, x, tuple(weights))


def same_kind(got: Any, like: Tensor, what: str) -> Tensor:
    """``got``, where it is a tensor of the same shape and type.

    Raises:
        EntryError: It is not.
    """
    if not isinstance(got, Tensor):
        raise EntryError(f"{what} must be a tensor of {tuple(like.shape)}, it is something else")
    if got.shape != like.shape or got.dtype != like.dtype:
        raise EntryError(
            f"{what} must be of {tuple(like.shape)}, {like.dtype}; it is of {tuple(got.shape)}, "
            f"{got.dtype}"
        )
    return got


def drawn() -> int:
    """A seed for the sandbox, from the random state out here: a training can be repeated."""
    return int(torch.randint(2**31, ()))


def count_with_sandbox(model: nn.Module, images: Tensor) -> int:
    """Multiplications of a model, those in the sandbox as it counts them itself.

    Raises:
        EntryError: It counts something else than a number from 0.
    """
    total = count_multiplies(model, images)
    for layer in model.modules():
        if isinstance(layer, RemoteLayer):
            seen: list[Tensor] = []
            hook = layer.register_forward_pre_hook(
                lambda _, given, seen=seen: seen.append(given[0])
            )
            model(images)
            hook.remove()
            found = layer.remote.ask("multiplies", layer.number, seen[0])
            if not isinstance(found, int) or isinstance(found, bool) or found < 0:
                raise EntryError("its multiplications cannot be counted")
            total += found
    return total
