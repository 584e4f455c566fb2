"""An object and its background: how far do their patches look, and how much at the object?"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.image_sets import PER_CLASS, root
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import ImageSet, load_torchvision
from vitbook.data.canvas import PlacedObjects, place_on_canvas
from vitbook.data.splits import some_of_each
from vitbook.inspection import attention_maps
from vitbook.inspection.regions import query_distance, region_attention
from vitbook.models.vit import VisionTransformer

CANVAS, P = 32, 4  # 8 x 8 patches
# The mean of the tokens, so that the answer is read from every patch, and every row counts.
MODEL: dict = {**SMALL, **LEARNED, "image_size": CANVAS, "patch_size": P}
RECIPE: dict = {"steps": 1200, "batch_size": 64, "warmup_steps": 60}
ARMS = [{"depth": 1, "heads": 1}, {"depth": 1, "heads": 4}, {"depth": 2, "heads": 4}]
LINEAR = {"depth": 0, "heads": 0}  # logistic regression on the pixels
PARTS = ("train", "validation", "test")
THRESHOLD = 0.2  # brighter pixels are the garment's
HALF = 0.5  # of the pixels of a patch
LOOKED = 300  # test images whose maps are counted


def objects(part: str) -> tuple[Tensor, Tensor]:
    """Garments (n, 1, 14, 14) in [0, 1] and labels (n,)."""
    images, labels = load_torchvision("fashion-mnist", root(), part)
    if part != "test":
        index = some_of_each(labels, PER_CLASS[part])
        images, labels = images[index], labels[index]
    return F.avg_pool2d(images / 255, 2), labels


def placed(part: str, scale: float = 1.0) -> tuple[PlacedObjects, Tensor]:
    """The part's images; each part has a seed of its own."""
    things, labels = objects(part)
    kept = scaled(len(labels), scale)
    canvas = place_on_canvas(things[:kept], CANVAS, seed=PARTS.index(part), threshold=THRESHOLD)
    return canvas, labels[:kept]


def build(depth: int, heads: int) -> Any:
    if not depth:
        return nn.Sequential(nn.Flatten(), nn.Linear(CANVAS**2, MODEL["num_classes"]))
    return VisionTransformer(**MODEL, depth=depth, num_heads=heads)


def images(part: str, scale: float) -> ImageSet:
    canvas, labels = placed(part, scale)
    return ImageSet(canvas.images, labels)


CLASSIFIER = Classifier(build=build, images=images, recipe=RECIPE)


def counts(model: VisionTransformer, canvas: PlacedObjects) -> dict[str, list]:
    """What `COUNTS` names, by layer and head (L, h)."""
    share = canvas.object_share(P)  # (n, N)
    thing, ground = share >= HALF, share == 0
    fits = thing.any(dim=1)
    thing, ground = thing[fits], ground[fits]
    with torch.no_grad():
        maps = attention_maps(model, canvas.images[fits])  # (L, n, h, N, N)
    grid, area = model.patch_embed.grid, thing.float().mean(dim=1)[:, None]  # (n, 1)
    even = query_distance(torch.full_like(maps, 1 / maps.shape[-1]), grid, P, num_prefix=0)

    def reach(maps: Tensor, who: Tensor) -> Tensor:
        """(L, n, h, N, N), (n, N) -> how far they look, over even attention, (L, n, h)."""
        return masked_mean(query_distance(maps, grid, P, num_prefix=0) / even, who)

    def row(who: Tensor) -> Tensor:
        """The mean row of some patches, given to all, (L, n, h, N, N)."""
        rows = masked_mean(maps.transpose(3, 4), who[:, None])  # (L, n, h, N)
        return rows[..., None, :].expand_as(maps)

    def at(who: Tensor) -> Tensor:
        return region_attention(maps, who, thing, num_prefix=0) / area

    found = {
        "object_to_object": at(thing),
        "background_to_object": at(ground),
        "object_reach": reach(maps, thing),
        "background_reach": reach(maps, ground),
        "object_reach_swapped": reach(row(ground), thing),
        "background_reach_swapped": reach(row(thing), ground),
    }
    return {name: x.mean(dim=1).double().numpy().round(4).tolist() for name, x in found.items()}


def masked_mean(values: Tensor, where: Tensor) -> Tensor:
    """Values (L, n, h, ..., N), where (n, ..., N) -> the mean over N, (L, n, h, ...)."""
    where = where[:, None].to(values.dtype)  # (n, 1, ..., N)
    return (values * where).sum(dim=-1) / where.sum(dim=-1)


@torch.no_grad()
def alone(model: VisionTransformer, test: ImageSet) -> float:
    """The accuracy when each patch may look at itself only."""
    mask = torch.eye(model.patch_embed.num_patches, dtype=torch.bool)
    right = [
        model.forward_head(model.forward_features(x, mask)).argmax(dim=1) == y
        for x, y in zip(test.images.split(500), test.labels.split(500), strict=True)
    ]
    return float(torch.cat(right).double().mean())


def run(condition: dict, seed: int, log: Log, scale: float, **rate: Any) -> Outcome:
    """Train one model, test it, and count where its patches look, before and after."""
    model, losses = CLASSIFIER.fit(condition, seed, log, scale, **rate)
    metrics = CLASSIFIER.measure(model, losses, scale)
    if condition != LINEAR:
        canvas, _ = placed("test", scale)
        canvas = PlacedObjects(*(part[: scaled(LOOKED, scale)] for part in canvas))
        before = counts(CLASSIFIER.fresh(condition, seed), canvas)
        metrics |= counts(model, canvas) | {f"{name}_untrained": v for name, v in before.items()}
        metrics["accuracy_alone"] = alone(model, images("test", scale))
    return Outcome(metrics)


COUNTS = {
    "object_to_object": "share of the attention of the object's patches that goes to the object's "
    "patches, over the object's share of all patches (1: as much as anything else)",
    "background_to_object": "the same for the attention of background patches",
    "object_reach": "mean attention distance of the object's patches, over that of even attention "
    "from the same places (1: as far)",
    "background_reach": "the same for background patches",
    "object_reach_swapped": "the same for the object's patches, if each had the mean row of the "
    "background's patches of its image",
    "background_reach_swapped": "the same for the background, if each of its patches had the mean "
    "row of the object's patches",
}
EXPERIMENT = Experiment(
    what="Garments on a noisy canvas of 32 x 32: where the patches of the object and of the "
    "background look, in ViTs of one and two layers that are read from all patches.",
    chosen_on="validation images, a part of the training side: the learning rate of each model",
    metrics={
        **METRICS,
        "accuracy_alone": "test accuracy when each patch may look at itself only",
        **{
            name: f"{words}; by layer and head, {LOOKED} test images"
            for name, words in COUNTS.items()
        },
        **{f"{name}_untrained": f"{name} before training" for name in COUNTS},
    },
    conditions=[*ARMS, LINEAR],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"garments on a canvas, {part}": checksum(place.images, labels)
        for part in PARTS
        for place, labels in [placed(part)]
    },
    settings={
        "model": MODEL,
        "training": RECIPE,
        "depth 0": "logistic regression on the pixels, by the same loop",
        "objects": "Fashion-MNIST, 28 x 28, means of 2 x 2, somewhere on a canvas of 32 x 32; a "
        "pixel above 0.2 is the garment's, a patch with at least half of such pixels too; a patch "
        "without any is background; the others are not counted",
    },
    replay=({"depth": 1, "heads": 4}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.25, finalists=0
    ),
)
