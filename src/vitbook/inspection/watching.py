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
    seen: list[tuple[str, Tensor | None]] = field(default_factory=list)  # labels, values
    softmaxes: list[Softmax] = field(default_factory=list)
    other_axes: list[int] = field(default_factory=list)  # lengths of what other softmaxes add up


class Watch(TorchFunctionMode):
    """While entered, sees every call of a model's modules; the model is not touched.

    Attributes:
        maps: Layer name -> weights, in the order in which they were seen. Where a layer attends
            several times in one pass, the later ones are called "name#2", "name#3" ...
        doubts: Layer name -> why there is no map of it, or why the map is not one of its tokens.
        ran: The modules that ran, by name.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.maps: dict[str, Tensor] = {}
        self.doubts: dict[str, str] = {}
        self.ran: dict[str, nn.Module] = {}
        self._names = {  # without what torch.compile puts round a module
            id(module): name.replace("_orig_mod.", "").removesuffix("_orig_mod")
            for name, module in model.named_modules()
        }
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

    # --- modules -------------------------------------------------------------------------------

    def _enter(self, module: nn.Module, args: tuple) -> None:
        name = self._names.get(id(module))
        if name is None or self._away or _runs_backwards():
            return
        self._passes += not self._calls
        self.ran[name] = module
        self._calls.append(Call(name, module, says_weights(module)))

    def _leave(self, module: nn.Module, args: tuple, *rest: Any) -> Any:
        if id(module) not in self._names or self._away or _runs_backwards():
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
            native = isinstance(module, NATIVE) and not module.training
            if native and not any(isinstance(outer.module, NATIVE) for outer in self._calls):
                return self._as_alone(module, args, kwargs)
        finally:
            self._away = False
        return None

    @staticmethod
    def _as_alone(module: nn.Module, args: tuple, kwargs: dict) -> Any:
        """What the module gives when no mode watches: from its native kernel, the last bit too."""
        inner = [part for part in module.modules() if part is not module]
        if any(part._forward_hooks or part._forward_pre_hooks for part in inner):
            return None  # somebody else's hooks would see it twice; they rule the kernel out, too
        with torch._C.DisableTorchFunction():
            return module.forward(*args, **kwargs)

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
        x = next((x for x in inputs if isinstance(x, Tensor) and x.is_floating_point()), None)
        lengths = call.other_axes + [softmax.weights.shape[-1] for softmax in call.softmaxes]
        why = ""
        if call.other_axes:
            why = "it takes a softmax over another axis than the last"
        elif call.softmaxes:
            why = "it changes its softmax before it is multiplied with values"
        elif len(call.seen) > 1:
            why = "it attends more than once in one call"
        if why:
            self._why[call.name] = why
        if x is not None and tokens_of(x, len(x)) & set(lengths) and not call.seen:
            self.doubts[call.name] = why  # whatever its class is called
        for label, values in call.seen:
            weights = self.maps[label]
            if x is not None and weights.ndim == 3:
                weights = self.maps[label] = with_heads(weights, x)
            doubt = why or (not_of_tokens(weights, values, x) if x is not None else "")
            if doubt:
                self.doubts[label] = doubt

    def close(self) -> None:
        """Add the layers to the doubts that ran, attend by their name, and have no map."""
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


def not_of_tokens(weights: Tensor, values: Tensor | None, x: Tensor) -> str:
    """Why the rows or columns of a map are not the tokens of the layer's input x, or nothing."""
    tokens = tokens_of(x, len(weights))
    Nq, Nk = weights.shape[-2:]
    width = values.shape[-1] if values is not None else 0
    if not tokens & {Nq, Nk} and tokens & {width, *weights.shape[1:-2]}:
        return f"its {Nq} x {Nk} weights are not of its {min(tokens)} tokens: channels attend"
    if values is not None and Nq == Nk == width and Nq in tokens and values.stride(-1) != 1:
        return f"{Nq} tokens and heads of width {Nq}: it is open which of the two attend"
    return ""


def tokens_of(x: Tensor, batch: int) -> set[int]:
    """How many tokens a layer's input may hold: (N, D), (B, N, D), (N, B, D) or an image's."""
    if x.ndim < 4:
        return {x.shape[1] if x.ndim == 3 and batch != x.shape[1] else x.shape[0]}
    return {x.shape[1] * x.shape[2], x.shape[2] * x.shape[3]}


def with_heads(weights: Tensor, x: Tensor) -> Tensor:
    """Maps (B, N_q, N_k) of one head, or (h, N_q, N_k) of one sequence, with both axes."""
    if x.ndim == 2:
        return weights[None]
    if x.ndim == 3 and x.shape[1] != weights.shape[1]:
        return weights  # perhaps (N, B, D)
    if len(weights) == len(x):
        return weights[:, None]
    return weights[None] if len(x) == 1 else weights


def sums_over_keys(equation: Any, tensors: tuple, weights: Tensor) -> bool:
    """Does an einsum add up something over the last axis of the weights?"""
    if not isinstance(equation, str) or not equation:
        return False
    inputs, _, out = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    at = next(i for i, tensor in enumerate(tensors) if tensor is weights)
    others = [term for i, term in enumerate(terms) if i != at]
    return terms[at][-1] not in out and any(terms[at][-1] in term for term in others)


def is_transpose(out: Any, x: Tensor) -> bool:
    """Is it the same memory, with the last two axes swapped?"""
    if not isinstance(out, Tensor) or out.shape != x.mT.shape or out.stride() != x.mT.stride():
        return False
    return out.data_ptr() == x.data_ptr()


def is_part(name: str, of: str) -> bool:
    """Is the module of this name the other one, or inside it?"""
    return not of or name == of or name.startswith(of + ".")


def _attends(module: nn.Module) -> bool:
    return bool(ATTENDS.search(type(module).__name__)) or says_weights(module)


def _runs_backwards() -> bool:
    """Is this a checkpoint that runs a second time, for the gradients?"""
    return torch._C._current_graph_task_id() != -1
