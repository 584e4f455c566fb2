"""``python -m vitbook attention``: what it reads and draws."""

import argparse
import io
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vitbook.command.attention_page import (
    attention_page,
    given_to_patches,
    opens_with,
    token_at,
)
from vitbook.command.idle import PAGES
from vitbook.command.images import read_image
from vitbook.command.own_pictures import require_outside
from vitbook.command.recipes import class_names, pixels_of
from vitbook.command.runs import trained_model
from vitbook.data.folder_names import printed
from vitbook.files import write_atomically
from vitbook.inspection import attention_maps, attention_rollout, find_num_prefix
from vitbook.inspection.patches import require_patches
from vitbook.plotting import figure_png, show_attention, show_rollout

FORMATS = (".png", ".pdf", ".svg")


def attention(options: argparse.Namespace) -> None:
    """Draw where the model of a run looks in one image."""
    if Path(options.out).suffix.lower() in PAGES:
        return attention_page(options)
    if not options.run:
        raise ValueError(f"--out must end in .html with --timm and --model, got {options.out}")
    settings, root, model = trained_model(options)
    if settings["data"] == "folder":
        require_outside(Path(options.out), root)
    image, name = read_image(options, settings, root)
    figure, told = attention_figure(model, image, settings, options.query, options.rollout)
    save_figure(figure, Path(options.out))
    print(printed(f"{name}: {told}; drawn into {options.out}"))


def attention_figure(
    model: nn.Module,
    image: Tensor,
    settings: dict,
    query: tuple[int, int] | None = None,
    rollout: bool = False,
) -> tuple[Figure, str]:
    """The drawing, and in words what the model answered and whose attention is drawn."""
    images = image[None].to(next(model.parameters()).device)
    with torch.inference_mode():
        answer = model(images).softmax(dim=-1)[0]
    if settings.get("timm"):  # whose models do not say where their patches are
        maps, prefix = attention_maps(model, images).cpu(), find_num_prefix(model)
        (rows, columns), layers = require_patches(model, images, prefix), len(maps)
    else:
        maps = attention_maps(model, images, "*").cpu()  # (L, 1, h, N, N), of those that attend
        parts: Any = model  # of every architecture
        (rows, columns), prefix = parts.patch_embed.grid, parts.num_prefix
        layers = len(parts.encoder.blocks)
    token, who = opens_with(model, prefix)
    if query is not None:
        token, who = token_at(query, (rows, columns), prefix), f"the patch at {query[0]},{query[1]}"

    def view(weights: Tensor) -> Tensor:  # (..., N, N) -> (..., rows, columns)
        return given_to_patches(weights, token, prefix).unflatten(-1, (rows, columns))

    pixels = pixels_of(image, settings)
    if rollout and len(maps) < layers:
        raise ValueError(
            f"--rollout must be left out: {len(maps)} of the model's {layers} layers attend, what "
            "the others mix would be missing"
        )
    if rollout:
        shares = [view(attention_rollout(maps[: layer + 1]))[0] for layer in range(len(maps))]
        figure = show_rollout(pixels, torch.stack(shares))
    else:
        figure = show_attention(pixels, view(maps[:, 0]))
    best = int(answer.argmax())
    name, what = class_names(settings)[best], "rollout" if rollout else "attention"
    return figure, f"answer {name} with probability {answer[best]:.2f}; {what} of {who}"


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format its file name asks for."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)} or .html, got {path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".png":
        data = figure_png(figure)
    else:
        drawn = io.BytesIO()
        figure.savefig(drawn, bbox_inches="tight", format=path.suffix.lower()[1:])
        data = drawn.getvalue()
    write_atomically(path, data)
