"""``python -m vitbook attention ... --out look.html``: the figure and its audit in one file."""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from vitbook.command.any_model import RANDOM, any_model
from vitbook.command.beside import statistics_told
from vitbook.command.images import read_image
from vitbook.command.recipes import load_part, pixels_of, shape_of, statistics_of
from vitbook.command.runs import device_type, learned_with, trained_model
from vitbook.data import normalize
from vitbook.data.folder_names import listed, printed
from vitbook.explorer import attention_explorer
from vitbook.explorer.photograph import Look, Preparation, look, preparation, read_photograph
from vitbook.inspection import attention_maps, attention_rollout
from vitbook.inspection.audit import Audit, Heatmap, audit
from vitbook.models.fitting import WRITTEN

AUDITED = 14  # rows and columns of patches at most: each costs two runs of the model
OTHERS = 6  # images of a run beside the one that is audited

UNTESTED = (
    "Not tested: pooling behind the last layer, what scales or adds values behind a map, and how "
    "patches that overlap share pixels."
)


def attention_page(options: argparse.Namespace) -> None:
    """Look at one picture with any model, and write what was seen into one file."""
    if options.run:
        model, known, pixels, others, name, weights, names = _of_run(options)
        remarks: tuple[str, ...] = ()
    else:
        (model, weights), names = any_model(options), []
        says = model if options.timm else nn.Identity()  # of one's own model nothing is known
        said = {name: getattr(options, name) for name in ("mean", "std", "size")}
        said = {name: value for name, value in said.items() if value is not None}
        known = preparation(says, **(_of_weights(options.weights) | said))
        pixels, remarks = read_photograph(options.image, known.size, len(known.mean))
        name = options.image
        others = sample_photographs(known, pixels)
    if options.target in names:  # which may be numbers, too
        options.target = names.index(options.target)
    elif options.target and options.target.isdecimal():
        options.target = int(options.target)
    elif options.target is not None:
        known_names = f" or one of {listed(names)}" if names else ""
        raise ValueError(
            f"--target must be the number of a class{known_names}, got {options.target}"
        )
    model.to(device_type(options.device))
    # in a run of one's own, layers of other kinds may stand between those that attend
    layers = options.layers or ("*" if options.run and not options.rollout else None)
    try:
        seen = look(
            model,
            pixels,
            mean=known.mean,
            std=known.std,
            size=known.size,
            num_prefix=options.num_prefix,
            layers=layers,
        )
    except Exception as error:
        if WRITTEN in weights and isinstance(error, ValueError):  # the reason, perhaps
            raise ValueError(f"{error}; {weights}") from error
        if options.run:
            raise
        if len(known.mean) != 1 or not isinstance(error, (ValueError, RuntimeError)):
            _require_runs(model, known)
            raise
        raise ValueError(
            "one number for --mean and --std makes the picture grey; a model of colours needs "
            f"three, such as 0.5,0.5,0.5 (it said: {error})"
        ) from error
    query = token_at(options.query, seen.grid, seen.num_prefix)
    token, _ = opens_with(model, seen.num_prefix)
    what, heatmap = opening(seen, token if query is None else query, options.rollout, layers)
    (rows, columns), middle = seen.grid, None
    if seen.num_prefix and token is None:
        seen.notes.append("What is called class token is a register: this model has no such token.")
        middle = seen.num_prefix + rows // 2 * columns + columns // 2
    found = None if options.no_audit else _audit(model, seen, known, others, heatmap, options)
    who = options.timm or Path(options.run or options.model).name  # no folders of this machine
    attention_explorer(
        seen.pixels,
        seen.maps,
        seen.grid,
        num_prefix=seen.num_prefix,
        head="rollout" if options.rollout else "mean",
        query=middle if query is None else query,
        even=True,
        title=f"{who} looks at {Path(name).name}",
        notes=[
            *seen.notes,
            *_done(remarks),
            f"Model: {who}, {weights}.",
            *_named(found, names),
            UNTESTED,
        ],
        warning=RANDOM if options.random else "",
    ).save(options.out, found, audited=what)
    told = found.sentence if found else "Not audited."
    told = " ".join([told, *_named(found, names), *_done(remarks)])
    print(printed(f"{name}: {what}. {told} Written into {options.out}. Model: {who}, {weights}."))


def _require_runs(model: nn.Module, known: Preparation) -> None:
    """Where a model takes no such images, what it says itself."""
    weight = next(model.parameters(), torch.empty(0))
    images = torch.zeros(1, len(known.mean), *known.size).to(weight)
    try:
        model(images)
    except Exception as error:  # of a model of somebody's
        raise ValueError(
            f"model ({type(model).__name__}) fails where it is called with images "
            f"{tuple(images.shape)}, and with nothing else: {type(error).__name__}: {error}"
        ) from error


def _done(remarks: tuple[str, ...]) -> list[str]:
    """What was done to the picture before the model saw it."""
    return [f"The picture: {'; '.join(remarks)}."] if remarks else []


def _of_weights(weights: str | None) -> dict:
    """How the images of the weights were prepared, where their run or a file beside tells it."""
    if weights is None or not (settings := learned_with(Path(weights))):
        return statistics_told(Path(weights))[0] if weights else {}
    mean, std = statistics_of(settings)
    return {"mean": mean, "std": std, "size": shape_of(settings)["image_size"]}


def _named(found: Audit | None, names: list[str]) -> list[str]:
    """The names of the classes that an audit tells by their numbers."""
    if found is None or not names:
        return []
    answer, next_ = found.target, found.runner_up
    return [f"Class {answer} is {names[answer]}, class {next_} is {names[next_]}."]


def opening(
    seen: Look, query: int | None, rollout: bool, layers: str | list[str] | None
) -> tuple[str, Heatmap]:
    """The map that is audited, in words and as a function of a model and an image."""
    (rows, columns), prefix, token = seen.grid, seen.num_prefix, query
    if token is None:
        who = "the mean of all patches' rows"
    elif token < prefix:
        who = "the class token's row"
    else:
        row, column = divmod(token - prefix, columns)
        who = f"the row of the patch in row {row + 1}, column {column + 1}"

    def heatmap(model: nn.Module, image: Tensor) -> Tensor:
        maps = attention_maps(model, image, layers, verify=False)  # (L, 1, h, N, N)
        weights = attention_rollout(maps)[0] if rollout else maps[-1, 0].mean(dim=0)  # (N, N)
        found = given_to_patches(weights, token, prefix).unflatten(0, (rows, columns))
        return coarse(found, AUDITED)

    where = "rollout" if rollout else f"layer {len(seen.maps)}, mean of heads"
    return f"{who}, {where}", heatmap


def given_to_patches(weights: Tensor, token: int | None, num_prefix: int) -> Tensor:
    """What a token gives to the patches, or all patches on average: (..., N, N) -> (..., P)."""
    row = weights[..., num_prefix:, :].mean(dim=-2) if token is None else weights[..., token, :]
    return row[..., num_prefix:]


def opens_with(model: nn.Module, num_prefix: int) -> tuple[int | None, str]:
    """Whose row is shown where nobody says it: that of the class token, or that of all patches.

    Timm's models without one say so, though they may have registers before their patches.
    """
    said = [module.cls_token for module in model.modules() if hasattr(module, "cls_token")]
    if num_prefix and (not said or any(token is not None for token in said)):
        return 0, "the class token"
    return None, "the mean of all patches"


def coarse(heatmap: Tensor, most: int) -> Tensor:
    """The map summed over blocks, so that it has at most so many rows and columns."""
    rows, columns = heatmap.shape
    sides = range(1, max(rows, columns) + 1)
    fits = [s for s in sides if not rows % s and not columns % s and max(rows, columns) <= s * most]
    side = fits[0] if fits else 1
    return heatmap.unflatten(1, (-1, side)).unflatten(0, (-1, side)).sum(dim=(1, 3))


def sample_photographs(known: Preparation, pixels: Tensor) -> Tensor:
    """Squares of scikit-learn's two photographs (n, C, H, W), without the one that is looked at."""
    from sklearn.datasets import load_sample_image

    found: list[Tensor] = []
    for name in ("china.jpg", "flower.jpg"):
        whole = load_sample_image(name)
        lefts = (0, (whole.shape[1] - whole.shape[0]) // 2, whole.shape[1] - whole.shape[0])
        squares = [np.ascontiguousarray(whole[:, x : x + len(whole)]) for x in lefts]
        cuts = [read_photograph(s, known.size, len(known.mean))[0] for s in squares]
        if all(float((cut - pixels).abs().mean()) > 0.02 for cut in cuts):
            found += cuts
    return torch.cat(found)


def _of_run(
    options: argparse.Namespace,
) -> tuple[nn.Module, Preparation, Tensor, Tensor, str, str, list[str]]:
    """The model of a run, how its images were prepared, the image, others, names, and classes."""
    settings, root, model = trained_model(options)
    image, name = read_image(options, settings, root)
    mean, std = statistics_of(settings)
    known = Preparation(tuple(mean), tuple(std), (image.shape[1], image.shape[2]))
    pixels = pixels_of(image[None], settings)
    others = torch.empty(0)
    if options.image.isdecimal():
        images, _ = load_part(settings, options.part, root)
        n, first = len(images), int(options.image) + 1
        places = torch.arange(first, first + min(OTHERS, n - 1)) % n  # a small part has fewer
        others = pixels_of(images[places].to("cpu"), settings)
    if not len(others):
        others = sample_photographs(known, pixels)
    names = settings.get("classes", [])
    return model, known, pixels, others, name, "trained weights", names


def _audit(
    model: nn.Module,
    seen: Look,
    known: Preparation,
    others: Tensor,
    heatmap: Heatmap,
    options: argparse.Namespace,
) -> Audit | None:
    if getattr(model, "num_classes", None) == 0:
        print("vitbook: a model without classes cannot be audited", file=sys.stderr)
        return None
    print("vitbook: auditing (two runs of the model for each patch) ...", file=sys.stderr)
    like = next(model.parameters())
    image, others = (normalize(x, known.mean, known.std).to(like) for x in (seen.pixels, others))
    try:
        return audit(heatmap, model, image, others, target=options.target)
    except (ValueError, TypeError) as error:
        out = "--no-audit" if options.target is None else "--no-audit instead of --target"
        raise ValueError(f"{error}; the page can be had without the audit, by {out}") from error


def token_at(place: tuple[int, int] | None, grid: tuple[int, int], num_prefix: int) -> int | None:
    """The token of the patch that --query names, None if it names none."""
    if place is None:
        return None
    rows, columns = grid
    if not (0 <= place[0] < rows and 0 <= place[1] < columns):
        raise ValueError(f"--query must lie in the grid of {rows} x {columns}, got {place}")
    return num_prefix + place[0] * columns + place[1]
