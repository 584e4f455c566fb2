"""What does the token mixing of an MLP-Mixer learn about the places of its patches?"""

from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import COSTS, METRICS, Classifier, costs, trial_by
from experiments.machinery.experiment import Experiment, Log, MustBeat, Outcome
from experiments.machinery.image_sets import PARTS, whole_checksums, whole_set
from experiments.machinery.patch_orders import reordered, shuffled
from experiments.machinery.small_vit import LEARNED
from vitbook.data import ImageSet
from vitbook.models.hybrid import Hybrid
from vitbook.training import evaluate

SET = "cifar10"
SIDE, P = 32, 4  # 8 x 8 = 64 patches
GRID = (SIDE // P, SIDE // P)
N = GRID[0] * GRID[1]
DEPTH = 3
IMAGES: dict = {"image_size": SIDE, "patch_size": P, "in_channels": 3, "num_classes": 10}
MODEL: dict = {**IMAGES, "embed_dim": 48, "mlp_ratio": 2.0, "token_dim": 32}
RECIPE: dict = {"steps": 700, "batch_size": 64, "warmup_steps": 40}  # one pass over 45,000 images
ORDERS = {
    "kept": "every patch in its place",
    "fixed": "the patches of all images in one other order, drawn once",
    "anew": "the patches of each image in an order of its own; while training, another each time",
}
LAYERS: dict = {"mixer": "mixer", "mixer with positions": "mixer", "no mixing": "none"}
ARMS = [
    {"model": "mixer", "order": "kept"},
    {"model": "mixer", "order": "fixed"},
    {"model": "mixer", "order": "anew"},
    {"model": "mixer with positions", "order": "kept"},
    {"model": "no mixing", "order": "kept"},
]


def build(model: str, order: str) -> Hybrid:
    positions = {"positions": "none"} if model == "mixer" else LEARNED
    return Hybrid(**MODEL, layers=[LAYERS[model]] * DEPTH, **positions)


def fixed_order() -> Tensor:
    """Which patch stands at each place of the "fixed" images, (N,)."""
    return torch.randperm(N, generator=torch.Generator().manual_seed(15))


@lru_cache(maxsize=4)
def images_of(part: str, scale: float = 1.0, order: str = "kept") -> ImageSet:
    """Normalised images (n, 3, 32, 32), their patches in that order, and labels (n,)."""
    images, labels = whole_set(SET, part, scale)
    if order == "fixed":
        images = reordered(images, P, fixed_order())
    if order == "anew":
        images = shuffled(images, P, torch.Generator().manual_seed(PARTS.index(part)))
    return ImageSet(images, labels)


def anew(images: Tensor, generator: torch.Generator) -> Tensor:
    return shuffled(images, P, generator)


CLASSIFIERS = {
    order: Classifier(
        build=build,
        images=partial(images_of, order=order),
        recipe=RECIPE,
        options=lambda condition: {"augment": anew} if condition["order"] == "anew" else {},
    )
    for order in ORDERS
}


def neighbours_alike(units: Tensor) -> float:
    """How alike the weights of neighbouring patches are, mean over units (S, rows, columns).

    The correlation of a unit's weights with those one place to the right or below: 0 for weights
    without order, near 1 for a smooth picture.
    """
    w = units - units.mean(dim=(1, 2), keepdim=True)
    pairs = torch.cat(
        [(w[:, 1:] * w[:, :-1]).flatten(1), (w[:, :, 1:] * w[:, :, :-1]).flatten(1)], dim=1
    )
    return float((pairs.mean(dim=1) / w.square().mean(dim=(1, 2))).mean())


def units_of(model: Hybrid) -> list[Tensor]:
    """The hidden units of the token mixing of each block: one weight for each place, (S, N)."""
    return [block.attn.mlp.fc1.weight.detach() for block in model.encoder.blocks]


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    """Train one model; test it with the patches in each order; look at its units."""
    classifier = CLASSIFIERS[condition["order"]]
    mixes = condition["model"] != "no mixing"
    fresh = classifier.fresh(condition, seed)
    model, losses = classifier.fit(condition, seed, log, scale, **chosen)
    metrics = classifier.measure(model, losses, scale)
    for order in ORDERS:
        images = images_of("test", scale, order)
        metrics[f"accuracy_{order}"] = evaluate(model, *images).accuracy
    metrics |= costs(model, images.images)
    weights = {}
    if mixes:
        units = units_of(model)
        back = fixed_order().argsort()  # where each patch of an image stands in the other order
        for name, of in (("alike_start", units_of(fresh)), ("alike", units)):
            metrics[name] = [neighbours_alike(w.unflatten(1, GRID)) for w in of]
        metrics["alike_put_back"] = [neighbours_alike(w[:, back].unflatten(1, GRID)) for w in units]
        weights = {f"units.{layer}": w for layer, w in enumerate(units)}
    return Outcome(metrics, model.state_dict() if condition["order"] == "kept" else weights)


EXPERIMENT = Experiment(
    what="A small MLP-Mixer on CIFAR-10 with 8 x 8 patches: what its token mixing learns, and "
    "what it knows of the order of the patches.",
    chosen_on="validation images, a tenth of the official training images: the learning rate of "
    "each arm; the Mixer in the fixed order takes that of the Mixer in place, which learns the "
    "same with other names for the places",
    metrics={
        **METRICS,
        **{f"accuracy_{order}": f"share of test images right, {w}" for order, w in ORDERS.items()},
        **COSTS,
        "alike": "correlation of a hidden unit's weights at neighbouring places, mean over the "
        "units, by block",
        "alike_start": "the same before training",
        "alike_put_back": "the same with each place's weight laid where the patch stands in the "
        "image that it belongs to (for the order `fixed`)",
    },
    conditions=ARMS,
    seeds=range(3),
    run=run,
    data=lambda: whole_checksums(SET),
    settings={
        "model": {**MODEL, "depth": DEPTH},
        "training": RECIPE,
        "orders": ORDERS,
        "fixed_order": fixed_order().tolist(),
    },
    replay=({"model": "mixer", "order": "kept"}, 0),
    keep={
        "mixer": ({"model": "mixer", "order": "kept"}, 0),
        "fixed": ({"model": "mixer", "order": "fixed"}, 0),
    },
    steps=CLASSIFIERS["kept"].steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=trial_by("order", CLASSIFIERS),
        length=0.15,
        finalists=0,
        arm=lambda condition: {
            **condition,
            "order": "anew" if condition["order"] == "anew" else "kept",
        },
    ),
    must_beat=MustBeat({"model": "mixer", "order": "kept"}, data=SET),
)
