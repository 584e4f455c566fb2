"""The residual block and its stack, pre- or post-norm."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from vitbook import require
from vitbook.layers.residual import DropPath, LayerScale


def _exact_gelu(x: Tensor) -> Tensor:
    return F.gelu(x)


def _tanh_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _quick_gelu(x: Tensor) -> Tensor:
    return x * (1.702 * x).sigmoid()


# The exact GELU and two that are close to it: only the one that was trained with is right.
GELUS: dict[str, Callable[[Tensor], Tensor]] = {
    "exact": _exact_gelu,
    "tanh": _tanh_gelu,
    "quick": _quick_gelu,
}


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each token on its own.

    Args:
        embed_dim: D, the width of a token.
        hidden_dim: Width between the two layers.
        dropout: Dropout rate of the hidden values, while training.
        gelu: "exact", or an approximation: "tanh" (BERT's code) or "quick" (OpenAI's CLIP).

    Source: Dosovitskiy et al. 2021, section 3.1; for GELU Hendrycks and Gimpel 2016.
    """

    def __init__(
        self, *, embed_dim: int, hidden_dim: int, dropout: float = 0.0, gelu: str = "exact"
    ):
        super().__init__()
        embed_dim = require.whole("embed_dim", embed_dim)
        hidden_dim = require.whole("hidden_dim", hidden_dim)
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.gelu = GELUS[require.one_of("gelu", gelu, tuple(GELUS))]
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.fc2(self.dropout(self.gelu(self.fc1(x))))


class EncoderBlock(nn.Module):
    """Transformer encoder block: x + attn(norm(x)), then x + mlp(norm(x)).

    Args:
        embed_dim: D, the width of a token.
        attn: What mixes the tokens: a module called as ``attn(x, mask)`` that returns the shape
            of x, for example a :class:`~vitbook.layers.attention.MultiHeadSelfAttention`.
        mlp_ratio: Hidden width of the MLP over D.
        norm_first: True for pre-norm (ViT), False for post-norm (the first Transformer).
        dropout: Dropout rate of each branch's output, while training.
        drop_path: Stochastic-depth rate: probability of dropping the residual branch, per sample.
        layer_scale: Where the learned factor of each channel of a branch starts; None: no factor.
        norm_eps: What the norms add to the variance.
        gelu: As in :class:`MLP`.

    Source: Dosovitskiy et al. 2021, equations 2 and 3; Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        *,
        embed_dim: int,
        attn: nn.Module,
        mlp_ratio: float = 4.0,
        norm_first: bool = True,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        layer_scale: float | None = None,
        norm_eps: float = 1e-6,
        gelu: str = "exact",
    ):
        super().__init__()
        embed_dim = require.whole("embed_dim", embed_dim)
        hidden_dim = int(embed_dim * require.real("mlp_ratio", mlp_ratio, above=0))
        self.norm_first = require.truth("norm_first", norm_first)
        self.norm1 = nn.LayerNorm(embed_dim, eps=require.real("norm_eps", norm_eps, above=0))
        self.attn = require.module("attn", attn)
        self.norm2 = nn.LayerNorm(embed_dim, eps=norm_eps)
        self.mlp = MLP(embed_dim=embed_dim, hidden_dim=hidden_dim, dropout=dropout, gelu=gelu)
        self.dropout = nn.Dropout(require.fraction("dropout", dropout))
        rate = require.fraction("drop_path", drop_path)
        ls: Any = (
            nn.Identity if layer_scale is None else partial(LayerScale, embed_dim, layer_scale)
        )
        path: Any = partial(DropPath, rate) if rate else nn.Identity
        self.ls1, self.drop_path1, self.ls2, self.drop_path2 = ls(), path(), ls(), path()
        self.register_load_state_dict_pre_hook(_rename_old)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        drop = self.dropout
        if self.norm_first:
            x = x + self.drop_path1(self.ls1(drop(self.attn(self.norm1(x), mask))))
            x = x + self.drop_path2(self.ls2(drop(self.mlp(self.norm2(x)))))
        else:
            x = self.norm1(x + self.drop_path1(self.ls1(drop(self.attn(x, mask)))))
            x = self.norm2(x + self.drop_path2(self.ls2(drop(self.mlp(x)))))
        return x


def name_today(name: str) -> str:
    """A tensor's name in a state dict; up to release 0.1.1 ``ls1`` was called ``end1.scale``."""
    return re.sub(r"\bend([12])\.scale\.", r"ls\1.", name)


def _rename_old(block: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name_today(name)] = state_dict.pop(name)


class Encoder(nn.Module):
    """A stack of blocks, which need not be alike, and the norm after the last one.

    Args:
        blocks: Modules called as ``block(x, mask)``, in their order.
        norm: What follows them. Pre-norm blocks leave the stream raw, so a ``LayerNorm`` follows;
            post-norm blocks need nothing, ``nn.Identity()``.

    Source: Dosovitskiy et al. 2021, equations 1 to 4.
    """

    def __init__(self, blocks: Iterable[nn.Module], norm: nn.Module):
        super().__init__()
        blocks = [require.module(f"blocks[{i}]", block) for i, block in enumerate(blocks)]
        if not blocks:
            raise ValueError("blocks must hold at least one block, got none")
        self.blocks = nn.ModuleList(blocks)
        self.norm = require.module("norm", norm)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        x = x.contiguous()  # patches come out of a convolution channel by channel: slower to add
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
