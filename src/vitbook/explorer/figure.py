"""Pack images and attention maps into one interactive HTML figure."""

import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.explorer.pack import pack
from vitbook.explorer.page import page
from vitbook.explorer.photograph import look
from vitbook.explorer.still import still
from vitbook.files import write_atomically
from vitbook.inspection.maps import attention_rollout, require_tokens_fit

if TYPE_CHECKING:
    from vitbook.inspection.audit import Audit

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

    def save(self, path: str | Path, audit: "Audit | None" = None, audited: str = "") -> None:
        """Write one file that opens anywhere, also from a disk, prints, and can be sent.

        Args:
            path: A file name that ends in .html.
            audit: What was found about one of its maps; without one the page says that nobody has
                looked.
            audited: Which map that was, for example "the class token's row, layer 12".

        Raises:
            ValueError: The name has another ending.
        """
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"path must end in .html, got {path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(
            path, page(self.data["title"], self._repr_html_(), audit, audited).encode()
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
    images: Tensor | nn.Module,
    maps: Any,
    grid: int | tuple[int, int] | None = None,
    *,
    num_prefix: int | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | tuple[int, int] | None = None,
    layers: str | Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    marks: Tensor | None = None,
    marks_label: str = "known targets",
    layer: int | None = None,
    head: int | str = "mean",
    query: int | None = None,
    invert: bool = False,
    even: bool | None = None,
    most: int | None = None,
    title: str = "Attention explorer",
    notes: Sequence[str] = (),
    warning: str = "",
) -> AttentionExplorer:
    """An interactive figure: choose image, layer, head and query, and see where it looks.

    Call it as ``attention_explorer(model, photograph)``, or with maps that are there already, as
    ``attention_explorer(images, maps, grid)``. The figure needs no library and no network, and
    works in the book, in JupyterLab, in Colab and, saved, as a file; with mouse, touch and
    keyboard; what it shows is also spoken.

    A weight is handed over as one byte, exact to 1/255 of the largest weight of its row. Where the
    maps are too many for 3 MB, the rows of patches get fewer steps, and from more than 14 x 14
    patches on they are pooled, keys and queries. The rows of prefix tokens stay whole. The figure
    says so.

    Args:
        images: A model; or images (B, C, H, W) or (B, H, W) with C = 1 or 3, values outside
            0 ... 1 are stretched.
        maps: With a model the photograph: a file, a PIL image, or pixels (C, H, W) in 0 ... 1. It
            is cut to the model's shape and scaled. With images their attention weights
            (L, B, h, N, N).
        grid: (rows, columns) of patches, or one number for a square grid; divides the image. With
            a model it is worked out.
        num_prefix: How many tokens stand before the patches; the first is the class token. With
            images 1 by default; with a model what the model says.
        mean, std, size: How a model's images were prepared. They are needed where the model has no
            ``pretrained_cfg`` (timm's have one): other ones give plausible, wrong maps.
        layers: Which of a model's layers, as for ``attention_maps``; all by default.
        labels: B short texts, one for each image; "image 1" and so on by default.
        names: What each of the h heads is called after the word head; "1" and so on by default.
        marks: Boolean (B, rows * columns): patches with a dashed frame, for example the partner
            that attention should find.
        marks_label: What the dashed frames mean.
        layer: The layer shown first, an index; the last by default.
        head: The head shown first, an index, "mean" or "rollout".
        query: The token shown first, an index; the class token or the middle by default.
        invert: Whether dark pixels are the ink. As it is, bright strokes are (one channel only).
        even: Whether one scale, in even shares (1/N of all patches), colours all maps; else each
            has its own largest weight as its darkest colour, which flatters it. With a model yes.
        most: How many characters images and maps may take; 2.9 million by default. With fewer
            the maps are coarser and the page is there sooner.
        title: The figure's name for screen readers.
        notes: Sentences below the figure, on what a reader has to know of the model.
        warning: A sentence above it, for what must not be overlooked.

    Raises:
        TypeError: A tensor is of the wrong type.
        ValueError: Sizes do not fit together, a choice does not exist, it is not known how the
            model's images were prepared, or the maps do not fit into 3 MB.
    """
    if isinstance(images, nn.Module):
        seen = look(
            images, maps, mean=mean, std=std, size=size, num_prefix=num_prefix, layers=layers
        )
        images, maps, grid, num_prefix = seen.pixels, seen.maps, seen.grid, seen.num_prefix
        even, notes = even is not False, [*notes, *seen.notes]
    elif (mean, std, size, layers) != (None, None, None, None) or grid is None:
        raise TypeError(
            "with images and maps say grid; mean, std, size and layers belong to a model"
        )
    num_prefix = 1 if num_prefix is None else num_prefix
    rows, columns = require_tokens_fit(maps, grid, num_prefix)
    pixels = _pixels(images, invert)  # (B, H, W, C)
    L, B, h, N, _ = maps.shape
    B_images, H, W, C = pixels.shape
    if B_images != B:
        raise ValueError(f"images must be as many as maps hold, {B}, got {B_images}")
    if H % rows or W % columns:
        raise ValueError(f"grid {rows} x {columns} does not divide the image of {H} x {W} pixels")
    labels = _texts("labels", labels, [f"image {i + 1}" for i in range(B)], "images")
    names = _texts("names", names, [str(i + 1) for i in range(h)], "heads")
    start = _start(layer, head, query, L, h, N)
    framed = np.zeros(0, np.uint8) if marks is None else _marks(marks, B, rows * columns)
    packed = pack(pixels, framed, maps, (rows, columns), num_prefix, most)
    data = packed | {
        "title": str(title),
        "layers": L,
        "heads": h,
        "names": names,
        "grid": [rows, columns],
        "prefix": num_prefix,
        "size": [H, W],
        "channels": C,
        "labels": labels,
        "start": start,
        "marks": None if marks is None else str(marks_label),
        "even": bool(even),
        "warning": str(warning),
        "notes": [*_told(packed, num_prefix), *map(str, notes)],
    }
    shown = first_shown(maps, (rows, columns), num_prefix, start)
    words = _fallback(maps[:, 0], labels, names, (rows, columns), num_prefix, start)
    return AttentionExplorer(data, still(pixels[0], N * shown) + words if C == 3 else words)


def first_shown(
    maps: Tensor, grid: tuple[int, int], num_prefix: int, start: dict[str, int]
) -> np.ndarray:
    """The map that a figure of the first image opens with, (rows, columns)."""
    layer, head = start["layer"], start["head"]
    query = start.get("query", first_query(grid, num_prefix))
    h = maps.shape[2]
    if head > h:
        weights = attention_rollout(maps[: layer + 1, :1])[0]
    else:
        weights = maps[layer, 0].mean(dim=0) if head == h else maps[layer, 0, head]
    return weights[query, num_prefix:].unflatten(0, grid).detach().float().cpu().numpy()


def first_query(grid: tuple[int, int], num_prefix: int) -> int:
    """The token that looks first: the class token, else the patch in the middle."""
    return 0 if num_prefix else grid[0] // 2 * grid[1] + grid[1] // 2


def _told(packed: dict, num_prefix: int) -> list[str]:
    """What was done to the maps to make them fit."""
    told, levels, side = [], packed["levels"], packed["pool"]
    if side > 1:
        told.append(
            f"The maps of {'all other' if num_prefix else 'all'} queries are too many to hold: "
            f"queries and keys are pooled into blocks of {side} \u00d7 {side} patches."
            + (" Those of the class token are whole." if num_prefix else "")
        )
    if levels < 255:
        told.append(
            f"To keep the figure small, a patch's weights are held in {levels} steps, exact to "
            f"1/{levels} of the largest weight of their row."
        )
    return told


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


def _texts(what: str, given: Sequence[str] | None, default: list[str], of: str) -> list[str]:
    texts = default if given is None else [str(text) for text in given]
    if len(texts) != len(default):
        raise ValueError(
            f"{what} must hold one text for each of {len(default)} {of}, got {len(texts)}"
        )
    return texts


def _fallback(
    maps: Tensor,
    labels: list[str],
    names: list[str],
    grid: tuple[int, int],
    num_prefix: int,
    start: dict[str, int],
) -> str:
    """A table in words for the first image (L, h, N, N): what each head looks at most."""
    _, columns = grid
    query = start.get("query", first_query(grid, num_prefix))
    if maps.shape[0] * maps.shape[1] > 24:  # a table too wide to be read
        maps = maps.mean(dim=1, keepdim=True)
    seen_from = "the class token" if query == 0 else f"prefix token {query + 1}"
    if query >= num_prefix:
        seen_from = f"the patch in {_place(query - num_prefix, columns)}"
    cells = []
    for number, heads in enumerate(maps[:, :, query, num_prefix:], start=1):  # (h, N_patches)
        cells.append(f"<tr><th>layer {number}</th>")
        for shares in heads:
            place = _place(int(shares.argmax()), columns)
            cells.append(f"<td>{100 * float(shares.max()):.1f} % on {place}</td>")
        cells.append("</tr>")
    called = [f"head {name}" for name in names] if maps.shape[1] > 1 else ["mean of heads"]
    heads = "".join(f"<th>{html.escape(one)}</th>" for one in called)
    return (
        f"<p>This figure is interactive and needs JavaScript. It holds the attention of "
        f"{len(labels)} image{'s' * (len(labels) > 1)}. "
        f"Where {seen_from} looks most in “{html.escape(labels[0])}”:</p>"
        f"<table><tr><td></td>{heads}</tr>{''.join(cells)}</table>"
    )


def _place(patch: int, columns: int) -> str:
    return f"row {patch // columns + 1}, column {patch % columns + 1}"


def _read(name: str) -> str:
    return resources.files("vitbook.explorer").joinpath(name).read_text(encoding="utf-8")


def _host_css() -> str:
    """The colours of both themes, on the element itself, so that its surroundings can decide."""
    light, dark = _read("host.css").split("DARK")
    colours, rest = dark.split("}", 1)
    by_page = ", ".join(f"{where} .vitbook-explorer" for where in DARK)
    by_system = f"{SYSTEM_DARK} .vitbook-explorer {colours.strip()}}}"
    return (
        f"{light}@media screen and (prefers-color-scheme: dark) {{ {by_system} }}\n"
        f"@media screen {{ {by_page} {colours.strip()}}} }}{rest}"
    )
