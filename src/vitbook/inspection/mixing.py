"""What a model does to its tokens beside the attention that was seen.

The model runs a second time, on one image, and everything is kept. Then its parts run again: one
token is disturbed, and each product of weights with values gives what it gave before. What moves
other tokens now is no attention of the maps, whatever its class is called.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitbook.inspection.watching import Call, Watch

SAME = 0.05  # how far tokens of two runs may lie apart, by rounding, against the largest
FUSED = {F.scaled_dot_product_attention, F.multi_head_attention_forward}
STILL = 1e-4  # how far a token may move, against the one that was disturbed


@dataclass
class Node:
    """A call of a module that was given tokens (B, N, D) or (N, B, D), and what it gave."""

    name: str
    module: nn.Module
    x: Tensor
    start: int  # of its products among those of the model
    rest: tuple = ()
    kwargs: dict = field(default_factory=dict)
    out: Tensor | None = None
    products: list[Any] = field(default_factory=list)
    inner: list["Node"] = field(default_factory=list)


class Trace(Watch):
    """Keeps what each module was given and gave, and each product of weights with values.

    Attributes:
        nodes: The outermost modules that were given tokens; within them, the inner ones.
        entered: All of them, in order.
        products: What each product of weights with values gave, in order.
    """

    def __init__(self, model: nn.Module):
        super().__init__(model)
        self.nodes: list[Node] = []
        self.entered: list[Node] = []
        self._open: list[tuple[Call, Node | None]] = []
        self.products: list[Any] = []

    def _enter(self, module: nn.Module, args: tuple) -> None:
        before = len(self._calls)
        super()._enter(module, args)
        if len(self._calls) == before:
            return
        call = self._calls[-1]
        call.native = False  # its parts are wanted
        node = None
        if call.x is not None and _takes_tokens(call):
            node = Node(call.name, module, call.x.detach().clone(), len(self.products), args[1:])
            self.entered.append(node)
        self._open.append((call, node))

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        before = len(self._calls)
        given = super()._leave(module, args, *rest)
        if len(self._calls) == before:
            return given
        _, node = self._open.pop()
        if node is not None and len(rest) == 2:
            node.kwargs, out = rest
            node.out = _first(_copy(out))
            node.products = self.products[node.start :]
            around = [outer for _, outer in self._open if outer is not None]
            (around[-1].inner if around else self.nodes).append(node)
        return given

    def _attended(self, out: Any, weights: Any, holds: Any, *of: Any) -> Any:
        self.products.append(_copy(out))
        return super()._attended(out, lambda: torch.empty(0), None, *of)  # the map is known

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        pass

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        if not call.multiplied:  # it attends in a way of its own
            self.products.append(_copy(out))
        return super()._said(call, args, kwargs, out)


class Held(Watch):
    """All attention gives what it gave before."""

    def __init__(self, model: nn.Module, products: list[Any]):
        super().__init__(model, verify=False)
        self._products = iter(products)

    def _enter(self, module: nn.Module, args: tuple) -> None:
        super()._enter(module, args)
        if self._calls:
            self._calls[-1].native = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in FUSED and self._calls:
            return self._attended(None)  # it need not run
        return super().__torch_function__(func, types, args, kwargs)

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        pass

    def _attended(self, out: Any, *how: Any) -> Any:
        own = next((call for call in self._calls if call.own), None)
        if own:
            own.multiplied += 1
        return self._before()

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        return out if call.multiplied else self._before()

    def _before(self) -> Any:
        product = next(self._products, None)
        if product is None:
            raise ValueError("it attends more often then")
        return _copy(product)


class Disturbed(Held):
    """The whole model, held, with one token disturbed wherever tokens are given to a module.

    Attributes:
        moved: Whether another token came to a module, or left it, changed.
    """

    def __init__(self, model: nn.Module, trace: Trace, N: int, token: int):
        super().__init__(model, trace.products)
        self.moved = False
        self._entered = iter(trace.entered)
        self._open: list[Node | None] = []
        self._N, self._token = N, token

    def _enter(self, module: nn.Module, args: tuple) -> Any:
        before = len(self._calls)
        super()._enter(module, args)
        if len(self._calls) == before:
            return None
        node = next(self._entered, None) if _takes_tokens(self._calls[-1]) else None
        self._open.append(node)
        if node is None or node.x.shape[1] != self._N or args[0].shape != node.x.shape:
            return None
        self.moved |= _others_moved(args[0], node.x, self._token)
        return (_disturbed(node.x, self._token), *args[1:])

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        before = len(self._calls)
        given = super()._leave(module, args, *rest)
        if len(self._calls) == before:
            return given
        node, out = self._open.pop(), rest[-1] if rest and given is None else given
        out = _first(out)
        if node is None or out is None or node.out is None or out.shape != node.out.shape:
            return given
        if out.ndim == 3 and out.shape[1] == self._N == node.x.shape[1]:
            self.moved |= _others_moved(out, node.out, self._token)
        return given


def _takes_tokens(call: Call) -> bool:
    if type(call.module) is nn.LayerNorm and len(call.module.normalized_shape) == 1:
        return False  # of each token alone
    return call.x is not None and call.x.ndim == 3 and call.x.is_floating_point()


def drawn(first: dict[str, Tensor], again: dict[str, Tensor]) -> list[str]:
    """The layers that were given other tokens for the same image."""

    def differ(x: Tensor, y: Tensor | None) -> bool:
        if y is None or x.shape != y.shape:
            return True
        return bool(((x - y).abs() > SAME * x.abs().amax()).any())  # nan is as good as any

    return [name for name, x in first.items() if differ(x, again.get(name))]


def mixers(model: nn.Module, images: Tensor, trace: Trace, tokens: set[int]) -> list[str]:
    """What moves tokens by more than the attention that was seen: the innermost modules.

    The whole model is tried first; where nothing moves, only what has other tokens is tried.
    """
    (N,) = tokens
    moved = False
    for token in (0, N // 2):
        with (run := Disturbed(model, trace, N, token)):
            model(images)
        moved = moved or run.moved
    tried = trace.nodes if moved else [node for node in trace.nodes if node.x.shape[1] != N]
    found = [name for node in tried for name in _mixers(trace, node, tokens)]
    return list(dict.fromkeys(found)) or [f"{type(model).__name__}.forward"] * moved


def _mixers(trace: Trace, node: Node, tokens: set[int]) -> list[str]:
    inner = [name for part in node.inner for name in _mixers(trace, part, tokens)]
    return inner or ([node.name] if _mixes(trace, node, tokens) else [])


def _mixes(trace: Trace, node: Node, tokens: set[int]) -> bool | None:
    """Does a module move other tokens than the one that is disturbed? None: it cannot be told."""
    x, out = node.x, node.out
    axis = 0 if x.shape[0] in tokens and x.shape[1] not in tokens else 1  # (N, B, D)
    known = x.shape[axis] in tokens
    if x.shape[axis] == 1 or not (known or len(x) == 1):
        return None  # one token, or windows or heads
    if out is None or out.ndim != 3 or out.shape[:2] != x.shape[:2]:
        return None
    if not out.isfinite().all():
        return None

    def run(changed: Tensor) -> Tensor | None:
        with Held(node.module, node.products):
            return _first(node.module(changed, *node.rest, **node.kwargs))

    if known:
        return _moves(run, x, out, axis)
    # perhaps channels stand here; what mixes moves both
    wide = out.shape[2] != x.shape[2] or _moves(run, x, out, 2)
    return wide and _moves(run, x, out, axis)


def _moves(run: Callable[[Tensor], Tensor | None], x: Tensor, out: Tensor, axis: int) -> bool:
    for token in (0, x.shape[axis] // 2):
        after = run(_disturbed(x, token, axis))
        if after is None or _others_moved(after, out, token, axis):
            return True
    return False


def _disturbed(x: Tensor, token: int, axis: int = 1) -> Tensor:
    x = x.clone()
    one = x.select(axis, token)
    one += (one.std() + 1e-3) * torch.randn_like(one)
    return x


def _others_moved(after: Tensor, before: Tensor, token: int, axis: int = 1) -> bool:
    after, before = after.transpose(0, axis), before.transpose(0, axis)
    parts = (slice(token), slice(token + 1, None))
    if all(torch.equal(after[part], before[part]) for part in parts):
        return False
    moved = (after - before).abs()
    most = STILL * moved[token].amax()
    still = all(bool((moved[part] <= most).all()) for part in parts)  # nan is a move
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
