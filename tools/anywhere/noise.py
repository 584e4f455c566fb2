"""Rounding as another processor might do it: noise on the results of torch's operations.

Processors add up in another order, so the results of products, convolutions, softmax and norms
differ in their last digit, forward and backward; what is copied, compared or drawn does not.
As on a processor, the same operation on the same numbers gives the same result again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

ROUNDING = {torch.float32: 6e-8, torch.float64: 1.1e-16}  # half of the last digit
DRAWN = 2e-6  # relative; float32 draws of two instruction sets differ by up to 1.8e-6
_PRODUCTS = "mm addmm bmm baddbmm addbmm mv addmv dot vdot linear _native_multi_head_attention"
_CONVOLUTIONS = "convolution convolution_backward mkldnn_convolution"
_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
_SOFTMAX = "_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data logsumexp"
_NORMS = "native_layer_norm native_batch_norm native_group_norm _fused_rms_norm linalg_vector_norm"
_NAMES = " ".join([_PRODUCTS, _CONVOLUTIONS, _ATTENTION, _SOFTMAX, _NORMS]).split()
ROUNDED = frozenset(_NAMES) | {f"{name}_backward" for name in _NAMES}
RANDOM = frozenset({"normal_", "normal", "randn", "randn_like", "rand", "rand_like", "uniform_"})
UNIFORM = frozenset({"rand", "rand_like", "uniform_"})
_LENGTH = 1 << 17


class Noise(TorchDispatchMode):
    """While it is entered, results are multiplied by 1 + noise.

    Args:
        seed: of the noise; torch's own generators are not touched.
        names: operations whose results are changed.
        scale: of the noise for each type; what is not named stays as it is.
    """

    def __init__(
        self,
        seed: int,
        names: frozenset[str] = ROUNDED,
        scale: dict[torch.dtype, float] = ROUNDING,
    ):
        super().__init__()
        self._names, self._seed = names, seed
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(_LENGTH, generator=generator, dtype=torch.float64)
        self._factors = {kind: (1 + size * noise).to(kind) for kind, size in scale.items()}
        self.changed = 0  # results so far

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name in self._names:
            for one in result if isinstance(result, tuple | list) else (result,):
                if isinstance(one, Tensor) and one.dtype in self._factors:
                    self._change(one)
                    if name in UNIFORM:  # a draw stays inside, where erfinv and log are finite
                        least, most = args[1:3] if len(args) > 2 and name == "uniform_" else (0, 1)
                        one.clamp_(least, most - 1e-7 * (most - least))
        return result

    def _change(self, result: Tensor) -> None:
        if result.numel() == 0 or result.is_meta or isinstance(result, FakeTensor):
            return  # nothing is computed
        size, factors = result.numel(), self._factors[result.dtype]
        self.changed += 1
        if size > _LENGTH // 2:
            factors = factors.repeat(2 * size // _LENGTH + 1)
        some = result.reshape(-1)[:: size // 16 + 1].tolist()
        start = hash((self._seed, *some)) % (len(factors) - size)
        result.mul_(factors[start : start + size].view(result.shape))


def drawn_otherwise(seed: int) -> Noise:
    """Noise on all that torch draws, as between two instruction sets."""
    return Noise(seed, RANDOM, dict.fromkeys(ROUNDING, DRAWN))
