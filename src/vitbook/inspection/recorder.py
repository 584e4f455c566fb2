"""Watch a model run: which of its layers attend, with which weights, and which cannot be read.

A layer's weights are known in three ways. It has a method ``attention_weights``, as this package's
have; it calls one of PyTorch's two attention functions, and the weights are worked out from what
they were called with; or it multiplies values with a softmax, as layers do that are not fused: what
is multiplied is held against the softmax, number by number, whatever way it went in between. What
attends in another way is told by the name of its class, so that it is missed and not forgotten.
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as all_modules
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from vitbook.inspection.map_checks import no_weights, not_of_tokens, padded, tokens_of, with_heads
from vitbook.inspection.weights import (
    ROWS,
    are_weights,
    as_used,
    drops,
    fused_values,
    is_close,
    is_dropped,
    mha_again,
    mha_draws,
    moved_rows,
    on_the_side,
    operands,
    sdpa_draws,
    sdpa_holds,
    sdpa_weights,
    sums_tokens,
    unreadable,
)

T = Tensor
SOFTMAX = {F.softmax, torch.softmax, T.softmax, torch.special.softmax}
ATTENTION = {F.scaled_dot_product_attention, F.multi_head_attention_forward, *SOFTMAX}
SCALING = {torch.div, T.div, T.div_, torch.true_divide, T.true_divide, torch.mul, T.mul, T.mul_}
DROPOUT = {F.dropout, torch.dropout, F.alpha_dropout, torch.dropout_}
# These have kernels of their own, which they leave while a mode watches.
NATIVE = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
ATTENDS = re.compile(r"(?i:att(entio)?n|mh[sc]?a|multi_?head)|[A-Z][SL]A$")  # names of classes
PLAIN = {nn.Linear, nn.Dropout, nn.Identity, nn.GELU}  # what they do to each token is known
USUAL = {nn.Parameter, type(None)}
UNKNOWN = (
    "no function that it calls is known to attend (one that was wrapped, runs in a thread, or is "
    "given one image and head at a time, is not seen)"
)
OTHERS = "what it multiplies with values are not the weights that it says"
PARTS = f"{OTHERS}, or unequal parts of them, one after the other"
PASSED = (
    "its attention_weights is passed over: its forward is newer (of a class below, or put on), or "
    "takes something else"
)
OPEN = (
    "it has as many heads as tokens, and its heads attend, or it is open which axis of its map is "
    "that of the queries; images of another size show it"
)


@dataclass(eq=False)
class Softmax:
    """A softmax over the last axis, in the call in which it is taken."""

    weights: Tensor
    scores: Tensor  # of which it is taken, if they are kept
    dropped: list[Tensor] = field(default_factory=list)  # what dropout made of them
    used: bool = False
    givers: list[str] = field(default_factory=list)  # modules that gave it to those round them
    doubted: bool = False  # of as many keys as the first giver has tokens


@dataclass(slots=True)
class Call:
    """A module of the model that is running."""

    name: str
    module: nn.Module
    own: bool  # it says its weights itself
    native: bool  # it may take a native kernel
    x: Tensor | None  # what it was given
    args: tuple = ()  # all of it
    seen: list[tuple[str, Tensor | None]] = field(default_factory=list)  # labels, values
    multiplied: int = 0  # how often weights and values were multiplied in it, where it is own
    checks: list[Callable[[Tensor], bool]] = field(default_factory=list)  # of what it says
    unsaid: list[Tensor] = field(default_factory=list)  # no softmax, and perhaps weights of its own
    sums: list[Tensor] = field(default_factory=list)  # by which it divides or multiplies
    softmaxes: list[Softmax] = field(default_factory=list)
    other_axes: list[int] = field(default_factory=list)  # lengths of what other softmaxes add up


class Watch(TorchFunctionMode):
    """While entered, sees every call of a model's modules; the model is not touched.

    Attributes:
        maps: Layer name -> weights, in the order in which they were seen. Where a layer attends
            several times in one pass, the later ones are called "name#2", "name#3" ...
        shown: The name of each map -> the layer, and the how manieth time.
        doubts: Layer name -> why there is no map of it, or why the map is not one of its tokens.
        draws: The layers that drop some weights at random.
        untested: The layers that say weights which were not seen to be multiplied with anything.
        gave: What the products gave, where verify is on: layer and the how manieth time, and the
            axis of the images.
        modules, ran: All modules of the model, and those that ran, by name.

    Args:
        model: Any module.
        verify: Multiply the weights with the values, and compare with what the layer got.
        rough: What the model gives is not wanted, so that it may be rounded in another way.
    """

    keeps_scores = False
    plain = frozenset(PLAIN)

    def __init__(self, model: nn.Module, verify: bool = True, rough: bool = False):
        super().__init__()
        self.verify, self.rough = verify, rough
        self.maps: dict[str, Tensor] = {}
        self.shown: dict[str, tuple[str, int]] = {}
        self.doubts: dict[str, str] = {}
        self.draws: set[str] = set()
        self.untested: list[str] = []
        self.gave: dict[tuple[str, int], tuple[Tensor, int]] = {}
        self.ran: dict[str, nn.Module] = {}
        self.names = names_of(model)
        self.modules = {name: module for module, name in self.names.items()}
        self._calls: list[Call] = []  # the innermost comes last
        self._passes = 0  # calls from outside
        self._pass_of: dict[str, int] = {}
        self._times: Counter[str] = Counter()
        self._products: Counter[str] = Counter()
        self._why: dict[str, str] = {}  # layers whose softmax was no map
        self._around: set[str] = set()  # modules that ran when a map was seen
        self._away = False  # what runs now is ours, not the model's
        self._softmaxes = 0  # of calls that still run
        self._owned = 0  # calls that still run, of layers that say their weights
        self._unwatched: tuple | None = None  # a plain module that runs, and what hides it
        self._thread = get_ident()  # hooks for all modules are those of all threads

    def __enter__(self) -> "Watch":
        # hooks for all modules: one on the model would keep it from its native kernels
        self._handles = [
            all_modules.register_module_forward_pre_hook(self._enter),
            all_modules.register_module_forward_hook(
                self._leave, with_kwargs=True, always_call=True
            ),
        ]
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._unwatched:  # stopped by hand
            self._unwatched[1].__exit__(None, None, None)
        for handle in self._handles:
            handle.remove()
            # torch forgets to; then every compiled module would warn of hooks that are gone
            all_modules._global_forward_hooks_with_kwargs.pop(handle.id, None)

    # --- modules -------------------------------------------------------------------------------

    def _beside(self, module: nn.Module) -> None:
        """What runs in another thread shows nothing, and is named where it attends by its name."""
        if (name := self.names.get(module)) is not None and self._calls:
            self.ran.setdefault(name, module)

    def _enter(self, module: nn.Module, args: tuple) -> None:
        if get_ident() != self._thread:
            return self._beside(module)
        if self._calls and (
            type(module) in self.plain or (self.rough and isinstance(module, nn.LayerNorm))
        ):
            calls = self.rough and type(module) is not nn.Identity
            hide = calls and not (self._unwatched or self._softmaxes or self._owned)
            # what it calls need not be seen, if its tensors are no kind of their own
            if hide and type(module._parameters.get("weight")) in USUAL:
                self._unwatched = module, torch._C.DisableTorchFunction()
                self._unwatched[1].__enter__()
            return
        name = self.names.get(module)
        if name is None or self._away or _runs_backwards():
            return
        self._passes += not self._calls
        self.ran[name] = module
        x = args[0] if args and isinstance(args[0], Tensor) else None
        own = says_weights(module) and not (x is not None and x.ndim == 4 and is_model(module))
        native = not self.rough and may_be_native(module)
        self._calls.append(Call(name, module, own, native, x, args))
        self._owned += own

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        if get_ident() != self._thread:
            return None
        if self._unwatched and self._unwatched[0] is module:
            self._unwatched[1].__exit__(None, None, None)
            self._unwatched = None
            return None
        if self._away or not self._calls or self._calls[-1].module is not module:
            return None  # it is plain, is none of the model, or ran already, outside
        if _runs_backwards():
            return None
        call = self._calls.pop()
        self._softmaxes -= len(call.softmaxes)
        self._owned -= call.own
        if len(rest) < 2:  # after an error
            return None
        kwargs, out = rest
        self._away = True
        try:
            if call.own:
                return self._said(call, args, kwargs, out)
            if call.seen or call.softmaxes or call.other_axes:
                with torch._C.DisableTorchFunction():
                    self._hand_on(call, out)
                    self._judge(call, [*args, *kwargs.values()])
            if call.native and not any(c.native for c in self._calls):
                # what it gives when no mode watches: from its native kernel, the last bit too
                with torch._C.DisableTorchFunction():
                    return module.forward(*args, **kwargs)
        finally:
            self._away = False
        return None

    def _hand_on(self, call: Call, out: Any) -> None:
        """A softmax that a module gives is one of the module round it, which may multiply it."""
        waiting = [softmax for softmax in call.softmaxes if not softmax.used]
        if waiting and self._calls:
            gave = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
            for softmax in waiting:
                known = (softmax.weights, *softmax.dropped)
                if any(as_used(x, weights) for x in gave for weights in known):
                    call.softmaxes.remove(softmax)
                    if not softmax.givers and call.x is not None:
                        keys = softmax.weights.shape[-1]
                        softmax.doubted = keys in tokens_of([call.x], len(call.x))
                    softmax.givers.append(call.name)
                    self._calls[-1].softmaxes.append(softmax)
                    self._softmaxes += 1

    # --- functions -----------------------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        seen = self._softmaxes or self._owned or func in ATTENTION
        if not seen or self._away or not self._calls:
            return func(*args, **kwargs)
        if self.rough and func is F.scaled_dot_product_attention:
            plain = len(args) < 5 and not (kwargs.get("dropout_p") or kwargs.get("enable_gqa"))
            plain = plain and not (args and unreadable(args[0]))
            if plain and not (call := self._layer()).own:
                return self._product(call, *args, **kwargs)
        out = func(*args, **kwargs)  # the functions that this one calls are not seen
        if not _runs_backwards():
            why = unreadable(out)
            if not why:
                seen = self._see(func, args, kwargs, out)
                if kwargs.get("out") is None:
                    return seen
                return out if seen is out else out.copy_(seen)  # the model goes on with it
            if not (layer := self._layer()).own:
                self.doubts[layer.name] = why
        return out

    def _product(
        self, call: Call, query: Tensor, key: Tensor, value: Tensor, *mask: Any, **how: Any
    ) -> Any:
        """The weights of a fused layer, and their product with the values, once."""
        how.pop("dropout_p", None)
        weights = on_the_side(sdpa_weights, query, key, value, *mask, **how)
        self._attended(None, lambda: weights, None, value, call)
        return (weights @ value.to(weights)).to(value)

    def _see(self, func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
        """What a function gave: the attention of a layer, a softmax, or something else."""
        if func is F.scaled_dot_product_attention:
            if sdpa_draws(*args, **kwargs):
                self.draws.add(self._layer().name)
            return self._fused(
                out,
                lambda: on_the_side(sdpa_weights, *args, **kwargs),
                sdpa_holds(*args, out=out, **kwargs) if self.verify else None,
                *fused_values(func, *args, **kwargs),
            )
        if func is F.multi_head_attention_forward:
            again: list[Tensor] = []

            def weights() -> Tensor:
                again.extend(on_the_side(mha_again, *args, **kwargs))
                # a query that may attend to nothing; what the model gets is finite all the same
                return again[1] if out[0].isnan().any() else again[1].nan_to_num(0.0)

            drawn = mha_draws(*args, **kwargs)
            if drawn:
                self.draws.add(self._layer().name)

            def holds(_: Tensor) -> bool:
                return drawn or not again or is_close(again[0], out[0])

            return self._fused(out, weights, holds, *fused_values(func, *args, **kwargs))
        if func in SOFTMAX and out.ndim > 2:
            axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
            if axis in (-1, out.ndim - 1):
                kept = out.detach().clone()
                scores = args[0] if args else kwargs["input"]
                scores = scores.detach().clone() if self.keeps_scores else kept
                self._layer().softmaxes.append(Softmax(kept, scores))
                self._softmaxes += 1
            else:
                self._layer().other_axes.append(out.shape[0 if axis is None else axis])
            return out
        for call in self._calls:
            for softmax in sorted(call.softmaxes, key=lambda softmax: softmax.used):
                if func in DROPOUT and drops(*args, **kwargs) and is_dropped(out, softmax.weights):
                    softmax.dropped.append(out.detach().clone().view(softmax.weights.shape))
                known = (softmax.weights, *softmax.dropped)
                ways = [
                    (used, values, axes, orders)
                    for used, values, axes in operands(func, args, kwargs)
                    if any(orders := [as_used(used, x) for x in known])
                ]
                if ways:
                    return self._multiplied(call, softmax, ways, out)
        if self.verify and self._layer().own:
            pairs = [(x, v) for x, v, _ in operands(func, args, kwargs)]
            square = [x for x, v in pairs if x.shape[-1] == x.shape[-2] != v.shape[-1]]
            self._layer().unsaid += [x.detach().clone() for x in square]
            divided = func in SCALING and args and isinstance(args[-1], Tensor)
            self._layer().sums += [args[-1].detach().clone()] if divided else []
        return out

    def _fused(self, out: Any, weights: Any, holds: Any, values: Tensor, axes: Any) -> Any:
        """One of PyTorch's two functions gave what a layer goes on with."""
        call = self._layer()
        if call.own:
            holds = partial(is_close, b=weights()) if holds else None
            return self._attended(out, weights, holds, values, call, axes)
        found = weights()
        unclear = self._rows(call, [found]) is None
        return self._attended(out, lambda: found, holds, values, call, axes, unclear)

    def _multiplied(self, call: Call, softmax: Softmax, ways: list[tuple], out: Any) -> Any:
        """A softmax and values were multiplied; it may be read in several ways."""
        if softmax.givers:  # the layer is the one that multiplies
            self._around |= set(softmax.givers)
            call = self._layer()
        softmax.used = True
        maps = [
            softmax.weights.permute(next(filter(None, orders))).reshape(used.shape)
            for used, _, _, orders in ways
        ]
        one = self._rows(call, maps)
        found, (used, values, axes, orders) = maps[one or 0], ways[one or 0]
        self.draws |= set() if orders[0] else {call.name}
        fronts = used.shape[:-2], values.shape[:-2]
        if axes == ROWS and values.ndim > 2 and fronts[0] != fronts[1]:
            # one map may serve all images
            found = found.expand(*torch.broadcast_shapes(*fronts), *used.shape[-2:])
        holds = partial(is_close, b=found) if call.own else None
        return self._attended(out, lambda: found, holds, values, call, axes, one is None)

    def _rows(self, call: Call, maps: list[Tensor]) -> int | None:
        """Which of some maps, of axes that are equally long, has a row for each token, or nothing.

        One token of what the layer was given is disturbed. But for the keys of this token, one row
        of its map moves; along another axis, each does.
        """
        N = maps[0].shape[-1]
        heads = [axis for axis in range(1, maps[0].ndim - 2) if maps[0].shape[axis] == N]
        if N == 1 or (len(maps) == 1 and not (self.verify and heads)):
            return 0
        away, self._away, moved = self._away, True, []
        with suppress(Exception):  # it cannot run alone
            moved = self._moved(call, N, len(call.seen) + call.multiplied, heads)
        self._away = away
        fits = [i for i, rows in enumerate(moved) if rows == 1]
        those = [i for i in fits if i < len(maps)]
        return those[0] if len(those) == 1 else None if fits or len(maps) > 1 else 0

    def _moved(self, call: Call, N: int, number: int, heads: list[int]) -> list[int]:
        """How many rows of its maps, and of them along other axes, move with one token."""
        if call.x is None or call.module.training:
            return []
        given, *others = call.args
        tokens = iter((N // 2, N // 2 - 1))  # another one where the images are as many
        place = tuple(next(tokens) if size == N else slice(None) for size in given.shape[:-1])
        noise, runs = given.std() * torch.linspace(-1, 1, given.shape[-1]).to(given), []
        for size in (0, 1):
            x = given.clone()
            x[place] += size * noise
            with torch.no_grad(), torch.random.fork_rng(), (run := Alone(call.module)):
                call.module(x, *others)
            maps = run.found[number]
            runs.append([*maps, *(maps[0].transpose(axis, -2) for axis in heads)])
        keys = {token for token in place if isinstance(token, int)}
        return [moved_rows(x, y, keys) for x, y in zip(*runs, strict=True)]

    def _attended(
        self,
        out: Any,
        weights: Callable[[], Tensor],
        holds: Callable[[Tensor], bool] | None,
        values: Tensor | None = None,
        call: Call | None = None,
        axes: tuple[int, int] = ROWS,
        unclear: bool = False,
    ) -> Any:
        """Keep the weights of a layer, and give what the model goes on with.

        ``holds`` tells whether weights, multiplied with the values, give what came out; ``axes``,
        where the tokens are in the values and in what came out; ``unclear``, whether their own are
        not known.
        """
        call = call or self._layer()
        if self.verify:
            x, axis = (out[0] if isinstance(out, tuple) else out).detach(), int(axes[1] == 0)
            self._products[call.name] += 1
            self.gave[call.name, self._products[call.name]] = x.clone(), axis
        if call.own:
            call.multiplied += 1
            call.checks += [holds] if holds else []
        else:
            self._add(call, weights, None if axes[0] == 0 else values)  # which holds all heads
            label = call.seen[-1][0]
            if self.verify and holds and not holds(self.maps[label]):
                self.doubts[label] = OTHERS
            elif unclear:
                self.doubts[label] = OPEN
        return out

    def _said(self, call: Call, args: tuple, kwargs: dict, out: Any) -> Any:
        """Keep the weights that a layer says, and give what the model goes on with."""
        why = ""
        try:
            with torch.no_grad(), torch.random.fork_rng(), undropped(call.module):
                said = call.module.attention_weights(*args, **kwargs)  # type: ignore[operator]
        except Exception as error:  # of a method of somebody's
            said, why = None, f"its attention_weights fails ({error})"
        self._add(call, lambda: said)
        label = call.seen[-1][0]
        floats = isinstance(said, Tensor) and said.is_floating_point()
        why = why or ("" if call.multiplied and floats else no_weights(said))
        if not why and self.verify and len(call.checks) == call.multiplied > 0:
            other = OTHERS if len(call.checks) == 1 else PARTS
            why = "" if _hold(call.checks, said) else other
        if not why and self.verify and not call.multiplied:
            same = [x for x in call.unsaid if x.shape[-2:] == said.shape[-2:]]
            fits = None
            if isinstance(out, Tensor) and not call.module.training:
                with suppress(Exception), torch.no_grad(), torch.random.fork_rng():
                    fits = sums_tokens(call.module, *args, **kwargs)
            self.untested += [call.name] if fits is None and not same else []
            held = not same or are_weights(same, said, call.sums)
            why = OTHERS if not held or fits is False else ""
        if why:
            self.doubts[label] = why
        if not isinstance(said, Tensor):
            del self.maps[label]
        return out

    def _layer(self) -> Call:
        """The layer that attends: the innermost with parameters (an nn.Softmax has none)."""
        if self._owned:
            return next(call for call in self._calls if call.own)
        for call in reversed(self._calls):
            if next(call.module.parameters(), None) is not None:
                return call
        return self._calls[-1]

    def _add(self, call: Call, weights: Any, values: Tensor | None = None) -> None:
        name = call.name
        if self._pass_of.setdefault(name, self._passes) != self._passes:
            raise RuntimeError(
                f"layer {name!r} ran twice inside one record_attention block; "
                "use one block for each forward pass"
            )
        self._times[name] += 1
        label = name if self._times[name] == 1 else f"{name}#{self._times[name]}"
        while label != name and label in self.modules:  # which is called so
            label += "#"
        self.shown[label] = name, self._times[name]
        self.maps[label] = weights()
        self._around |= {name, *(outer.name for outer in self._calls)}
        call.seen.append((label, values))

    # --- doubts --------------------------------------------------------------------------------

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        """Hold what a layer's call has shown against the tokens that it was given."""
        maps = [self.maps[label] for label, _ in call.seen]
        softmaxes = [  # a map that is taken once more, to be looked at, is no other
            softmax
            for softmax in call.softmaxes
            if not (softmax.used or any(is_close(x, softmax.weights) for x in maps))
        ]
        given = [
            x for x in inputs if isinstance(x, Tensor) and x.is_floating_point() and x.ndim > 1
        ]
        why = ""
        if softmaxes or call.other_axes:
            others = [x for x in given[1:] if x.ndim == 3]  # a context
            tokens = tokens_of([*given[:1], *others], len(given[0])) if given else set()
            keys = {x.shape[-1] for x in maps}
            tokens |= {count + 1 for count in tokens}  # and a sink
            keys |= tokens if keys else set()  # a softmax of something else than tokens is a gate
            unread = {softmax.weights.shape[-1] for softmax in softmaxes}
            if any(not keys or length in keys for length in call.other_axes):
                why = "it takes a softmax over another axis than the last"
            elif any(not keys or length in keys for length in unread):
                why = (
                    "it changes its softmax before it is multiplied with values, or multiplies a "
                    "part of it, or by a function that is not read, or it is the softmax of a gate "
                    "or used for nothing"
                )
            if not maps and tokens & {*call.other_axes, *unread}:
                self.doubts[call.name] = why  # whatever its class is called
        if not why and len(maps) > 1 and (self._calls or call.x is None or call.x.ndim != 4):
            why = "it attends more than once in one call"
        if why:
            self._why[call.name] = why
            self.doubts |= {x.givers[0]: why for x in softmaxes if x.doubted}
        for label, values in call.seen:
            weights = self.maps[label]
            if given and weights.ndim != 4:
                weights = self.maps[label] = with_heads(weights, given[0])
            doubt = why
            if given and not why:
                doubt = not_of_tokens(weights, values, given, strict=bool(self._calls))
                around = (outer.x for outer in self._calls[::-1] if outer.x is not None)
                doubt = doubt or padded(weights, given[0], next(around, None))
            if doubt:
                self.doubts.setdefault(label, doubt)

    def close(self) -> None:
        """Add the layers to the doubts that ran, attend by their name, and have no map."""
        for name, module in self.ran.items():
            script = isinstance(module, torch.jit.ScriptModule)
            if script and re.search("softmax|attention", str(module.inlined_graph)):
                self.doubts[name] = "it is TorchScript, which runs unseen"
            exported = isinstance(module, torch.fx.GraphModule) and name not in self._around
            if exported and re.search("softmax|attention", str(module.code)):
                self.doubts[name] = "it runs unseen: give the model that was exported"
        layers = {self.shown[label][0] for label in self.maps}
        for name, module in self.modules.items():
            if type(module).__call__ is not nn.Module.__call__ and attends_by_name(module):
                holders = (x for x in parents(name) if x in self.ran)
                if name not in self.ran and next(holders, None) not in layers:
                    self.doubts[name] = "its class has a __call__ of its own, which runs unseen"
        for name, module in self.ran.items():
            if callable(_method(module)) and name not in self._around and not says_weights(module):
                self.doubts.setdefault(name, PASSED)
        within = [name for name in layers if attends_by_name(self.ran[name])]
        blank = [
            name
            for name, module in self.ran.items()
            if name not in self._around
            and attends_by_name(module)
            and not any(is_part(doubt, of=name) for doubt in self.doubts)
            and not any(is_part(name, of=layer) for layer in within)
        ]
        for name in blank:
            if not any(is_part(other, of=name) for other in blank if other != name):
                reasons = [why for part, why in self._why.items() if is_part(part, of=name)]
                self.doubts[name] = (reasons or [UNKNOWN])[0]


class Alone(Watch):
    """One layer, run alone, and the maps that each of its products may show."""

    def __init__(self, layer: nn.Module):
        super().__init__(layer, verify=False)
        self.found: list[list[Tensor]] = []

    def _rows(self, call: Call, maps: list[Tensor]) -> int | None:
        self.found += [] if call.name else [maps]
        return 0


@contextmanager
def undropped(layer: nn.Module) -> Iterator[None]:
    """No dropout."""
    training = [module for module in layer.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _hold(checks: list[Callable[[Tensor], bool]], said: Any) -> bool:
    """Do weights give what came out, where some products have an equal part of them each?"""

    def holds(axis: int) -> bool:
        parts = said.chunk(len(checks), axis)
        return all(check(part) for check, part in zip(checks, parts, strict=True))

    for axis in range(3):  # images, heads, queries
        with suppress(RuntimeError, ValueError, AttributeError):  # of other shapes
            if holds(axis):
                return True
    return False


def names_of(
    model: nn.Module, name: str = "", known: dict[nn.Module, str] | None = None
) -> dict[nn.Module, str]:
    """All modules and their names, without what torch.compile puts round a module."""
    known = {} if known is None else known
    known[model] = name
    for part, module in model._modules.items():
        if module is not None and module not in known:
            inner = name if part == "_orig_mod" else f"{name}.{part}" if name else part
            names_of(module, inner, known)
    return known


def _method(module: nn.Module) -> Any:
    """Its ``attention_weights``, as far as they can be called: a property would run."""
    return vars(module).get("attention_weights", getattr(type(module), "attention_weights", None))


def says_weights(module: nn.Module) -> bool:
    """Has it a method ``attention_weights`` that belongs to the ``forward`` it has?"""
    if not callable(_method(module)) or not _same_arguments(module):
        return False
    if "attention_weights" in vars(module):
        return True
    if "forward" in vars(module):  # somebody's, put on this one layer
        return False
    for kind in type(module).__mro__:  # what is defined with or after the newest forward is of it
        if "attention_weights" in vars(kind):
            names = (vars(kind).get(name) for name in ("forward", "attention_weights"))
            put_on = [f"{kind.__name__}." not in getattr(x, "__qualname__", "") for x in names if x]
            return put_on != [True, False]  # a forward of somebody's, put on the class
        if "forward" in vars(kind):
            return False
    return False


def _same_arguments(module: Any) -> bool:
    """Does ``attention_weights`` take what ``forward`` takes, as far as it must be given?"""
    with suppress(ValueError):  # nobody knows
        given = inspect.signature(module.forward).parameters.values()
        must = [x for x in given if x.default is x.empty and x.kind < x.VAR_POSITIONAL]
        try:
            inspect.signature(module.attention_weights).bind(*must)
        except TypeError:
            return False
    return True


def may_be_native(module: nn.Module) -> bool:
    """Could it take a native kernel, were it not watched? Hooks on its parts would keep it."""
    if not isinstance(module, NATIVE) or module.training:
        return False
    inner = [part for part in module.modules() if part is not module]
    return not any(part._forward_hooks or part._forward_pre_hooks for part in inner)


def is_part(name: str, of: str) -> bool:
    """Is the module of this name the other one, or inside it?"""
    return not of or name == of or name.startswith(of + ".")


def is_model(module: nn.Module) -> bool:
    """Has it a list of blocks? What it is given, if it has four axes, are images."""
    return any(isinstance(part, (nn.ModuleList, nn.Sequential)) for part in module.children())


def parents(name: str) -> list[str]:
    """The names of the modules round one, the innermost first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)]


def blocks_of(modules: dict[str, nn.Module], layers: list[str]) -> dict[str, nn.Module]:
    """The largest module round each attention layer that holds no other one, by name."""
    layers = list(dict.fromkeys(layers))
    blocks = []
    for layer in layers:
        parts = layer.split(".")
        around = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]  # from the outside
        if len(layers) == 1:  # nothing to tell a block by but the list in which it stands
            held = [modules[name.rpartition(".")[0]] for name in around]
            lists = [isinstance(holder, (nn.ModuleList, nn.Sequential)) for holder in held]
            blocks.append(around[len(lists) - 1 - lists[::-1].index(True)] if any(lists) else layer)
        else:
            rest = [other for other in layers if other != layer]
            alone = (n for n in around if not any(is_part(other, of=n) for other in rest))
            blocks.append(next(alone, layer))
    return {name: modules[name] for name in blocks}


def attends_by_name(module: nn.Module) -> bool:
    name = type(module).__name__  # XAttentionOutput is what stands behind it
    return bool(ATTENDS.search(name) and not name.endswith("Output")) or says_weights(module)


def _runs_backwards() -> bool:
    """Is this a checkpoint that runs a second time, for the gradients?"""
    return torch._C._current_graph_task_id() != -1
