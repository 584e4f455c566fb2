"""A layer of one's own: read from a file; what cannot be compared is refused with a sentence."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitbook.files import defined_in

SAME = 1e-4  # relative difference that batches of another size may make
OFFERED = ("embed_dim", "num_tokens", "grid", "num_heads")  # what a layer's constructor may ask


class StoppedError(Exception):
    """Ends a contest at once; no other width would help. The message says why."""


class WithoutMask(nn.Module):
    """Lets a layer that is called with tokens alone stand in an ``EncoderBlock``."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return self.layer(x)


def read_layer(place: str) -> Callable[..., nn.Module]:
    """The class of "file.py:MyMixing".

    Raises:
        ValueError: No such file or class, or one whose constructor asks for what is not offered.
    """
    found = defined_in(place, "LAYER", "CLASS")
    require_offered(found, place.rpartition(":")[2])
    return found


def source_of(place: str) -> str:
    """The text of "file.py:MyMixing": the class and what it uses of its file, without comments.

    What it does not name, such as another class, is not part of it; what the file does besides
    defining names, such as a call, is. What it imports is not looked into.
    """
    path, _, name = place.rpartition(":")
    whole = ast.parse(Path(path).read_bytes())
    left, wanted = whole.body[ast.get_docstring(whole) is not None :], {name}
    used: list[ast.stmt] = []
    while found := [one for one in left if not (names := _bound(one)) or names & wanted]:
        left, used = [one for one in left if one not in found], used + found
        wanted |= {n.id for one in found for n in ast.walk(one) if isinstance(n, ast.Name)}
    return "\n".join(ast.unparse(one) for one in sorted(used, key=lambda one: one.lineno))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a file defines, if it does no more than that."""
    match statement:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom() if statement.names[0].name != "*":
            return {(one.asname or one.name).partition(".")[0] for one in statement.names}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
            return {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    return set()


def require_offered(found: Callable[..., Any], name: str) -> None:
    """Refuse a layer whose constructor asks for what is not offered.

    Raises:
        ValueError: It names the parameter.
    """
    for parameter in inspect.signature(found).parameters.values():
        needed = parameter.default is parameter.empty
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if needed and not variable and parameter.name not in OFFERED:
            raise ValueError(
                f"LAYER: {name} asks for {parameter.name}, which has no default; what a layer may "
                f"ask for by name: {', '.join(OFFERED)}"
            )


def made(layer: Callable[..., nn.Module], **offered: Any) -> nn.Module:
    """The layer, given by name what its constructor asks for.

    Raises:
        TypeError: It makes no module.
    """
    asked = inspect.signature(layer).parameters
    built = layer(**{name: value for name, value in offered.items() if name in asked})
    if not isinstance(built, nn.Module):
        raise TypeError(f"LAYER must make a torch.nn.Module, got {type(built).__name__}")
    return WithoutMask(built)


def require_mixer(layer: nn.Module, num_tokens: int, embed_dim: int) -> None:
    """Refuse what is no token mixer (B, N, D) -> (B, N, D) that judges each image by itself.

    Raises:
        ValueError: The message says what it does instead.
    """
    layer = layer.eval()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, num_tokens, embed_dim, generator=generator, requires_grad=True)
    try:
        out = layer(x)
    except StoppedError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"LAYER refuses tokens of {tuple(x.shape)} ({type(error).__name__}: {said})"
        ) from None
    if not isinstance(out, Tensor) or out.shape != x.shape:
        what = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f"LAYER must give the shape that it takes: for {tuple(x.shape)} it gave {what}"
        )
    if not out.isfinite().all():
        raise ValueError("LAYER gives nan or inf for normally distributed tokens")
    if (
        not out.requires_grad
        or not torch.autograd.grad(out.sum(), x, allow_unused=True)[0] is not None
    ):
        raise ValueError("LAYER cuts the gradient to its tokens: look for detach or no_grad")
    with torch.no_grad():
        size = out.abs().max().item() + 1e-12
        if (layer(x) - out).abs().max().item() > SAME * size:
            raise ValueError("LAYER gives another answer to the same tokens in evaluation mode")
        alone = torch.cat([layer(one[None]) for one in x])
        if (alone - out).abs().max().item() > SAME * size:
            raise ValueError(
                "LAYER looks at the other images of the batch: alone, an image gets another answer "
                "(batch_first=True of nn.MultiheadAttention? a norm over the batch?)"
            )
