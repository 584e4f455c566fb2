"""Watch a model run: which of its layers attend, with which weights, and which cannot be read.

A layer's weights are known in three ways. It has a method ``attention_weights``, as this package's
have; it calls one of PyTorch's two attention functions, and the weights are worked out from what
they were called with; or it multiplies values with a softmax, as layers do that are not fused. What
attends in another way is told by the name of its class, so that it is missed and not forgotten.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as all_modules
from torch.overrides import TorchFunctionMode

from vitbook.inspection.judging import (
    is_transpose,
    not_of_tokens,
    padded,
    sums_over_keys,
    tokens_of,
    with_heads,
)
from vitbook.inspection.weights import mha_weights, on_the_side, sdpa_weights

T = Tensor
SOFTMAX = {F.softmax, torch.softmax, T.softmax, torch.special.softmax}
PRODUCT = {torch.matmul, T.matmul, torch.bmm, T.bmm}
# What may lie between a softmax and the product: it leaves the weights as they are.
KEEPS = {F.dropout, torch.dropout, T.contiguous, T.clone, T.to, T.type, T.type_as}
KEEPS |= {T.float, T.double, T.half, T.bfloat16}
RESHAPES = {T.view, T.reshape, torch.reshape, T.unsqueeze, T.squeeze, T.flatten, T.unflatten}
CHANGES = re.compile(r"[^_]_$|^__i|^__setitem__$")  # names of functions that work in place
# These have kernels of their own, which they leave while a mode watches.
NATIVE = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
ATTENDS = re.compile(r"(?i:att(entio)?n|mh[sc]?a|multi_?head)|[A-Z][SL]A$")  # names of classes


@dataclass
class Softmax:
    """A softmax over the last axis, whose use is not seen yet."""

    weights: Tensor
    passed: Tensor  # the tensor in which the model has them now
    turned: Tensor | None = None  # with queries and keys swapped, for values @ weights.mT


@dataclass
class Call:
    """A module of the model that is running."""

    name: str
    module: nn.Module
    own: bool  # it says its weights itself
    native: bool  # it may take a native kernel
    x: Tensor | None  # what it was given
    seen: list[tuple[str, Tensor | None]] = field(default_factory=list)  # labels, values
    softmaxes: list[Softmax] = field(default_factory=list)
    other_axes: list[int] = field(default_factory=list)  # lengths of what other softmaxes add up


class Watch(TorchFunctionMode):
    """While entered, sees every call of a model's modules; the model is not touched.

    Attributes:
        maps: Layer name -> weights, in the order in which they were seen. Where a layer attends
            several times in one pass, the later ones are called "name#2", "name#3" ...
        doubts: Layer name -> why there is no map of it, or why the map is not one of its tokens.
        modules, ran: All modules of the model, and those that ran, by name.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.maps: dict[str, Tensor] = {}
        self.doubts: dict[str, str] = {}
        self.ran: dict[str, nn.Module] = {}
        self.modules = {  # without what torch.compile puts round a module
            name.replace("_orig_mod.", "").removesuffix("_orig_mod").removesuffix("."): module
            for name, module in model.named_modules()
        }
        self._names = {id(module): name for name, module in self.modules.items()}
        self._calls: list[Call] = []  # the innermost comes last
        self._passes = 0  # calls from outside
        self._pass_of: dict[str, int] = {}
        self._times: Counter[str] = Counter()
        self._why: dict[str, str] = {}  # layers whose softmax was no map
        self._away = False  # what runs now is ours, not the model's

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
        for handle in self._handles:
            handle.remove()
            # torch forgets to; then every compiled module would warn of hooks that are gone
            all_modules._global_forward_hooks_with_kwargs.pop(handle.id, None)

    # --- modules -------------------------------------------------------------------------------

    def _enter(self, module: nn.Module, args: tuple) -> None:
        name = self._names.get(id(module))
        if name is None or self._away or _runs_backwards():
            return
        self._passes += not self._calls
        self.ran[name] = module
        x = args[0] if args and isinstance(args[0], Tensor) else None
        self._calls.append(Call(name, module, says_weights(module), may_be_native(module), x))

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        if id(module) not in self._names or self._away or _runs_backwards():
            return None
        if not self._calls or self._calls[-1].module is not module:  # it ran already, outside
            return None
        call = self._calls.pop()
        if len(rest) < 2:  # after an error
            return None
        kwargs, _ = rest
        self._away = True
        try:
            if call.own:
                with torch.no_grad():
                    self._add(call, lambda: module.attention_weights(*args, **kwargs))  # type: ignore[operator]
            else:
                self._judge(call, [*args, *kwargs.values()])
            if call.native and not any(outer.native for outer in self._calls):
                # what it gives when no mode watches: from its native kernel, the last bit too
                with torch._C.DisableTorchFunction():
                    return module.forward(*args, **kwargs)
        finally:
            self._away = False
        return None

    # --- functions -----------------------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)  # the functions that this one calls are not seen
        watching = self._calls and not self._away and not _runs_backwards()
        if watching and not any(call.own for call in self._calls):
            self._see(func, args, kwargs, out)
        return out

    def _see(self, func: Any, args: tuple, kwargs: dict, out: Any) -> None:
        if func is F.scaled_dot_product_attention:
            values = args[2] if len(args) > 2 else kwargs["value"]
            self._add(self._layer(), lambda: on_the_side(sdpa_weights, *args, **kwargs), values)
        elif func is F.multi_head_attention_forward:
            self._add(self._layer(), lambda: on_the_side(mha_weights, *args, **kwargs))
        elif func in SOFTMAX and out.ndim > 2:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if axis in (-1, out.ndim - 1):
                self._layer().softmaxes.append(Softmax(out.detach().clone(), out))
            else:
                self._layer().other_axes.append(out.shape[0 if axis is None else axis])
        elif args:
            for call in self._calls:
                for softmax in list(call.softmaxes):
                    self._follow(call, softmax, func, args, out)

    def _follow(self, call: Call, softmax: Softmax, func: Any, args: tuple, out: Any) -> None:
        """Is a softmax multiplied with values as it is, or changed before?"""
        passed, turned = softmax.passed, softmax.turned
        equation, tensors = "", args
        if func is torch.einsum:
            equation, tensors = args[0], args[1:]
            if isinstance(tensors[0], (list, tuple)):
                tensors = tuple(tensors[0])
        values = None
        if func in PRODUCT and len(tensors) > 1 and tensors[1] is turned:
            values = tensors[0].mT
        elif not any(tensor is passed for tensor in tensors):
            return
        elif func in KEEPS or (func in RESHAPES and out.shape[-2:] == passed.shape[-2:]):
            softmax.passed = out
        elif (func in PRODUCT and tensors[0] is passed) or sums_over_keys(
            equation, tensors, passed
        ):
            values = next(tensor for tensor in tensors if tensor is not passed)
        elif CHANGES.search(func.__name__):
            softmax.passed = softmax.weights  # no longer what the model goes on with
        elif is_transpose(out, passed):
            softmax.turned = out
        if values is not None:
            call.softmaxes.remove(softmax)
            self._add(call, lambda: softmax.weights.view(passed.shape), values)

    def _layer(self) -> Call:
        """The layer that attends: the innermost with parameters (an nn.Softmax has none)."""
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
        self.maps[label] = weights()
        call.seen.append((label, values))

    # --- doubts --------------------------------------------------------------------------------

    def _judge(self, call: Call, inputs: list[Any]) -> None:
        """Hold what a layer's call has shown against the tokens that it was given."""
        given = [
            x for x in inputs if isinstance(x, Tensor) and x.is_floating_point() and x.ndim > 1
        ]
        why = ""
        if call.other_axes:
            why = "it takes a softmax over another axis than the last"
        elif call.softmaxes:
            why = "it changes its softmax before it is multiplied with values"
        elif len(call.seen) > 1:
            why = "it attends more than once in one call"
        if why:
            self._why[call.name] = why
        unread = {*call.other_axes, *(softmax.weights.shape[-1] for softmax in call.softmaxes)}
        if given and not call.seen and tokens_of(given[:1], len(given[0])) & unread:
            self.doubts[call.name] = why  # whatever its class is called
        for label, values in call.seen:
            weights = self.maps[label]
            if given and weights.ndim == 3:
                weights = self.maps[label] = with_heads(weights, given[0])
            doubt = why
            if given and not why:
                doubt = not_of_tokens(weights, values, given, strict=bool(self._calls))
                around = (outer.x for outer in self._calls[::-1] if outer.x is not None)
                doubt = doubt or padded(weights, given[0], next(around, None))
            if doubt:
                self.doubts[label] = doubt

    def close(self) -> None:
        """Add the layers to the doubts that ran, attend by their name, and have no map."""
        for name, module in self.ran.items():
            if re.search("softmax|attention", str(getattr(module, "inlined_graph", ""))):
                self.doubts[name] = "it is TorchScript, which runs unseen"
        layers = {label.partition("#")[0] for label in self.maps}
        within = [name for name in layers if _attends(self.ran[name])]
        blank = [
            name
            for name, module in self.ran.items()
            if _attends(module)
            and not any(is_part(doubt, of=name) for doubt in self.doubts)
            and not any(is_part(layer, of=name) for layer in layers)
            and not any(is_part(name, of=layer) for layer in within)
        ]
        for name in blank:
            if not any(is_part(other, of=name) for other in blank if other != name):
                reasons = [why for part, why in self._why.items() if is_part(part, of=name)]
                self.doubts[name] = (reasons or ["no function that it calls is known to attend"])[0]


def says_weights(module: nn.Module) -> bool:
    """Has it a method ``attention_weights`` that belongs to the ``forward`` it has?"""
    method = getattr(module, "attention_weights", None)
    if not callable(method) or isinstance(method, nn.Module):
        return False
    if "attention_weights" in vars(module):
        return True
    for kind in type(module).__mro__:  # what is defined with or after the newest forward is of it
        if "attention_weights" in vars(kind):
            return True
        if "forward" in vars(kind):
            return False
    return False


def may_be_native(module: nn.Module) -> bool:
    """Could it take a native kernel, were it not watched? Hooks on its parts would keep it."""
    if not isinstance(module, NATIVE) or module.training:
        return False
    inner = [part for part in module.modules() if part is not module]
    return not any(part._forward_hooks or part._forward_pre_hooks for part in inner)


def is_part(name: str, of: str) -> bool:
    """Is the module of this name the other one, or inside it?"""
    return not of or name == of or name.startswith(of + ".")


def _attends(module: nn.Module) -> bool:
    return bool(ATTENDS.search(type(module).__name__)) or says_weights(module)


def _runs_backwards() -> bool:
    """Is this a checkpoint that runs a second time, for the gradients?"""
    return torch._C._current_graph_task_id() != -1
