"""Pack images and attention maps into one interactive HTML figure."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np
import torch
from torch import Tensor

from vitbook import require
from vitbook.inspection.maps import require_tokens_fit

MAX_PAYLOAD = 3_000_000  # bytes of maps and images; more would make a page slow to load and to use
DARK = (  # where dark means dark: the book, Colab, JupyterLab, VS Code
    'html[data-theme="dark"]',
    'html[theme="dark"]',
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
)
SYSTEM_DARK = (  # where the system decides: none of them says light
    'html:not([data-theme="light"]):not([theme="light"])'
    ' body:not([data-jp-theme-light="true"]):not(.vscode-light)'
)


class AttentionExplorer:
    """What ``attention_explorer`` returns; a notebook shows it as an interactive figure.

    Args:
        data: What the figure's script reads, ready for JSON.
        fallback: HTML for readers without JavaScript.
    """

    def __init__(self, data: dict, fallback: str):
        self.data = data
        self._fallback = fallback

    def _repr_html_(self) -> str:
        """One element that holds its data, style and script, and needs nothing else.

        The attribute data-lm-suppress-shortcuts asks JupyterLab to leave the arrow keys to it.
        """
        payload = json.dumps(self.data | {"css": _read("figure.css")}, separators=(",", ":"))
        payload = payload.replace("<", "\\u003c")  # else a label could end the script element
        key = hashlib.sha256(payload.encode()).hexdigest()[:12]
        return (
            f'<div class="vitbook-explorer" data-key="{key}" data-lm-suppress-shortcuts="true">'
            f"{self._fallback}"
            f'<style onload="{html.escape(_START_AGAIN)}">{_host_css()}</style>'
            f'<script type="application/json">{payload}</script>'
            f"<script>{_read('figure.js')}</script></div>"
        )

    def __repr__(self) -> str:
        B, (rows, columns) = len(self.data["labels"]), self.data["grid"]
        return (
            f"AttentionExplorer: {B} images, {self.data['layers']} layers, "
            f"{self.data['heads']} heads, {rows} x {columns} patches"
        )


# A script does not run where a page is filled by innerHTML, but the load event of a style sheet
# does fire; it puts the script in once more, which starts the figure if it has not started yet.
# While a page is still being read the script runs by itself, and may not be complete: wait.
_START_AGAIN = (
    "var r=this.closest('.vitbook-explorer');function go(){if(r.shadowRoot)return;"
    "var s=document.createElement('script');"
    "s.textContent=r.querySelector('script:not([type])').textContent;r.appendChild(s)}"
    "document.readyState==='loading'?document.addEventListener('DOMContentLoaded',go):go()"
)


def attention_explorer(
    images: Tensor,
    maps: Tensor,
    grid: int | tuple[int, int],
    *,
    num_prefix: int = 1,
    labels: Sequence[str] | None = None,
    marks: Tensor | None = None,
    marks_label: str = "known targets",
    layer: int | None = None,
    head: int | str = "mean",
    query: int | None = None,
    invert: bool = False,
    title: str = "Attention explorer",
) -> AttentionExplorer:
    """An interactive figure: choose image, layer, head and query, and see where it looks.

    It needs no library and no network, and works in the book, in JupyterLab and in Colab, with
    mouse, touch and keyboard; what it shows is also spoken. The mean of the heads and the rollout
    are computed in the page. A weight is handed over as one byte: it is exact to 1/255 of the
    largest weight of its row, and small weights are more exact than that.

    Args:
        images: (B, C, H, W) or (B, H, W) with C = 1 or 3; values outside 0 ... 1 are stretched.
        maps: Attention weights (L, B, h, N, N).
        grid: (rows, columns) of patches, or one number for a square grid; divides the image.
        num_prefix: How many tokens stand before the patches; the first is the class token.
        labels: B short texts, one for each image; "image 1" and so on, if not said.
        marks: Boolean (B, rows * columns): patches with a dashed frame, for example the partner
            that attention should find.
        marks_label: What the dashed frames mean.
        layer: The layer shown first, an index; the last, if not said.
        head: The head shown first, an index, "mean" or "rollout".
        query: The token shown first, an index; the class token or the middle, if not said.
        invert: Whether dark pixels are the ink. As it is, bright strokes are (one channel only).
        title: The figure's name for screen readers.

    Raises:
        TypeError: A tensor is of the wrong type.
        ValueError: Sizes do not fit together, a choice does not exist, or the figure would hold
            more than 3 MB; then take fewer images or layers.
    """
    rows, columns = require_tokens_fit(maps, grid, num_prefix)
    pixels = _pixels(images, invert)  # (B, H, W, C)
    L, B, h, N, _ = maps.shape
    B_images, H, W, C = pixels.shape
    if B_images != B:
        raise ValueError(f"images must be as many as maps hold, {B}, got {B_images}")
    if H % rows or W % columns:
        raise ValueError(f"grid {rows} x {columns} does not divide the image of {H} x {W} pixels")
    size = maps.numel() + 4 * maps[..., 0].numel() + pixels.size
    if size > MAX_PAYLOAD:
        raise ValueError(
            f"maps and images make {size / 1e6:.1f} MB, at most {MAX_PAYLOAD / 1e6:g} MB fit into "
            "a page; pass fewer images or layers"
        )
    labels = [f"image {i + 1}" for i in range(B)] if labels is None else [str(x) for x in labels]
    if len(labels) != B:
        raise ValueError(f"labels must hold one text for each of {B} images, got {len(labels)}")
    codes, peaks = quantise(maps)
    data = {
        "title": str(title),
        "layers": L,
        "heads": h,
        "grid": [rows, columns],
        "prefix": num_prefix,
        "size": [H, W],
        "channels": C,
        "labels": labels,
        "start": _start(layer, head, query, L, h, N),
        "images": _base64(pixels),
        "weights": _base64(codes),
        "peaks": _base64(peaks),
    }
    if marks is not None:
        data |= {"marks": _base64(_marks(marks, B, rows * columns)), "marksLabel": str(marks_label)}
    return AttentionExplorer(data, _fallback(maps[:, 0], labels[0], (rows, columns), num_prefix, B))


def quantise(maps: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Write each weight as one byte, finer for small weights than for large ones.

    Args:
        maps: Attention weights (L, B, h, N, N).

    Returns:
        Bytes (B, L, h, N, N) and the rows' largest weights (B, L, h, N), little-endian float32.
        A weight is (byte / 255) ** 2 times its row's largest weight, exact to sqrt(weight *
        largest) / 255, which is at most 1/255 of the largest.
    """
    weights = maps.detach().to("cpu", torch.float64).transpose(0, 1).numpy()
    peaks = weights.max(axis=-1).astype("<f4")
    shares = weights / np.where(peaks > 0, peaks, 1)[..., None]
    return np.rint(255 * np.sqrt(shares)).clip(0, 255).astype(np.uint8), peaks


def _pixels(images: Tensor, invert: bool) -> np.ndarray:
    """Bytes (B, H, W, C) of the images."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, got {type(images).__name__}")
    if images.ndim not in (3, 4):
        raise ValueError(f"images must have the axes (B, C, H, W), got {tuple(images.shape)}")
    images = images if images.ndim == 4 else images[:, None]
    if not images.numel() or images.shape[1] not in (1, 3):
        raise ValueError(
            "images must be at least one, with 1 or 3 channels and pixels, "
            f"got the shape {tuple(images.shape)}"
        )
    values = images.detach().cpu().double() / (255 if images.dtype == torch.uint8 else 1)
    if not bool(values.isfinite().all()):
        raise ValueError("images must be finite, got nan or infinity")
    low, high = values.aminmax()
    if low < 0 or high > 1:
        values = (values - low) / (high - low if high > low else 1)
    values = 1 - values if invert and images.shape[1] == 1 else values
    return values.mul(255).round().byte().permute(0, 2, 3, 1).numpy()


def _start(
    layer: int | None, head: int | str, query: int | None, L: int, h: int, N: int
) -> dict[str, int]:
    start = {"layer": L - 1 if layer is None else require.whole("layer", layer, at_least=0)}
    if start["layer"] >= L:
        raise ValueError(f"layer must be below {L}, the number of layers, got {layer}")
    if head in ("mean", "rollout"):
        start["head"] = h if head == "mean" else h + 1
    elif isinstance(head, str) or require.whole("head", head, at_least=0) >= h:
        raise ValueError(f'head must be below {h}, "mean" or "rollout", got {head!r}')
    else:
        start["head"] = head
    if query is not None:
        start["query"] = require.whole("query", query, at_least=0)
        if query >= N:
            raise ValueError(f"query must be below N = {N}, the number of tokens, got {query}")
    return start


def _marks(marks: Tensor, B: int, patches: int) -> np.ndarray:
    if not isinstance(marks, Tensor) or marks.dtype != torch.bool:
        kind = marks.dtype if isinstance(marks, Tensor) else type(marks).__name__
        raise TypeError(f"marks must be a boolean tensor (B, rows * columns), got {kind}")
    if marks.shape != (B, patches):
        raise ValueError(f"marks must have the shape {(B, patches)}, got {tuple(marks.shape)}")
    return marks.cpu().numpy().astype(np.uint8)


def _fallback(maps: Tensor, label: str, grid: tuple[int, int], num_prefix: int, count: int) -> str:
    """A table in words for the first image (L, h, N, N): what each head looks at most."""
    rows, columns = grid
    query = 0 if num_prefix else rows // 2 * columns + columns // 2
    seen_from = "the class token" if num_prefix else f"the patch in {_place(query, columns)}"
    cells = []
    for number, heads in enumerate(maps[:, :, query, num_prefix:], start=1):  # (h, N_patches)
        cells.append(f"<tr><th>layer {number}</th>")
        for shares in heads:
            place = _place(int(shares.argmax()), columns)
            cells.append(f"<td>{100 * float(shares.max()):.1f} % on {place}</td>")
        cells.append("</tr>")
    heads = "".join(f"<th>head {i + 1}</th>" for i in range(maps.shape[1]))
    return (
        f"<p>This figure is interactive and needs JavaScript. It holds the attention of {count} "
        f"images. Where {seen_from} looks most in “{html.escape(label)}”:</p>"
        f"<table><tr><td></td>{heads}</tr>{''.join(cells)}</table>"
    )


def _place(patch: int, columns: int) -> str:
    return f"row {patch // columns + 1}, column {patch % columns + 1}"


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _read(name: str) -> str:
    return resources.files("vitbook.explorer").joinpath(name).read_text(encoding="utf-8")


def _host_css() -> str:
    """The colours of both themes, on the element itself, so that its surroundings can decide."""
    light, dark = _read("host.css").split("DARK")
    colours, rest = dark.split("}", 1)
    by_page = ", ".join(f"{where} .vitbook-explorer" for where in DARK)
    by_system = f"{SYSTEM_DARK} .vitbook-explorer {colours.strip()}}}"
    return (
        f"{light}@media (prefers-color-scheme: dark) {{ {by_system} }}\n"
        f"{by_page} {colours.strip()}}}{rest}"
    )
