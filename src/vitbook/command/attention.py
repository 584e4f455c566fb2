"""``python -m vitbook attention``: what it reads and draws."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vitbook.command.recipes import SHAPES, load_part
from vitbook.command.runs import trained_model
from vitbook.data import STATISTICS, normalize
from vitbook.inspection import attention_maps, attention_rollout
from vitbook.plotting import figure_png, show_attention, show_rollout

FORMATS = (".png", ".pdf", ".svg")
PAGES = (".html", ".htm")


def attention(options: argparse.Namespace) -> None:
    """Draw where the model of a run looks in one image."""
    if Path(options.out).suffix.lower() in PAGES:
        from vitbook.command.attention_page import attention_page

        return attention_page(options)
    if not options.run:
        raise ValueError(f"--out must end in .html with --timm and --model, got {options.out}")
    settings, root, model = trained_model(options)
    image, name = read_image(options, settings, root)
    figure, told = attention_figure(model, image, settings, options.query, options.rollout)
    save_figure(figure, Path(options.out))
    print(f"{name}: {told}; drawn into {options.out}")


def read_image(options: argparse.Namespace, settings: dict, root: str | None) -> tuple[Tensor, str]:
    """The image that was asked for as the model takes it (C, H, W), and what to call it."""
    if options.image.isdecimal():
        number = int(options.image)
        images, labels = load_part(settings, options.part, options.root or root)
        if number >= len(images):
            raise ValueError(
                f"IMAGE must be below {len(images)}, the number of {options.part} images, "
                f"got {number}"
            )
        return images[number], f"{options.part} image {number}, label {int(labels[number])}"
    return read_picture(Path(options.image), settings, invert=options.invert), options.image


def read_picture(path: Path, settings: dict, *, invert: bool = False) -> Tensor:
    """A picture file, cut to a square and scaled to what the model was trained on, (C, S, S)."""
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        raise ValueError(f"IMAGE must be a picture file or a number, but there is no file {path}")
    shape = SHAPES[settings["data"]]
    try:
        picture = Image.open(path).convert("L" if shape["in_channels"] == 1 else "RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as a picture ({error})") from None
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    size = (shape["image_size"],) * 2
    picture = picture.crop((left, top, left + side, top + side)).resize(size, Image.Resampling.BOX)
    pixels = torch.tensor(np.asarray(picture), dtype=torch.float32).reshape(*size, -1) / 255
    pixels = (1 - pixels if invert else pixels).permute(2, 0, 1)  # (C, S, S)
    statistics = STATISTICS.get(settings["data"])
    return pixels if statistics is None else normalize(pixels[None], *statistics)[0]


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
    maps = attention_maps(model, images).cpu()  # (L, 1, h, N, N)
    parts: Any = model  # of every architecture
    (rows, columns), prefix = parts.patch_embed.grid, parts.num_prefix
    if query is not None and not (0 <= query[0] < rows and 0 <= query[1] < columns):
        raise ValueError(f"--query must lie in the grid of {rows} x {columns}, got {query}")
    token: int | None
    if query is not None:
        token, who = prefix + query[0] * columns + query[1], f"the patch at {query[0]},{query[1]}"
    else:
        token, who = (0, "the class token") if prefix else (None, "the mean of all patches")

    def view(weights: Tensor) -> Tensor:  # (..., N, N) -> (..., rows, columns)
        row = weights.mean(dim=-2) if token is None else weights[..., token, :]
        return row[..., prefix:].unflatten(-1, (rows, columns))

    mean, std = STATISTICS.get(settings["data"], ((0.0,), (1.0,)))
    offset, scale = (torch.tensor(s)[:, None, None] for s in (mean, std))
    pixels = (image.cpu() * scale + offset).clamp(0, 1)
    if rollout and len(maps) < len(parts.encoder.blocks):
        raise ValueError(
            f"--rollout must be left out: {len(maps)} of the model's {len(parts.encoder.blocks)} "
            "layers attend, what the others mix would be missing"
        )
    if rollout:
        shares = [view(attention_rollout(maps[: layer + 1]))[0] for layer in range(len(maps))]
        figure = show_rollout(pixels, torch.stack(shares))
    else:
        figure = show_attention(pixels, view(maps[:, 0]))
    best = int(answer.argmax())
    return figure, f"answer {best} with probability {answer[best]:.2f}; attention of {who}"


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format its file name asks for."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)} or .html, got {path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".png":
        path.write_bytes(figure_png(figure))
    else:
        figure.savefig(path, bbox_inches="tight")
