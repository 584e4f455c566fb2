"""Few labels on a new set of images: from scratch, or from a model that was trained on others.

What is compared was settled after an earlier record with other seeds, where fine-tuning had a third
of the probe's steps. Here every arm has the same steps, those called longer have three times as
many, and all seeds are new.
"""

import functools
import math
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.baselines import linear, nearest_accuracy
from experiments.machinery.choose import Choice, decide, search
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, logged, scaled
from experiments.machinery.image_sets import root
from vitbook.book.records import load_record
from vitbook.command.architectures import build as build_architecture
from vitbook.data import STATISTICS, ImageSet, load_digits, load_torchvision, normalize
from vitbook.models.small_cnn import SmallCNN
from vitbook.models.transfer import adapt, head_inputs
from vitbook.training import TrainConfig, evaluate, train

CLASSES = {"digits": 10, "odd": 5}
COUNTS = {"digits": {"few": 10, "more": 50}, "odd": {"few": 20, "more": 100}}  # of each class
SIDE: dict = {"digits": 28, "odd": 32}
LARGE = 48  # pixels, for the arms with another grid of patches
STEPS, LONGER = 120, 360
RECIPE: dict = {"batch_size": 32, "warmup_steps": 10, "weight_decay": 0.05}
SEED, DRAWS = 40, 5  # of the search; after it

# For each set: the arm, from which weights it starts, what of it is trained, with how many labels.
ARMS: dict = {
    "digits": {
        "fine-tuned": {"start": "mnist"},
        "fine-tuned, longer": {"start": "mnist", "steps": LONGER, "counts": ["few"]},
        "fine-tuned from garments": {"start": "fashion-mnist"},
        "probe": {"start": "mnist", "train": "head"},
        "probe of garments": {"start": "fashion-mnist", "train": "head"},
        "probe of random weights": {"start": "random", "train": "head"},
        "probe, longer": {"start": "mnist", "train": "head", "steps": LONGER},
        "probe of garments, longer": {"start": "fashion-mnist", "train": "head", "steps": LONGER},
        "from scratch": {"start": "random"},
        "small CNN": {"start": "cnn"},
        "logistic regression": {"start": "pixels", "side": 8},
    },
    "odd": {
        "fine-tuned": {"start": "even"},
        "fine-tuned, longer": {"start": "even", "steps": LONGER, "counts": ["few"]},
        "probe": {"start": "even", "train": "head"},
        "probe of random weights": {"start": "random", "train": "head"},
        "probe, longer": {"start": "even", "train": "head", "steps": LONGER},
        "fine-tuned, larger, table resampled": {"start": "even", "side": LARGE, "counts": ["more"]},
        "fine-tuned, larger, table new": {
            "start": "even",
            "side": LARGE,
            "table": "new",
            "counts": ["more"],
        },
        "from scratch": {"start": "random"},
        "small CNN": {"start": "cnn"},
        "logistic regression": {"start": "pixels"},
    },
}


def pixels_of(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """Digits of 8 x 8 pixels, or the odd classes of CIFAR-10, in 0 ... 1; labels from 0."""
    images, labels = _whole(name, part, root())
    kept = scaled(len(labels), scale)
    return ImageSet(images[:kept], labels[:kept])


@functools.cache
def _whole(name: str, part: str, folder: Path) -> ImageSet:
    if name == "digits":
        return load_digits(part)
    images, labels = load_torchvision("cifar10", folder, part)
    odd = labels % 2 == 1
    return ImageSet(images[odd] / 255, labels[odd] // 2)


def prepared(name: str, images: Tensor, side: int, statistics: str) -> Tensor:
    """Images as a model takes them; an enlarged digit gets the black border of MNIST."""
    if side != images.shape[-1] and name == "digits":  # MNIST: 20 x 20 in the middle of 28 x 28
        images = F.interpolate(images, size=(20, 20), mode="bilinear", align_corners=False)
        images = F.pad(images, [(side - 20) // 2] * 4)
    elif side != images.shape[-1]:
        images = F.interpolate(images, size=(side, side), mode="bicubic", align_corners=False)
    return normalize(images.clamp(0, 1), *STATISTICS[statistics])


def labelled(labels: Tensor, count: int, seed: int) -> Tensor:
    """Places of `count` images of each class; a larger count holds those of a smaller one."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    return torch.cat([order[labels[order] == k][:count] for k in labels.unique()])


def vit(name: str, arm: dict, seed: int) -> nn.Module:
    """The model of an arm before training: random, or from the weights of a record."""
    torch.manual_seed(seed)
    side, K = arm.get("side", SIDE[name]), CLASSES[name]
    if name == "odd":
        record = load_record("five_classes")
        settings, weights = record.settings["model"], record.weights("vit")
        channels = 3
    else:
        record = load_record("full_sets")
        label = "fashion_mnist" if arm["start"] == "fashion-mnist" else "mnist"
        settings, weights = record.settings[label.replace("_", "-")], record.weights(label)
        channels = 1
    own = {"image_size", "in_channels", "num_classes"}
    settings = {"architecture": "vit", **settings, "positions": "learned", "position_std": 0.5}
    shape = {"image_size": side, "in_channels": channels, "num_classes": K}
    model = build_architecture({k: v for k, v in settings.items() if k not in own}, shape)
    if arm["start"] != "random":
        fresh = model.positions.table.detach().clone()
        adapt(model, weights)
        if arm.get("table") == "new":
            with torch.no_grad():
                model.positions.table[1:] = fresh[1:]  # the row of the class token is kept
    return model


def statistics_of(name: str, arm: dict) -> str:
    """The statistics that the images are normalized with: those of the pretraining."""
    if name == "odd":
        return "cifar10"
    if arm["start"] == "pixels":
        return "digits"
    return "fashion-mnist" if arm["start"] == "fashion-mnist" else "mnist"


def learned(
    name: str, arm: dict, count: str, seed: int, log: Log, scale: float, rate: float
) -> tuple[nn.Module, tuple[int, str]]:
    """The trained model of one arm, and how it wants its images."""
    pool = pixels_of(name, "train")
    index = labelled(pool.labels, scaled(COUNTS[name][count], scale), seed)
    how = arm.get("side", SIDE[name]), statistics_of(name, arm)
    images, labels = prepared(name, pool.images[index], *how), pool.labels[index]
    torch.manual_seed(seed)
    if arm["start"] == "cnn":
        model: Any = SmallCNN(in_channels=images.shape[1], num_classes=CLASSES[name])
    elif arm["start"] == "pixels":
        model = linear(images[0].numel(), CLASSES[name])
    else:
        model = vit(name, arm, seed)
    steps = scaled(arm.get("steps", STEPS), scale)
    recipe = {**RECIPE, "batch_size": scaled(RECIPE["batch_size"], scale)}
    config = TrainConfig(steps=steps, learning_rate=rate, seed=seed, **recipe)
    options: dict = {"loss_function": logged(log), "progress": False}
    if arm.get("train") == "head":
        features = head_inputs(model, images)[..., None, None]  # (n, D, 1, 1)
        head = nn.Sequential(nn.Flatten(), model.head)
        train(head, features, labels, config, **options)
    else:
        train(model, images, labels, config, **options)
    return model, how


def asked(name: str, part: str, how: tuple[int, str], scale: float) -> ImageSet:
    """The images of a part as a model takes them."""
    images, labels = pixels_of(name, part, scale)
    return ImageSet(prepared(name, images, *how), labels)


def searched(name: str, arm: dict, count: str, seed: int, log: Log, scale: float) -> dict:
    """The learning rate of an arm: beyond the least and the largest tried, one more is tried."""

    def tried(rate: float) -> float | None:
        try:
            model, how = learned(name, arm, count, seed, log, scale, rate)
        except ArithmeticError:  # it diverged
            return None
        found = evaluate(model, *asked(name, "validation", how, scale))
        score = 1 - found.accuracy + min(found.loss, 1.0) / 1e4  # among equals the least loss
        return score if math.isfinite(score) else None

    trials = search(
        PLAN, lambda wanted: [{**one, "metrics": {"score": tried(one["value"])}} for one in wanted]
    )
    (winner,) = decide(PLAN, trials)
    return winner


def nearest(name: str, count: str, seed: int, scale: float) -> float:
    """Accuracy of the nearest labelled image, by its pixels."""
    pool, test = pixels_of(name, "train"), pixels_of(name, "test", scale)
    index = labelled(pool.labels, COUNTS[name][count], seed)
    statistics = STATISTICS[statistics_of(name, {"start": "pixels"})]
    known = ImageSet(normalize(pool.images[index], *statistics), pool.labels[index])
    return nearest_accuracy(known, ImageSet(normalize(test.images, *statistics), test.labels))


def order(name: str, count: str) -> list[str]:
    """The arms that learn from this number of labels."""
    return [arm for arm, of in ARMS[name].items() if count in of.get("counts", COUNTS[name])]


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """All arms on one set with one number of labels: a search, then each of the draws once."""
    name, count = condition["set"], condition["labels"]
    draws = range(seed + 1, seed + 1 + scaled(DRAWS, scale))
    columns, winners = [], []
    for arm in (ARMS[name][arm] for arm in order(name, count)):
        winners.append(searched(name, arm, count, seed, log, scale))
        column = []
        for draw in draws:
            model, how = learned(name, arm, count, draw, log, scale, winners[-1]["value"])
            column.append(evaluate(model, *asked(name, "test", how, scale)).accuracy)
        columns.append(column)
    return Outcome(
        {
            "accuracy": [list(row) for row in zip(*columns, strict=True)],
            "nearest_accuracy": [nearest(name, count, draw, scale) for draw in draws],
            "learning_rates": [winner["value"] for winner in winners],
            "at_edge": [int(winner["at_edge"]) for winner in winners],
        }
    )


def data() -> dict[str, str]:
    """Checksums of the images, and of the weights that the pretrained arms start from."""
    found = {
        f"{name}, {part}": checksum(*pixels_of(name, part))
        for name in CLASSES
        for part in ("train", "validation", "test")
    }
    sources = [("full_sets", "mnist"), ("full_sets", "fashion_mnist"), ("five_classes", "vit")]
    for record, label in sources:
        weights = load_record(record).weights(label)
        found[f"weights of {record}, {label}"] = checksum(*weights.values())
    return found


PLAN = Choice(
    grid={"learning_rate": (5e-4, 2e-3, 8e-3)},
    trial=cast(Any, learned),  # not called: the plan alone is read
    by="score",
    length=1.0,
    finalists=0,
    limit=8,
).plan([{}])
EXPERIMENT = Experiment(
    what="Few labelled images of a new set: scikit-learn's digits after MNIST or Fashion-MNIST, "
    "five classes of CIFAR-10 after the other five; from scratch, with a trained head on frozen "
    "features, and fine-tuned.",
    chosen_on="validation images, more of them than labelled ones: for each arm and each number of "
    "labels the learning rate with the fewest errors after all its steps, among equals the least "
    "loss, with labelled images and first weights of its own; where the least or the largest rate "
    "was the best, the next one beyond it was tried too. Which arms and how many steps to compare "
    "was settled after an earlier record with other seeds",
    metrics={
        "accuracy": "share of the test images answered correctly: a row for each of the seeds that "
        "follow the named one (labelled images, first weights, order), in it a number for each "
        "arm, in the order of the settings",
        "nearest_accuracy": "the same for the nearest labelled image, by its pixels",
        "learning_rates": "chosen for each arm",
        "at_edge": "1 where the search ended with the least or the largest rate it had tried",
    },
    conditions=[{"set": name, "labels": count} for name in ARMS for count in COUNTS[name]],
    seeds=[SEED],
    run=run,
    data=data,
    settings={
        "arms": ARMS,
        "order": {name: {count: order(name, count) for count in COUNTS[name]} for name in ARMS},
        "counts": COUNTS,
        "steps": {"all": STEPS, "longer": LONGER},
        "training": RECIPE,
        "first_rates": PLAN["grid"],
        "rates_at_most": PLAN["limit"],
        "augmentation": "none, in no arm",
        "digits": "8 x 8 pixels enlarged to 20 x 20 in the middle of 28 x 28, as in MNIST; for "
        "logistic regression and the nearest image 8 x 8",
        "odd": "automobile, cat, dog, horse, truck; the model was trained on the other five",
    },
    replay=({"set": "digits", "labels": "few"}, SEED),
    steps=lambda condition: sum(
        (4 + DRAWS) * ARMS[condition["set"]][arm].get("steps", STEPS)
        for arm in order(*condition.values())
    ),
)
