"""A device that is not the processor, for tests where there is no GPU: what mixes the two fails.

Its tensors hold theirs on the processor, and its operations refuse those that lie there, as CUDA's
do: all but single numbers and indices. To be run in a process of its own, since a device stays.
"""

import json
import sys

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

ACROSS = {"copy_", "_to_copy", "index", "index_put_", "_index_put_impl_"}  # may see both


class Backend(_DummyBackendModule):
    """What torch asks of a device; nothing is drawn on this one."""

    def device_count(self):
        return 1

    def get_amp_supported_dtype(self):
        return [torch.bfloat16]

    def get_rng_state(self, *_):
        return torch.zeros(1)

    def set_rng_state(self, *_):
        """There is none."""

    def manual_seed_all(self, _):
        """There is none."""

    def _is_in_bad_fork(self):
        return False


_setup_privateuseone_for_python_backend("other", backend_module=Backend())
OTHER = torch.device("other:0")


class Elsewhere(Tensor):
    """A tensor that says it is on the other device."""

    @staticmethod
    def __new__(cls, here):
        about = {"strides": here.stride(), "storage_offset": here.storage_offset()}
        made = Tensor._make_wrapper_subclass(
            cls, here.shape, **about, dtype=here.dtype, device=OTHER
        )
        made.here = here
        return made

    def __repr__(self):
        return f"Elsewhere({self.here})"

    def tolist(self):
        return self.here.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return called(func, args, kwargs or {})


def brought(value):
    return value.here if isinstance(value, Elsewhere) else value


def called(func, args, kwargs):
    """An operation, on the device of its tensors or the one that is asked for."""
    name = func._schema.name.removeprefix("aten::")
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    there = [isinstance(one, Elsewhere) for one in tensors]
    strangers = [one for one in tensors if not isinstance(one, Elsewhere) and one.ndim]
    if any(there) and strangers and name not in ACROSS:
        raise RuntimeError(f"Expected all tensors to be on the same device ({name})")
    goes = there[0] if name in ACROSS else any(there)
    if kwargs.get("device") is not None:
        goes = torch.device(kwargs["device"]).type == OTHER.type
        kwargs = {**kwargs, "device": torch.device("cpu")}
    found = func(*tree_map(brought, args), **tree_map(brought, kwargs))
    return tree_map(lambda one: Elsewhere(one) if goes and isinstance(one, Tensor) else one, found)


class OtherDevice(TorchDispatchMode):
    """While it is entered, what is asked for on the other device is made there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return called(func, args, kwargs or {})


def copied(source, target, non_blocking=False):
    brought(target).copy_(brought(source))
    return target


def empty(size, stride, dtype=None, **_):
    return Elsewhere(torch.empty_strided(size, stride, dtype=dtype))


def errors_of(probes):
    """By name what each of these functions raises, "" for nothing, on standard output as JSON."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    library = torch.library.Library("aten", "IMPL")  # what torch.as_tensor calls without a mode
    library.impl("empty_strided", empty, "PrivateUse1")
    library.impl("_copy_from", copied, "PrivateUse1")
    found = {}
    with OtherDevice():
        for name, probe in probes.items():
            try:
                probe(OTHER)
                found[name] = ""
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    json.dump(found, sys.stdout)
