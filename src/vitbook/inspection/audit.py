"""Hold one map against its controls at once: what may it be used for?"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.inspection.occlusion import gradient_drop, logits_of, rank_correlation

RESAMPLES = 400  # of blocks of patches, for the interval of a difference
BATCH = 16  # images that run at once
CAPTION = (
    "Rank correlation, over the patches, of the map with what the answer loses when a patch is "
    "replaced: by the mean colour, and by a patch of another image; of the two the worse. Floor: "
    "what the control reaches. Above: the 95 % interval of the difference, over blocks of patches, "
    "lies above zero."
)


@dataclass(frozen=True)
class Row:
    """One number of an audit and its floor.

    Args:
        kind: "paints", "chance", "control", "class" or "reference"; see :class:`Audit`.
        name: What is asked.
        value, floor: What the map and what its control reach.
        low: The lower end of the difference, value minus floor.
    """

    kind: str
    name: str
    value: float
    floor: float
    low: float

    @property
    def above(self) -> bool:
        """Whether the value lies above its floor beyond chance."""
        return self.low > 0


@dataclass(frozen=True)
class Audit:
    """What a map may be used for, on one image, and the numbers that say so.

    ``sentence`` follows from the rows; the first of these that holds decides:

    1. The row "paints" is not above its floor: nothing can be said, the test does not hold itself.
    2. The row "chance" is not: the map is a picture of its own numbers.
    3. A row "control" is not: the map may not be used to say what the answer rests on.
    4. A control is missing: what was shown, and what was not tried.
    5. Else the map may rank the patches by what this answer loses without them, one at a time. It
       speaks for its class only where the row "class" is above its floor, with a value above 0.

    Args:
        target: The class whose log-probability was followed.
        probability: What the model gives to it.
        runner_up: The most probable of the other classes.
        rows: The numbers.
        missing: Controls that could not be tried.
        untried: What would stand there for comparison, and could not be had.
    """

    target: int
    probability: float
    runner_up: int
    rows: tuple[Row, ...]
    missing: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()

    caption = CAPTION

    @property
    def of(self) -> str:
        """Whose answer was followed."""
        return f"Followed: class {self.target}, probability {self.probability:.2g}."

    @property
    def sentence(self) -> str:
        rows = {kind: [row for row in self.rows if row.kind == kind] for kind in KINDS}
        unbeaten = [row.name for row in rows["control"] if not row.above]
        if not all(row.above for row in rows["paints"]):
            return (
                "Nothing can be said of this map: two ways of replacing a patch do not agree on "
                "which patches the answer needs, so there is nothing to hold the map against."
            )
        if not all(row.above for row in rows["chance"]):
            return (
                "Use this map as a picture of its own numbers only: it ranks the patches that the "
                "answer needs no better than copies of itself, moved over the image."
            )
        if unbeaten:
            return (
                "Do not use this map to say what the answer rests on: it was not found to rank "
                f"the patches better than {_listed(unbeaten, 'or')}."
            )
        beaten = _listed([row.name for row in rows["control"]], "and")
        if self.missing:
            return (
                "Do not use this map to say what the answer rests on before the missing controls "
                f"are tried: on this image it ranks the patches better than {beaten}; not tried: "
                f"{_listed(list(self.missing), 'and')}."
            )
        speaks = all(row.above and row.value > 0 for row in rows["class"])
        return (
            "On this image, the map may be used to rank the patches by what the answer, class "
            f"{self.target}, loses without each one alone; it does so better than {beaten}. "
            + ("It also speaks" if speaks else "It does not speak")
            + f" for this class rather than for class {self.runner_up}."
        )

    def table(self) -> list[tuple[str, str, str, str]]:
        """Rows (name, value, floor, whether above)."""
        without = [f"{KINDS['control']}{name}" for name in self.missing]
        without += [f"{KINDS['reference']}{name}" for name in self.untried]
        return [
            (f"{KINDS[r.kind]}{r.name}", _short(r.value), _short(r.floor), YES_NO[r.above])
            for r in self.rows
        ] + [(name, "not tried", "", "") for name in without]

    def __str__(self) -> str:
        lines = [("", "value", "floor", "above"), *self.table()]
        wide = max(len(name) for name, *_ in lines)
        table = "\n".join(f"{n:{wide}}  {v:>9}  {f:>5}  {a:>5}".rstrip() for n, v, f, a in lines)
        return f"{self.sentence}\n{self.of}\n\n{table}"


KINDS = {
    "paints": "",
    "chance": "the map, against ",
    "control": "the map, against ",
    "class": "the map, with signed losses, against ",
    "reference": "for comparison: ",
}
TWIN = "an untrained twin"
YES_NO = {True: "yes", False: "no"}
Heatmap = Callable[[nn.Module, Tensor], Tensor]


def audit(
    heatmap: Tensor | Heatmap,
    model: nn.Module,
    image: Tensor,
    others: Tensor,
    *,
    target: int | None = None,
    twins: Sequence[nn.Module] | None = None,
    seed: int = 0,
) -> Audit:
    """Hold a map of one image, also one from another tool, against what the course asks of it.

    The measure is the rank correlation of the map with the size of what the answer loses when a
    patch is replaced, under two paints; a map has shown something only where it exceeds its
    controls under both. They are copies of the map moved and turned over the image; the contrast
    of the pixels, which never saw the model; the same map of twins whose weights are shuffled, and
    of other images. Each patch costs two runs of the model.

    Args:
        heatmap: The map (rows, columns), large where something matters; or what makes it, a
            function of a model and an image (1, C, H, W), so that twins and other images have
            theirs. Without it these two controls are missing.
        model: Images (B, C, H, W) -> logits (B, K), in evaluation mode.
        image: (C, H, W) or (1, C, H, W), as the model takes it.
        others: Other images (n, C, H, W), prepared alike; the first one is the second paint.
        target: The class that is followed; what the model answers by default.
        twins: Untrained models of the same kind; three copies with shuffled weights by default.
        seed: Of the shuffling and of the resampling.

    Returns:
        The numbers with their floors, and one sentence.

    Raises:
        TypeError, ValueError: An argument is not what it has to be; the message names it.
        ValueError: The model answers with nan.

    Source: the controls are those of Adebayo et al. 2018 (random weights), Zeiler & Fergus 2014
    (occlusion), and this course's chapter on looking at attention.
    """
    image, others = _images(image, others)
    seed = require.whole("seed", seed, at_least=0)
    if require.module("model", model).training:
        raise ValueError("model must be in evaluation mode, else dropout decides; say model.eval()")
    grid_map = _map(heatmap(model, image) if callable(heatmap) else heatmap)
    rows, columns = grid_map.shape
    patch_size = _patch_size(image, rows, columns)
    map_ = grid_map.flatten()
    with torch.no_grad():
        before = logits_of(model, image).log_softmax(dim=-1)[0].double().cpu()
        if len(before) < 2:
            raise ValueError("model must answer with at least two classes")
        paints = (image.mean(dim=(2, 3), keepdim=True).expand_as(image), others[:1])
        losses = torch.stack([before - _without(model, image, p, patch_size) for p in paints])
        if losses.isnan().all(dim=-1).any():  # of a class alone: it is ruled out
            raise ValueError("model answers with nan, to the image or where a patch is replaced")
    target = int(before.argmax()) if target is None else require.whole("target", target, 0)
    if target >= len(before):
        raise ValueError(f"target must be below {len(before)}, the number of classes, got {target}")
    runner_up = int(before.index_fill(0, torch.tensor(target), -torch.inf).argmax())
    signed, against = losses[..., target], losses[..., runner_up]  # (2, n)
    drops = signed.abs()

    generator = torch.Generator().manual_seed(seed)
    index = _blocks(rows, columns, generator)
    moved = _moved(grid_map)  # (m, n)

    def lead(kind: str, name: str, pairs: list[tuple[Tensor, Tensor, Tensor]]) -> Row:
        """The hardest of a control's draws: (loss, the control's ranking, its loss)."""
        found = []
        for loss, other, its_loss in pairs:
            ahead = _agree(map_[index], loss[index]) - _agree(other[index], its_loss[index])
            value, floor = float(_agree(map_, loss)), float(_agree(other, its_loss))
            found.append((float(ahead.quantile(0.025)), value, floor))
        low, value, floor = min(found)
        return Row(kind, name, value, floor, low)

    def control(name: str, rankings: list[Tensor], unfair: Tensor | None = None) -> Row:
        """Under both paints, but without the ranking that knows the second paint."""
        pairs = [
            (loss, ranking, loss)
            for ranking in rankings
            for loss in (drops[:1] if ranking is unfair else drops)
        ]
        return lead("control", name, pairs)

    def chance(kind: str, name: str, ranking: Tensor, copies: Tensor, losses: Tensor) -> Row:
        """Against the 95 % point of moved copies, under the harder paint."""
        values = [float(_agree(ranking, loss)) for loss in losses]
        floors = [float(_agree(copies, loss).quantile(0.95)) for loss in losses]
        low, value, floor = min((v - f, v, f) for v, f in zip(values, floors, strict=True))
        return Row(kind, name, value, floor, low)

    first = drops[0].unflatten(0, (rows, columns))
    contrast = _tiles(image, patch_size).std(dim=-1)[0]
    table = [
        chance("paints", "the two paints agree", drops[0], _moved(first), drops[1:]),
        chance("chance", "moved copies of itself", map_, moved, drops),
        control("the contrast of the pixels", [contrast]),
    ]
    missing: tuple[str, ...] = (TWIN, "another image")
    untried: tuple[str, ...] = ()
    untrained: list[Tensor] = []
    if callable(heatmap):
        missing = () if twins or twins is None else (TWIN,)
        if twins is None:
            try:
                twins = [shuffled_twin(model, seed + i) for i in range(3)]
            except Exception as error:  # of a model of somebody's
                twins, missing = [], (f"{TWIN}, as copying the model fails ({_line(error)})",)
        for twin in twins:
            control_map = heatmap(require.module("each of twins", twin).eval(), image)
            untrained.append(_map(control_map, grid_map.shape).flatten())
        elsewhere = [_map(heatmap(model, x[None]), grid_map.shape).flatten() for x in others]
        table += [control(TWIN, untrained)] if untrained else []
        table.append(control("another image", elsewhere, unfair=elsewhere[0]))
    pairs = [(loss, map_, its_loss) for loss, its_loss in zip(signed, against, strict=True)]
    table.append(lead("class", f"class {runner_up}", pairs))
    try:
        gradient = gradient_drop(model, image, patch_size, target=target)[0].abs().double().cpu()
        row = chance("reference", "the gradient", gradient.flatten(), _moved(gradient), drops)
        table.append(row)
    except (RuntimeError, ValueError) as error:  # of a forward that keeps none
        untried = (f"the gradient, which the model does not give ({_line(error)})",)
    if grid_map.min() >= 0:
        value = _uneven(map_)
        floor = max(map(_uneven, untrained), default=0.0)
        name = "share to move until it is even, its twins' as floor"
        table.append(Row("reference", name, value, floor, value - floor))
    return Audit(target, float(before[target].exp()), runner_up, tuple(table), missing, untried)


def shuffled_twin(model: nn.Module, seed: int) -> nn.Module:
    """A copy in which the numbers of each weight tensor changed places: nothing learned is left.

    Args:
        model: Any module; it stays as it is.
        seed: Of the shuffling.
    """
    twin = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in twin.parameters():
            order = torch.randperm(weights.numel(), generator=generator).to(weights.device)
            weights.copy_(weights.flatten()[order].view_as(weights))
    return twin


def _without(model: nn.Module, image: Tensor, paint: Tensor, patch_size: int) -> Tensor:
    """Log-probabilities of all classes without each patch, (n, K); the fast twin of occlusion."""
    rows, columns = (side // patch_size for side in image.shape[2:])
    changed, found = [], []
    for patch in range(rows * columns):
        top, left = (patch_size * i for i in divmod(patch, columns))
        where = (..., slice(top, top + patch_size), slice(left, left + patch_size))
        changed.append(image[0].clone())
        changed[-1][where] = paint[0][where]
        if len(changed) == BATCH or patch == rows * columns - 1:
            says = logits_of(model, torch.stack(changed)).log_softmax(dim=-1)
            found.append(says.double().cpu())
            changed = []
    return torch.cat(found)


def _agree(x: Tensor, y: Tensor) -> Tensor:
    """Rank correlation; a ranking that is none agrees with nothing."""
    return rank_correlation(x, y).nan_to_num(0.0)


def _blocks(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Patches drawn in square blocks that wrap round, (RESAMPLES, about n): neighbours are alike,
    so that single patches would pretend to be more evidence than they are."""
    side = max(1, round(min(rows, columns) / 5))
    count = -(-rows * columns // side**2)
    corner = torch.randint(rows * columns, (RESAMPLES, count, 1, 1), generator=generator)
    step = torch.arange(side)
    down = (corner // columns + step[:, None]) % rows
    return (down * columns + (corner % columns + step) % columns).flatten(1)


def _moved(values: Tensor) -> Tensor:
    """All copies of a map (rows, columns) moved, mirrored and turned over the image, (m, n)."""
    turned = [values, values.flip(0), values.flip(1), values.flip(0, 1)]
    turned += [v.T for v in turned] if values.shape[0] == values.shape[1] else []
    rows, columns = values.shape
    places = [(i, j) for i in range(rows) for j in range(columns)]
    copies = torch.stack([v.roll(place, (0, 1)).flatten() for v in turned for place in places])
    return copies[1:]  # the first one is the map itself


def _uneven(values: Tensor) -> float:
    """Which share of a map would have to be moved to make it even."""
    return float((values / values.sum() - 1 / len(values)).abs().sum() / 2)


def _tiles(image: Tensor, patch_size: int) -> Tensor:
    """The pixels of each patch around the image's mean colour, (1, n, ...)."""
    away = (image - image.mean(dim=(2, 3), keepdim=True)).double().cpu()
    tiles = away.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return tiles.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def _map(values: Tensor, shape: tuple[int, ...] = ()) -> Tensor:
    """A map (rows, columns) in float64, perhaps of the shape that it has to have."""
    if not isinstance(values, Tensor):
        raise TypeError(
            "heatmap must be a torch.Tensor (rows, columns), or a function of a model and an image "
            f"that gives one, got {type(values).__name__}"
        )
    values = require.tensor("heatmap", values, "(...)").detach().double().cpu().squeeze()
    if values.ndim != 2 or values.numel() < 4 or not bool(values.isfinite().all()):
        raise ValueError(
            "heatmap must be (rows, columns), at least 2 x 2 finite numbers, "
            f"got the shape {tuple(values.shape)}"
        )
    if shape and values.shape != shape:
        raise ValueError(
            f"heatmap must give maps of one shape, got {tuple(shape)} and, of a twin or another "
            f"image, {tuple(values.shape)}"
        )
    return values


def _images(image: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(image, Tensor) and image.ndim == 3:
        image = image[None]
    require.floats("image", image, "(1, C, H, W)")
    require.floats("others", others, "(n, C, H, W)")
    if len(image) != 1 or not len(others) or others.shape[1:] != image.shape[1:]:
        raise ValueError(
            "image must be one image and others at least one of the same shape, got "
            f"{tuple(image.shape)} and {tuple(others.shape)}"
        )
    if any(torch.equal(image[0], other) for other in others):
        raise ValueError("others must be other images, but one of them is the image itself")
    return image, others.to(image)


def _patch_size(image: Tensor, rows: int, columns: int) -> int:
    H, W = image.shape[2:]
    if H % rows or W % columns or H // rows != W // columns:
        raise ValueError(
            f"heatmap of {rows} x {columns} makes no square patches of an image of {H} x {W} pixels"
        )
    return H // rows


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).split(". ")[0] or type(error).__name__


def _short(number: float) -> str:
    return f"{round(number, 2) + 0.0:.2f}"  # never "-0.00"


def _listed(names: list[str], word: str) -> str:
    return f" {word} ".join([", ".join(names[:-1])] * bool(names[:-1]) + names[-1:])
