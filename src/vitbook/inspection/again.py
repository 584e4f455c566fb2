"""Run a model again on the same image, its attention held, its tokens disturbed.

The first time, what its modules were given and what its products of weights with values gave is
kept. Then both come again, each token as it was or disturbed. :mod:`~vitbook.inspection.mixing`
compares the runs.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from vitbook.inspection.recorder import ROWS, Call, Softmax, Watch, is_part
from vitbook.inspection.weights import as_used, fused_scores, fused_values, on_the_side

FUSED = {F.scaled_dot_product_attention, F.multi_head_attention_forward}
UNWATCHED = torch._C.DisableTorchFunction
SIGNS = torch.tensor([0.0, 1.0, -1.0])  # of the noise, way by way
NORMS = (nn.LayerNorm, nn.RMSNorm)
CHANNELS_FIRST = (nn.modules.conv._ConvNd, nn.modules.batchnorm._NormBase, nn.GroupNorm)
NUMBERS = 8  # by which a token is known again
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
    "channels, or tokens of something else (of another pass, where it runs again)"
)
ZEROS = "multiplies its map with values that are all zero, whatever its tokens are"
ASKED = (
    "has queries that are not the tokens that it takes keys and values from, but as many, or "
    "scores that depend on more tokens than the two, or heads that are windows or groups of tokens"
)
PADDED = (
    "multiplies its map with values that are the same for a quarter of its tokens or more: "
    "padding, or tokens that were added and are all alike"
)
REPLACED = "is given tokens of which some follow none that the layers before left"
UNCHAINED = (
    "multiplies its map with values that do not follow what the block before gave: the two are no "
    "chain (another tower, branch or pass, older tokens, or what a block gave is not handed on)"
)
TURNED = "has its tokens in another order than the layer before"
APART = (
    "has a map of as many rows as no module gives or is given tokens, so that nobody can tell "
    "whether they are tokens: channels, or what a function makes"
)
THROWN = "throws away, or replaces, rows or heads of what its map gave"
Place = tuple[str, str, int]  # a layer, what of it, and the how manieth time


@dataclass
class Passed:
    """Tokens that passed a place, and what is wrong where they depend on each other."""

    layer: str
    why: str
    numbers: Tensor  # (N, 8)
    eps: float
    fed: bool = False  # they are values that have to follow
    alone: bool = False  # that they are those of another layer is no reason to stay


@dataclass
class Kept:
    """What the first run leaves to the others.

    Attributes:
        given: A module -> the tokens that it was given; a product, or a block -> what it gave.
        alone: The modules all of whose tokens come by one argument.
        made: Modules that gave tokens, or patches, before any was given N -> how many. They may
            be half of the tokens, as others are added, to twice as many, as some are left out.
        rows: A layer and its how manieth product -> which axis is that of its queries.
        alike: Some module was given N rows in another form.
        tokens: Some module made tokens, and no grid of patches.
        missed: Layers that a rollout does not see as they are -> why, where that was asked.
    """

    given: dict[Place, Any] = field(default_factory=dict)
    alone: set[Place] = field(default_factory=set)
    made: dict[Place, int] = field(default_factory=dict)
    rows: dict[tuple[str, int], int | None] = field(default_factory=dict)
    alike: bool = False
    tokens: bool = False
    missed: dict[str, str] = field(default_factory=dict)
    _noise: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def noise(self, rows: int, columns: int, like: Tensor) -> Tensor:
        """The same in each run."""
        if (rows, columns) not in self._noise:
            self._noise[rows, columns] = torch.randn(rows, columns, device=like.device)
        return self._noise[rows, columns].to(like)

    def numbers(self, x: Tensor, axis: int) -> Tensor:
        """Some random sums of each token (N, 8), by which it is known again."""
        rows = x.detach().movedim(axis, 0).flatten(1)
        if rows.is_complex():
            rows = torch.view_as_real(rows).flatten(1)
        rows = rows if rows.dtype == torch.float64 else rows.float()
        return on_the_side(torch.matmul, self.noise(NUMBERS, rows.shape[1], like=rows), rows.T).T


class Run(Watch):
    """One run more, in which nothing is disturbed, and all is kept.

    Attributes:
        passed: Where tokens passed, in order.
        since: A product -> the module round the one before that gave tokens last, and the how
            manieth that one is.

    Args:
        model: Any module.
        N: How many tokens it has.
        batch: How many images it is given.
        blocks: The modules in which tokens may come as a grid (B, C, H, W) or (B, H, W, C), too.
    """

    def __init__(self, model: nn.Module, N: int, batch: int, blocks: Iterable[str] = ()):
        super().__init__(model, verify=False)
        self.plain = frozenset()  # they may be what embeds
        self.N, self.batch, self.blocks = N, batch, set(blocks)
        self.kept = Kept()
        self.passed: dict[Place, Passed] = {}
        self._times_of: Counter[tuple[str, str]] = Counter()
        self._open: list[Place] = []
        self._fed = False  # a product came
        self._made: Tensor | None = None  # what the last module gave, before any was given tokens
        self._channels: torch.Size | None = None  # its form, where channels came first
        self._last = "", 0
        self.since: dict[Place, tuple[str, int]] = {}

    def given(self) -> list[Tensor]:
        """What modules were given as tokens."""
        return [x for (_, what, _), x in self.kept.given.items() if what == "given"]

    def _enter(self, module: nn.Module, args: tuple) -> Any:
        before = len(self._calls)
        super()._enter(module, args)
        if len(self._calls) == before:
            return None
        call = self._calls[-1]
        call.native = False  # its parts are wanted
        place = self._place(call.name, "given")
        self._open.append(place)
        whole = call.x
        self.kept.alike |= whole is not None and whole.ndim == 2 and len(whole) == self.N
        with UNWATCHED():
            call.x = self._row_by_row(whole, call.name)
            x = _tokens(call, self._calls[-2].x if before else None)
            axis = None if x is None else self._axis(x)
            if whole is None or x is None or axis is None:
                return None
            bare = next(module.parameters(), None) is None and whole.shape == self._channels
            first = bare or isinstance(module, CHANNELS_FIRST)
            if first and whole.ndim == 3 and whole.shape[2] != self.N:
                return None  # as many channels as tokens
            around = self._calls[-2].name if before else ""
            # in a block that is given its tokens by keyword; what was before it may have mixed them
            why = MIXED if around and isinstance(module, NORMS) else MOVES
            self._pass(place, around, why, x, axis)
            again = self._again(place, x, axis)
            if whole.ndim == 4:
                last = whole.shape[-1] == x.shape[-1] and whole.shape[1] * whole.shape[2] == self.N
                again = (again if last else again.mT).reshape(whole.shape)
        return tuple(again if value is whole else value for value in args)

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        before = len(self._calls)
        name = self._calls[-1].name if before else ""
        given = super()._leave(module, args, *rest)
        if len(self._calls) == before:
            return given
        place = self._open.pop()
        floats = args and isinstance(args[0], Tensor) and args[0].is_floating_point()
        given_out = len(rest) > 1 and isinstance(rest[-1], Tensor)
        if not self.passed and before > 1 and floats and given_out:
            with UNWATCHED():
                x, bare = rest[-1], next(module.parameters(), None) is None
                goes_on = x.shape == self._channels and (bare or x is self._made)
                if goes_on or isinstance(module, CHANNELS_FIRST):
                    self._channels = x.shape  # (B, D, ...), also of what follows without parameters
                again = self._make((name, "made", place[2]), x)
                self._made = x if again is None else again
                return again
        x = self.kept.given.get(place)
        rows = floats and args[0].ndim == 2  # experts may have them in an order of their own
        watched = rows and any(outer in self.kept.given for outer in self._open)
        if len(rest) < 2 or (x is None and (not self._fed or watched)):
            return given
        if x is not None:
            if rest[-1] is None and x.shape == args[0].shape and not x.equal(args[0]):
                raise ValueError(f"{name!r} gives nothing, and changes what it is given")
            others = tree_leaves([[y for y in args if y is not args[0]], rest[0]])
            if not any(isinstance(y, Tensor) and y.ndim > 2 for y in others):
                self.kept.alone.add(place)
        with UNWATCHED():
            out = self._row_by_row(_first(rest[-1] if given is None else given), name)
            if out is not None and out.is_floating_point() and not self._are_weights(name, out):
                # a norm hands on what moved before it, in the block round it
                by = self._calls[-1].name if _of_each(module) and self._calls else name
                self._give((name, "gave", place[2]), by, out, x)
                more = rest[-1][1:] if type(rest[-1]) is tuple else None
                whole = out is (rest[-1] if more is None else rest[-1][0])
                around = any(is_part(layer, of=name) for layer, _, _ in self.since)
                if around and whole and self._axis(out) is not None:
                    self._last = name, len(self.since)
                    again = self._hand_over(self._place(name, "block"), out)
                    return again if again is None or more is None else (again, *more)
        return given

    def _hand_over(self, place: Place, out: Tensor) -> Tensor | None:
        """What a block gave goes on, and is kept."""
        self.kept.given[place] = out.detach().clone()
        return None

    def _are_weights(self, name: str, out: Tensor) -> bool:
        """Are these no tokens, but a softmax that was given to the module round this one?"""
        around = self._calls[-1].softmaxes if self._calls else []
        return any(name in x.givers and as_used(out, x.weights) for x in around)

    def _give(self, place: Place, layer: str, out: Tensor, x: Tensor | None) -> None:
        """Tokens that a module gave: in the form of those that it was given, or of one image."""
        if x is None:
            out = out.reshape([size for size in out.shape if size != 1])
            axis = 0 if out.ndim == 2 and out.shape[0] == self.N != out.shape[1] else None
        else:
            axis = self._axis(x) if out.ndim == 3 and out.shape[:2] == x.shape[:2] else None
        if axis is not None:
            self._pass(place, layer, MOVES, out, axis)

    def _make(self, place: Place, out: Tensor) -> Tensor | None:
        """Keep patches, or tokens, that a module gave, of grids the last one alone."""
        patches, grid = self._patches(out), self._is_grid(out)
        if patches is None or (grid and self.kept.tokens):
            return None
        if grid:
            self.kept.made.clear()
        else:
            self.kept.tokens = True
        self.kept.made[place] = patches.shape[1]
        self.kept.given[place] = _copy(out)
        return None

    def _is_grid(self, x: Tensor) -> bool:
        """Are these patches (B, D, ...) or (B, ..., D), in one axis or two? Else tokens."""
        return x.ndim > 3 or x.shape == self._channels

    def _patches(self, x: Tensor) -> Tensor | None:
        """(B, M, D), D the channels of a grid (B, D, ...) or (B, ..., D), or nothing."""
        if x.ndim < 3 or len(x) != self.batch or not x.is_floating_point():
            return None
        forms = [x.flatten(1, -2)] * (x.ndim > 3 or not self._is_grid(x))
        forms += [x.flatten(2).mT] * self._is_grid(x)
        fit = [form for form in forms if self.N < 2 * form.shape[1] < 4 * self.N]
        return fit[0] if len(fit) == 1 else None

    def _row_by_row(self, x: Any, name: str) -> Any:
        """A grid of tokens in a block as (B, N, D), and all else as it is."""
        around = {name, *(call.name for call in self._calls)}
        if x is None or x.ndim != 4 or not self.blocks & around:
            return x
        _, *middle, last = x.shape
        forms = [x.flatten(1, 2)] * (middle[0] * middle[1] == self.N)
        forms += [x.flatten(2).mT] * (middle[1] * last == self.N)
        return forms[0] if len(forms) == 1 else x

    def _axis(self, x: Tensor) -> int | None:
        """Which axis of (B, N, D) or (N, B, D) is that of the tokens."""
        found = (i for i in (1, 0) if x.shape[i] == self.N and x.shape[1 - i] == self.batch)
        return next(found, None)

    def _attended(
        self,
        out: Any,
        weights: Any,
        holds: Any,
        values: Any = None,
        call: Any = None,
        axes: tuple[int, int] = ROWS,
        unclear: bool = False,
    ) -> Any:
        call = call or self._layer()
        place = self._place(call.name, "product")
        with UNWATCHED():
            self._pass(place, call.name, MIXED, values, axes[0])
            out = self._again(place, out, axes[1])
        return super()._attended(out, weights, None, values, call, axes)

    def _rows(self, call: Call, maps: list[Tensor]) -> int | None:
        place = call.name, len(call.seen) + call.multiplied
        if place not in self.kept.rows:
            self.kept.rows[place] = super()._rows(call, maps)
        return self.kept.rows[place]

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        if not call.multiplied:  # it attends in a way of its own
            out = self._again(self._place(call.name, "product"), out, -2)
        super()._said(call, args, kwargs, out)
        return out

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        pass

    def _place(self, name: str, what: str) -> Place:
        self._times_of[name, what] += 1
        return name, what, self._times_of[name, what]

    def _pass(self, place: Place, layer: str, why: str, x: Tensor, axis: int) -> None:
        numbers, eps = self.kept.numbers(x, axis), torch.finfo(x.dtype).eps
        fed = self._fed or any(around in self.kept.alone for around in self._open)
        self.since |= {place: self._last} if place[1] == "product" else {}
        self.passed[place] = Passed(layer, why, numbers, eps, fed)
        self.plain = Watch.plain

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        """Keep what a module is given, or what a product gives."""
        self._fed |= place[1] == "product"
        self.kept.given[place] = _copy(x)
        return x


class Disturbed(Run):
    """A later run, all attention held, each token disturbed in its way.

    Args:
        model: Any module.
        first: Its run before.
        way: In which way each of the N tokens is disturbed; 0 is not at all.
    """

    def __init__(self, model: nn.Module, first: Run, way: Tensor):
        super().__init__(model, first.N, first.batch, first.blocks)
        self.kept, self._way = first.kept, way

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in FUSED and self._calls and not self._away:  # it need not run
            values, axes = fused_values(func, *args, **(kwargs or {}))
            scores = partial(fused_scores, func, *args, **(kwargs or {}))
            return self._attended(None, scores, None, values, self._layer(), axes)
        return super().__torch_function__(func, types, args, kwargs)

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        if not (len(rest) > 1 and rounds_together(module)):
            return super()._leave(module, args, *rest)
        with UNWATCHED():
            weight, bias = module.weight().dequantize(), module.bias()  # type: ignore[operator]
            apart = F.linear(args[0], weight, bias)
        given = super()._leave(module, args, rest[0], apart)
        return apart if given is None else given

    def _add(self, call: Call, weights: Any, values: Tensor | None = None) -> None:
        call.seen.append(("", values))  # the map is known

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        return out if call.multiplied else self._again(self._place(call.name, "product"), out, -2)

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        """What was given then, but for the tokens that are disturbed."""
        self._fed |= place[1] == "product"
        then = self.kept.given.get(place)
        if place[1] == "given" and (then is None or then.shape != x.shape):
            return x
        if then is None:
            raise ValueError(f"{place[0]!r} attends more often when it runs again")
        if isinstance(then, tuple):
            return (self._disturbed(then[0], axis), *_copy(then[1:]))
        return self._disturbed(then, axis)

    def _hand_over(self, place: Place, out: Tensor) -> Tensor | None:
        return None

    def _disturbed(self, x: Tensor, axis: int) -> Tensor:
        x = x.clone()
        if x.shape[axis] == self.N:
            rows = x.movedim(axis, 0)
            rows += self._noise(rows, self._way)
        return x

    def _noise(self, rows: Tensor, way: Tensor) -> Tensor:
        """What disturbs tokens (N, ...), each in its way."""
        noise = self.kept.noise(len(rows), rows[0].numel(), like=rows)
        wide = torch.promote_types(rows.dtype, torch.float32)
        size = torch.linalg.vector_norm(rows, dtype=wide) / math.sqrt(rows.numel()) + 1e-3
        return ((size * SIGNS.to(size)[way])[:, None].to(rows) * noise).view_as(rows)


class Late(Disturbed):
    """A later run, all attention held, the tokens disturbed from the first product on.

    What a later layer multiplies has to move, where it is a module that is given tokens.

    Args:
        model, first, way: As there.
        others: The modules whose tokens follow no patch. Where they follow no product either, they
            stay.
    """

    def __init__(self, model: nn.Module, first: Run, way: Tensor, others: set[Place]):
        super().__init__(model, first, way)
        self._others = others
        self._layers = [layer for layer, what, _ in self.kept.given if what == "product"]

    def _pass(self, place: Place, layer: str, why: str, x: Tensor, axis: int) -> None:
        super()._pass(place, layer, why, x, axis)
        passed = self.passed[place]
        passed.fed = self._fed and (layer, "given", place[2]) in self.kept.given
        passed.alone = place[1] == "product" and axis == 0  # before their projection

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        if place[1] == "given":
            around = any(is_part(layer, of=place[0]) for layer in self._layers)
            stay = place in self._others and x.equal(self.kept.given[place])
            if not (self._fed and around) or stay:
                return x
        return super()._again(place, x, axis)


class Handed(Disturbed):
    """A later run, all attention held, and each block gives what it gave then, every other moved.

    Args:
        model, first: As there.
        odd: Whether these are those behind the first, third ... product or the others.
    """

    def __init__(self, model: nn.Module, first: Run, odd: bool):
        super().__init__(model, first, torch.zeros(first.N, dtype=torch.long))
        self._odd = odd

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        return x if place[1] == "given" else super()._again(place, x, axis)

    def _hand_over(self, place: Place, out: Tensor) -> Tensor | None:
        then = self.kept.given.get(place)
        if then is None or then.shape != out.shape:
            return None
        all_ = torch.ones(self.N, dtype=torch.long, device=out.device)
        rows = then.clone()
        if len(self.since) % 2 == self._odd:
            axis = self._axis(rows) or 0
            rows.movedim(axis, 0).add_(self._noise(then.movedim(axis, 0), all_))
        return rows


class Begun(Disturbed):
    """A later run, all attention held, the patches disturbed before any module is given N tokens.

    Attributes:
        come: What came to each place, and how many patches were disturbed before.
    """

    def __init__(self, model: nn.Module, first: Run, way: Tensor):
        super().__init__(model, first, torch.zeros_like(way[: first.N]))
        self.come: dict[Place, tuple[Passed, int]] = {}
        self._of_patches, self._count = way, 0

    def _make(self, place: Place, out: Tensor) -> Tensor | None:
        if place not in self.kept.made:
            return None
        if (patches := self._patches(out)) is not None:
            numbers, eps = self.kept.numbers(patches, 1), torch.finfo(patches.dtype).eps
            self.come[place] = Passed(place[0], MOVES, numbers, eps), self._count
        self._count = M = self.kept.made[place]
        again = self.kept.given[place].clone(memory_format=torch.contiguous_format)
        if (rows := self._patches(again)) is not None:
            rows += self._noise(rows[0], self._of_patches[:M])
        return again

    def _pass(self, place: Place, layer: str, why: str, x: Tensor, axis: int) -> None:
        super()._pass(place, layer, why, x, axis)
        self.come[place] = self.passed[place], self._count

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        if place[1] == "product":
            return super()._again(place, x, axis)
        own = self._count in (0, self.N) and not self.kept.made  # no module gave patches
        then = self.kept.given.get(place)
        if own and not self._fed and then is not None and then.shape == x.shape:
            self._count, x = self.N, x.clone()
            rows = x.movedim(axis, 0)
            rows += self._noise(then.movedim(axis, 0), self._of_patches[: self.N])
        return x


class Apart(Disturbed):
    """A later run, in which each token of a product is disturbed in half a head, in turn.

    What a layer does behind its product goes on with that; all else is as it was.

    Args:
        model: Any module.
        first: Its run before.
        sign: Of the noise; 0 disturbs nothing.
        filled: Whether linear layers have numbers where all of a column is zero: heads that were
            pruned in this way, and projections that start at zero, throw nothing away.
    """

    def __init__(self, model: nn.Module, first: Run, sign: int = 1, filled: bool = False):
        super().__init__(model, first, torch.zeros(first.N, dtype=torch.long))
        self._sign, self._filled = sign, filled

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if self._filled and func is F.linear and not self._away and len(args) > 1:
            x, weight, *bias = args
            with UNWATCHED():
                noise = self.kept.noise(len(weight), weight.shape[1], like=weight)
                weight = torch.where(weight.any(dim=0), weight, noise / len(weight) ** 0.5)
            args = x, weight, *bias
        return super().__torch_function__(func, types, args, kwargs)

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        if place[1] == "given" and any(call.seen or call.multiplied for call in self._calls):
            return x
        again = super()._again(place, x, axis)
        out = again[0] if isinstance(again, tuple) else again
        if place[1] == "product":
            rows = out.movedim(axis, 0)  # (N, ..., d), of which ... are images and heads
            heads = math.prod(rows.shape[1:-1])
            token = torch.arange(len(rows), device=out.device)  # perhaps some at a time
            half = torch.arange(rows.shape[-1], device=out.device) * 2 >= rows.shape[-1]
            noise = self.kept.noise(len(rows), rows.shape[-1], like=out) * self._sign
            noise *= (out.abs().amax() + 1e-3) * (half == (token // heads % 2)[:, None])
            turned = rows.reshape(len(rows), heads, -1).clone()
            turned[token, token % heads] += noise
            rows.copy_(turned.view_as(rows))
        return again


class Held(Disturbed):
    """A later run on another image, all attention held, and nothing else.

    Attributes:
        asked: The scores of each product, before they are held.
    """

    keeps_scores = True

    def __init__(self, model: nn.Module, first: Run):
        super().__init__(model, first, torch.zeros(first.N, dtype=torch.long))
        self.asked: dict[Place, Tensor] = {}

    def _multiplied(self, call: Call, softmax: Softmax, ways: list[tuple], out: Any) -> Any:
        weights, softmax.weights = softmax.weights, softmax.scores
        out = super()._multiplied(call, softmax, ways, out)
        softmax.weights = weights
        return out

    def _attended(self, out: Any, weights: Any, *rest: Any) -> Any:
        out = super()._attended(out, weights, *rest)
        self.asked[next(reversed(self.passed))] = weights().detach()
        return out

    def _again(self, place: Place, x: Any, axis: int) -> Any:
        return x if place[1] == "given" else super()._again(place, x, axis)


def rounds_together(module: nn.Module) -> bool:
    """Is it a linear layer that rounds all tokens by the largest of them (dynamic quantisation)?"""
    kind = type(module)  # whose module takes long to import
    dynamic = (
        kind.__module__.startswith("torch.ao.nn.quantized.dynamic") and kind.__name__ == "Linear"
    )
    return dynamic and module.weight().is_quantized  # type: ignore[operator]


def _tokens(call: Call, outer: Tensor | None) -> Tensor | None:
    """The tokens that a module was given, where they may move each other in it.

    ``outer`` is what the module round it was given.
    """
    x, module = call.x, call.module
    if x is None or x.ndim != 3 or not x.is_floating_point():
        return None
    if _of_each(module):
        return None if outer is not None and outer.ndim == 3 else x  # of each token alone
    if x.shape[1] != x.shape[2]:
        return x
    if isinstance(module, CHANNELS_FIRST) or next(module.parameters(), None) is None:
        return None  # as many channels as tokens; scores of one head, given to an nn.Softmax
    narrow = outer is not None and outer.ndim == 3 and outer.shape[2] != x.shape[2]
    blocks = any(isinstance(part, nn.Linear) for part in module.modules())
    return x if blocks or not narrow else None  # scores; what is round them is watched


def _of_each(module: nn.Module) -> bool:
    """Is it a norm of each token alone?"""
    return isinstance(module, NORMS) and len(module.normalized_shape) == 1


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
