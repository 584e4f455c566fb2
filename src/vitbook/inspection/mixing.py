"""What a model does to its tokens beside the attention that was seen.

The model runs a second time, on one image, and everything is kept. Then it runs again with half of
its tokens disturbed: wherever a module is given tokens, and in each product of weights with values,
which else gives what it gave before. What moves other tokens now is no attention of the maps,
whatever its class is called; and the values of each product have to move, token by token.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook.inspection.watching import ROWS, Call, Watch, is_part
from vitbook.inspection.weights import fused_values

SAME = 0.05  # how far the maps of two runs may lie apart, by rounding, against the largest
FUSED = {F.scaled_dot_product_attention, F.multi_head_attention_forward}
STILL = 1e-4  # how far a token may move, against those that were disturbed
MOVES = (
    "moves tokens when another one is disturbed and all attention is held still, and shows no map "
    "of it"
)
MIXED = (
    "multiplies its map with values that move when the tokens of others are disturbed: they were "
    "mixed, or put in another order"
)
OTHERS = (
    "multiplies its map with values that do not follow the tokens before, one each: slots, "
    "channels, or tokens of something else"
)


@dataclass
class Node:
    """A call of a module that was given tokens (B, N, D) or (N, B, D), and what it gave."""

    x: Tensor
    out: Tensor | None = None


@dataclass
class Product:
    """A product of weights with values, and which axes of the two are tokens."""

    out: Any
    values: Tensor | None = None
    axes: tuple[int, int] = ROWS


class Trace(Watch):
    """Keeps what each module was given and gave, and each product of weights with values.

    Attributes:
        entered: The modules that were given tokens, in order.
        products: The products, in order.
    """

    def __init__(self, model: nn.Module):
        super().__init__(model, verify=False)
        self.entered: list[Node] = []
        self._open: list[Node | None] = []
        self.products: list[Product] = []

    def _enter(self, module: nn.Module, args: tuple) -> None:
        before = len(self._calls)
        super()._enter(module, args)
        if len(self._calls) == before:
            return
        call = self._calls[-1]
        call.native = False  # its parts are wanted
        node = None
        if call.x is not None and _takes_tokens(call):
            node = Node(call.x.detach().clone())
            self.entered.append(node)
        self._open.append(node)

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        before = len(self._calls)
        given = super()._leave(module, args, *rest)
        if len(self._calls) == before:
            return given
        node = self._open.pop()
        if node is not None and len(rest) == 2:
            node.out = _first(_copy(rest[-1]))
        return given

    def _attended(
        self,
        out: Any,
        weights: Any,
        holds: Any,
        values: Any = None,
        call: Any = None,
        axes: tuple[int, int] = ROWS,
    ) -> Any:
        self.products.append(Product(_copy(out), _copy(values), axes))
        return super()._attended(out, weights, None, values, call, axes)

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        pass

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        if not call.multiplied:  # it attends in a way of its own
            self.products.append(Product(_copy(out)))
        return super()._said(call, args, kwargs, out)


class Disturbed(Watch):
    """The whole model, its attention held, with a group of its tokens disturbed everywhere.

    Attributes:
        found: The layer that is wrong -> what it does.

    Args:
        model: Any module.
        trace: Its run before.
        group: Which of the N tokens are disturbed.
        batch: How many images there may be.
    """

    def __init__(self, model: nn.Module, trace: Trace, group: Tensor, batch: set[int]):
        super().__init__(model, verify=False)
        self.found: dict[str, str] = {}
        self._entered, self._products = iter(trace.entered), iter(trace.products)
        self._open: list[Node | None] = []
        self._group, self._batch = group, batch
        self._fed = False  # something was disturbed

    def _enter(self, module: nn.Module, args: tuple) -> Any:
        before = len(self._calls)
        super()._enter(module, args)
        if len(self._calls) == before:
            return None
        call = self._calls[-1]
        call.native = False
        node = next(self._entered, None) if _takes_tokens(call) else None
        self._open.append(node)
        if node is None or call.x is None or call.x.shape != node.x.shape:
            return None
        axis = self._axis(node.x)
        if axis is None:
            return None
        around = self._calls[-2].name if before else ""
        if node.x.shape[2] != len(self._group):  # else perhaps scores
            self._look(around, node.x, call.x, axis)
        self._fed = True
        return (self._disturbed(node.x, axis), *args[1:])

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        before = len(self._calls)
        name = self._calls[-1].name if before else ""
        given = super()._leave(module, args, *rest)
        if len(self._calls) == before:
            return given
        node, out = self._open.pop(), rest[-1] if rest and given is None else given
        out = _first(out)
        if node is None or out is None or node.out is None or out.shape != node.out.shape:
            return given
        axis = self._axis(node.x)
        if axis is not None and out.ndim == 3 and out.shape[:2] == node.x.shape[:2]:
            self._look(name, node.out, out, axis)
        return given

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in FUSED and self._calls and not self._away:  # it need not run
            values, axes = fused_values(func, *args, **(kwargs or {}))
            return self._attended(None, None, None, values, self._layer(), axes)
        return super().__torch_function__(func, types, args, kwargs)

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        pass

    def _attended(
        self,
        out: Any,
        weights: Any,
        holds: Any,
        values: Any = None,
        call: Any = None,
        axes: tuple[int, int] = ROWS,
    ) -> Any:
        call.multiplied += call.own
        product = self._next()
        self._follow(call.name, product, values)
        return self._held(product, axes[1])

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        return out if call.multiplied else self._held(self._next(), -2)

    def _next(self) -> Product:
        product = next(self._products, None)
        if product is None:
            raise ValueError("it attends more often then")
        return product

    def _held(self, product: Product, axis: int) -> Any:
        """What a product gave before, but for the tokens that are disturbed."""
        self._fed = True
        out = product.out
        if isinstance(out, tuple):
            return (self._disturbed(out[0], axis), *_copy(out[1:]))
        return self._disturbed(out, axis)

    def _follow(self, name: str, product: Product, values: Tensor) -> None:
        """Do the values of all disturbed tokens move, and no others?"""
        before, axis = product.values, product.axes[0]
        if before is None or not self._fed:
            return
        if before.shape != values.shape or before.shape[axis] != len(self._group):
            self.found.setdefault(name, OTHERS)
            return
        moved = _moved(values, before, axis)
        most = moved[self._group].amax()
        if _others_move(moved, self._group, before):
            self.found.setdefault(name, MIXED)
        elif most == 0 or (moved[self._group] <= 1e-6 * most).any():
            self.found.setdefault(name, OTHERS)

    def _look(self, name: str, before: Tensor, after: Tensor, axis: int) -> None:
        if _others_move(_moved(after, before, axis), self._group, before):
            self.found[name] = MOVES

    def _axis(self, x: Tensor) -> int | None:
        """Which axis of (B, N, D) or (N, B, D) is that of the tokens."""
        N = len(self._group)
        return next((i for i in (1, 0) if x.shape[i] == N and x.shape[1 - i] in self._batch), None)

    def _disturbed(self, x: Tensor, axis: int) -> Tensor:
        x = x.clone()
        if x.shape[axis] == len(self._group):
            some = x.movedim(axis, 0)
            rows = some[self._group]
            some[self._group] = rows + (rows.std() + 1e-3) * torch.randn_like(rows)
        return x


def _takes_tokens(call: Call) -> bool:
    if type(call.module) is nn.LayerNorm and len(call.module.normalized_shape) == 1:
        return False  # of each token alone
    return call.x is not None and call.x.ndim == 3 and call.x.is_floating_point()


def drawn(first: dict[str, Tensor], again: dict[str, Tensor]) -> list[str]:
    """The layers that have another map of the same image."""

    def differ(x: Tensor, y: Tensor | None) -> bool:
        if y is None or x.numel() != y.numel():
            return True
        return bool(((x - y.view_as(x)).abs() > SAME * x.abs().amax()).any())  # nan is any

    return [name for name, x in first.items() if differ(x, again.get(name))]


def mixers(model: nn.Module, image: Tensor, trace: Trace, N: int) -> dict[str, str]:
    """What moves tokens by more than the attention that was seen: innermost layer -> how."""
    batch = {len(image), image.shape[1]} if image.ndim == 3 else {len(image)}
    found: dict[str, str] = {}
    for group in groups(N):
        with (run := Disturbed(model, trace, group.to(image.device), batch)):
            model(image)
        found = run.found | found
    moves = [name for name, how in found.items() if how == MOVES]
    whole = {name: how for name, how in found.items() if how == MOVES or not moves}
    return {
        name or f"{type(model).__name__}.forward": how
        for name, how in whole.items()
        if not any(is_part(other, of=name) for other in whole if other != name)
    }


def groups(N: int) -> Iterator[Tensor]:
    """Some halves of N tokens; of any two tokens, some half holds the first without the second.

    Each token is in half of the groups, no two in the same: so no fewer groups do (Sperner).
    """
    count = next(k for k in range(2, N + 2) if math.comb(k, k // 2) >= N)
    held = torch.zeros(N, count, dtype=torch.bool)
    for row, those in zip(held, combinations(range(count), count // 2), strict=False):
        row[list(those)] = True
    yield from held.T


def _moved(after: Tensor, before: Tensor, axis: int) -> Tensor:
    """How far each token moved (N,)."""
    return (after - before).detach().abs().movedim(axis, 0).flatten(1).amax(dim=1)


def _others_move(moved: Tensor, group: Tensor, before: Tensor) -> bool:
    rounding = 16 * torch.finfo(before.dtype).eps * before.abs().amax()
    most = (STILL * moved[group].amax()).maximum(rounding)
    still = bool((moved[~group] <= most).all())  # nan is a move
    return not still and bool(before.isfinite().all())


def _copy(out: Any) -> Any:
    """What a model may change in place without changing what is kept."""
    if isinstance(out, (tuple, list)):
        return type(out)(map(_copy, out)) if type(out) in (tuple, list) else out
    return out.detach().clone() if isinstance(out, Tensor) else out


def _first(out: Any) -> Tensor | None:
    """The tokens among what a module gave."""
    found = (
        out.values() if isinstance(out, dict) else out if isinstance(out, (tuple, list)) else [out]
    )
    return next((x for x in found if isinstance(x, Tensor)), None)
