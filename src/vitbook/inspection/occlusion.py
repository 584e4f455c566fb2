"""Test a map: what does an answer lose when a patch is replaced, and what foretells it?"""

from contextlib import suppress

import torch
from torch import Tensor, nn

from vitbook import require


def occlusion(
    model: nn.Module,
    images: Tensor,
    patch_size: int,
    paint: Tensor | None = None,
    target: int | Tensor | None = None,
) -> Tensor:
    """Replace one patch at a time, and see what an answer of the model loses.

    Args:
        model: Any classifier, images (B, C, H, W) -> logits (B, K), or an output that holds
            ``logits``, as transformers' do. It stays in the mode it is in.
        images: (B, C, H, W).
        patch_size: P in pixels; must divide H and W.
        paint: Images (B, C, H, W) from which the new patch is taken, at the same place; by
            default each image's own mean colour.
        target: The class that is followed, one for all images or one for each (B,); by default
            what the model answers to the unchanged image.

    Returns:
        By how many nats the log-probability of the answer falls, (B, rows, columns). Negative
        where the answer becomes surer.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.

    Source: Zeiler & Fergus 2014, section 4.2.
    """
    B = len(require.floats("images", images, "(B, C, H, W)"))
    rows, columns = _grid(images, patch_size)
    paint = _paint(images, paint)
    drops = torch.empty(B, rows, columns, device=images.device)
    with torch.no_grad():
        before, answers = _answers(model, images, target)  # (B,), (B,)
        for row in range(rows):
            for column in range(columns):
                down = slice(row * patch_size, (row + 1) * patch_size)
                right = slice(column * patch_size, (column + 1) * patch_size)
                changed = images.clone()
                changed[:, :, down, right] = paint[:, :, down, right]
                after = logits_of(model, changed).log_softmax(dim=-1)  # (B, K)
                drops[:, row, column] = before - after.gather(1, answers[:, None])[:, 0]
    return drops


def gradient_drop(
    model: nn.Module,
    images: Tensor,
    patch_size: int,
    paint: Tensor | None = None,
    target: int | Tensor | None = None,
) -> Tensor:
    """What :func:`occlusion` would find in a linear model: one backward pass, all patches.

    The gradient of the answer's log-probability, times the change of each pixel, is added up over
    the patch; inside ``torch.no_grad()``, too.

    Args:
        model, images, patch_size, paint, target: As for :func:`occlusion`.

    Returns:
        The foretold drops in nats (B, rows, columns).

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
    """
    require.floats("images", images, "(B, C, H, W)")
    rows, columns = _grid(images, patch_size)
    paint = _paint(images, paint)
    with torch.inference_mode(False), torch.enable_grad():
        x = images.detach().clone().requires_grad_()
        answers = _answers(model, x, target)[0]
        if not answers.requires_grad:
            raise ValueError(
                "model must keep gradients, and its answers have none (torch.no_grad?)"
            )
        (gradient,) = torch.autograd.grad(answers.sum(), x)
    by_pixel = (gradient * (images - paint)).sum(dim=1)  # (B, H, W)
    tiles = by_pixel.unflatten(2, (columns, patch_size)).unflatten(1, (rows, patch_size))
    return tiles.sum(dim=(2, 4))  # from (B, rows, P, columns, P)


def rank_correlation(x: Tensor, y: Tensor) -> Tensor:
    """Spearman's rank correlation over the last axis; equal values share their mean rank.

    Args:
        x, y: Numbers (..., n), of shapes that broadcast.

    Returns:
        (...), from -1 to 1: 1 where both put the n in the same order. nan where all are equal, or
        one of them is nan.

    Raises:
        TypeError: One is no tensor of numbers that have an order.
        ValueError: The last axes differ, or hold fewer than two numbers; or the others do not fit.
    """
    for name, values in (("x", x), ("y", y)):
        kind = require.tensor(name, values, "(..., n)").dtype
        if kind == torch.bool or kind.is_complex:
            raise TypeError(f"{name} must hold whole or floating-point numbers, got {kind}")
    n = 0
    with suppress(RuntimeError):  # they do not broadcast
        n = torch.broadcast_shapes(x.shape, y.shape)[-1]
    if n < 2 or x.shape[-1] != y.shape[-1]:
        raise ValueError(
            "x and y must have the same last axis, of two numbers or more, and others that "
            f"broadcast, got the shapes {tuple(x.shape)} and {tuple(y.shape)}"
        )
    a, b = (r - r.mean(dim=-1, keepdim=True) for r in (_ranks(x), _ranks(y)))
    return (a * b).sum(dim=-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def logits_of(model: nn.Module, images: Tensor) -> Tensor:
    if not callable(model):
        raise TypeError(f"model must be a function of images, as modules are, got {model!r}")
    out = model(images)
    logits = out if isinstance(out, Tensor) else getattr(out, "logits", None)
    if not isinstance(logits, Tensor):
        raise ValueError(f"model must give logits (B, K) for images, got {type(out).__name__}")
    shape, kind = tuple(logits.shape), logits.dtype
    if (
        shape[:1] != (len(images),)
        or shape[1:] < (1,)
        or len(shape) > 2
        or not kind.is_floating_point
    ):
        raise ValueError(
            f"model must give logits (B, K) for images, floating-point numbers with B = "
            f"{len(images)} and K of 1 or more, got {shape} of {kind}"
        )
    return logits


def _answers(
    model: nn.Module, images: Tensor, target: int | Tensor | None
) -> tuple[Tensor, Tensor]:
    """The log-probabilities of the classes that are followed, and their numbers, both (B,)."""
    says = logits_of(model, images).log_softmax(dim=-1)  # (B, K)
    if target is None:
        best, answers = says.max(dim=-1)
        return best, answers
    B, K = says.shape
    classes = torch.tensor(torch.nan)
    with suppress(TypeError, ValueError, RuntimeError):  # it is no number
        classes = torch.as_tensor(target, device=says.device)
    whole = not (classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool)
    if not whole or classes.shape not in ((), (B,)):
        raise ValueError(
            f"target must be a class or one for each of the {B} images, whole numbers; got {target}"
        )
    if B and not 0 <= int(classes.min()) <= int(classes.max()) < K:
        raise ValueError(f"target must lie between 0 and {K - 1}, got {target}")
    answers = classes.long().expand(B)
    return says.gather(1, answers[:, None])[:, 0], answers


def _ranks(x: Tensor) -> Tensor:
    """How many are below, plus half of those that are equal; nan beside a nan."""
    x = x.contiguous()
    ordered = x.sort(dim=-1).values
    below, above = (torch.searchsorted(ordered, x, right=right) for right in (False, True))
    return ((below + above).double() / 2).masked_fill(x.isnan().any(-1, keepdim=True), torch.nan)


def _grid(images: Tensor, patch_size: int) -> tuple[int, int]:
    """Rows and columns of patches."""
    H, W = images.shape[2:]
    size = require.whole("patch_size", patch_size)
    if H % size or W % size:
        raise ValueError(f"patch_size must divide the image of {H} x {W} pixels, got {size}")
    return H // size, W // size


def _paint(images: Tensor, paint: Tensor | None) -> Tensor:
    """What replaces a patch, as large as the images."""
    if paint is None:
        return images.mean(dim=(2, 3), keepdim=True).expand_as(images)
    if require.floats("paint", paint, "(B, C, H, W)").shape != images.shape:
        raise ValueError(
            f"paint must have the shape of images, {tuple(images.shape)}, got {tuple(paint.shape)}"
        )
    return paint
