"""Few labels on a new set of images: from scratch, or from a model that was trained on others."""

from __future__ import annotations

import functools
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.experiment import Experiment, Outcome, checksum, logged, scaled
from experiments.machinery.image_sets import root
from vitbook.command.architectures import build as build_architecture
from vitbook.data import STATISTICS, ImageSet, load_digits, load_torchvision, normalize
from vitbook.records import load_record
from vitbook.small_cnn import SmallCNN
from vitbook.training import TrainConfig, evaluate, train
from vitbook.transfer import adapt, head_inputs

CLASSES = {"digits": 10, "odd": 5}
COUNTS = {"digits": {"few": 10, "more": 50}, "odd": {"few": 20, "more": 100}}  # of each class
SIDE = {"digits": 28, "odd": 32}
LARGE = 48  # pixels, for the arms with another grid of patches
SHORT, LONG = 60, 180  # steps
RECIPE = {"batch_size": 32, "warmup_steps": 10, "weight_decay": 0.05}
VALIDATION = 1000  # images, at most

# For each set: the arm, from which weights it starts, and what of it is trained.
ARMS = {
    "digits": {
        "probe": {"start": "mnist", "train": "head"},
        "probe of garments": {"start": "fashion-mnist", "train": "head"},
        "probe of random weights": {"start": "random", "train": "head"},
        "fine-tuned": {"start": "mnist", "steps": SHORT},
        "fine-tuned from garments": {"start": "fashion-mnist", "steps": SHORT},
        "from scratch": {"start": "random", "steps": SHORT},
        "from scratch, longer": {"start": "random"},
        "small CNN": {"start": "cnn"},
    },
    "odd": {
        "probe": {"start": "even", "train": "head"},
        "probe of random weights": {"start": "random", "train": "head"},
        "fine-tuned": {"start": "even", "steps": SHORT},
        "fine-tuned, larger, table resampled": {"start": "even", "steps": SHORT, "side": LARGE},
        "fine-tuned, larger, table new": {
            "start": "even",
            "steps": SHORT,
            "side": LARGE,
            "table": "new",
        },
        "from scratch": {"start": "random", "steps": SHORT},
        "from scratch, longer": {"start": "random"},
        "small CNN": {"start": "cnn"},
    },
}
RATES = (5e-4, 2e-3, 8e-3)
LINEAR_RATES = (1e-3, 3e-3, 1e-2, 3e-2)


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
    """Images as the pretrained model takes them; a digit gets the black border of MNIST."""
    if name == "digits":  # MNIST: 20 x 20 pixels in the middle of 28 x 28
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
    settings = {"architecture": "vit", **settings, "positions": "learned"}
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
    return "fashion-mnist" if arm["start"] == "fashion-mnist" else "mnist"


def learned(condition: dict, count: str, seed: int, log, scale: float, rate: float, length=1.0):
    """The trained model of one arm, and how it wants its images."""
    name, arm = condition["set"], ARMS[condition["set"]][condition["arm"]]
    pool = pixels_of(name, "train")
    index = labelled(pool.labels, COUNTS[name][count], seed)
    side, statistics = arm.get("side", SIDE[name]), statistics_of(name, arm)
    images, labels = prepared(name, pool.images[index], side, statistics), pool.labels[index]
    torch.manual_seed(seed)
    if arm["start"] == "cnn":
        model = SmallCNN(in_channels=images.shape[1], num_classes=CLASSES[name])
    else:
        model = vit(name, arm, seed)
    steps = scaled(arm.get("steps", LONG), scale * length)
    config = TrainConfig(steps=steps, learning_rate=rate, seed=seed, **RECIPE)
    options = {"loss_function": logged(log), "progress": False}
    if arm.get("train") == "head":
        features = head_inputs(model, images)[..., None, None]  # (n, D, 1, 1)
        head = nn.Sequential(nn.Flatten(), model.head)
        train(head, features, labels, config, **options)
    else:
        train(model, images, labels, config, **options)
    return model, (side, statistics)


def asked(name: str, part: str, side: int, statistics: str, scale: float) -> ImageSet:
    """The images of a part as a model takes them."""
    images, labels = pixels_of(name, part, scale)
    if part == "validation":
        images, labels = images[:VALIDATION], labels[:VALIDATION]
    return ImageSet(prepared(name, images, side, statistics), labels)


def searched(condition: dict, seed: int, log, scale: float) -> float:
    """The learning rate of an arm: half the steps, the larger number of labels, least loss."""
    name, losses = condition["set"], {}
    for rate in RATES:
        model, how = learned(condition, "more", seed, log, scale, rate, length=0.5)
        losses[rate] = evaluate(model, *asked(name, "validation", *how, scale)).loss
    return min(losses, key=losses.__getitem__)


def baselines(name: str, count: str, seed: int, scale: float) -> list[float]:
    """Accuracy of the nearest labelled image, and of logistic regression, on the same pixels."""
    pool = pixels_of(name, "train")
    index = labelled(pool.labels, COUNTS[name][count], seed)
    statistics = STATISTICS["digits" if name == "digits" else "cifar10"]
    known, labels = normalize(pool.images[index], *statistics), pool.labels[index]
    test, check = (pixels_of(name, part, scale) for part in ("test", "validation"))
    images = normalize(test.images, *statistics)
    judge = normalize(check.images[:VALIDATION], *statistics), check.labels[:VALIDATION]
    half = known.flatten(1).square().sum(1) / 2
    found = [(half - x @ known.flatten(1).T).argmin(1) for x in images.flatten(1).split(500)]
    fitted = []
    for rate in LINEAR_RATES:
        model = nn.Sequential(nn.Flatten(), nn.Linear(known[0].numel(), CLASSES[name]))
        nn.init.zeros_(model[1].weight)
        nn.init.zeros_(model[1].bias)
        steps = scaled(LONG, scale)
        config = TrainConfig(steps=steps, learning_rate=rate, seed=seed, **RECIPE)
        train(model, known, labels, config, progress=False)
        fitted.append((evaluate(model, *judge).loss, rate, model))
    best = min(fitted, key=lambda one: one[:2])[2]
    nearest = (labels[torch.cat(found)] == test.labels).double().mean().item()
    return [nearest, evaluate(best, images, test.labels).accuracy]


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """All arms on one set, with few and with more labelled images, each tested once."""
    name = condition["set"]
    accuracy, rates = [], []
    for arm in ARMS[name]:
        one = {"set": name, "arm": arm}
        rate, row = searched(one, seed, log, scale), []
        for count in COUNTS[name]:
            model, how = learned(one, count, seed, log, scale, rate)
            row.append(evaluate(model, *asked(name, "test", *how, scale)).accuracy)
        accuracy.append(row)
        rates.append(rate)
    simple = [baselines(name, count, seed, scale) for count in COUNTS[name]]
    nearest, linear = (list(pair) for pair in zip(*simple, strict=True))
    return Outcome(
        {
            "accuracy": accuracy,
            "learning_rates": rates,
            "nearest_accuracy": nearest,
            "linear_accuracy": linear,
        }
    )


def data() -> dict[str, str]:
    """Checksums of the images, and of the weights that the pretrained arms start from."""
    found = {
        f"{name}, {part}": checksum(*pixels_of(name, part))
        for name in CLASSES
        for part in ("train", "validation", "test")
    }
    sources = {"full_sets": ("mnist", "fashion_mnist"), "five_classes": ("vit",)}
    records = {"full_sets": load_record("full_sets"), "five_classes": load_record("five_classes")}
    for record, labels in sources.items():
        for label in labels:
            weights = records[record].weights(label)
            found[f"weights of {record}, {label}"] = checksum(*weights.values())
    return found


EXPERIMENT = Experiment(
    what="Few labelled images of a new set: scikit-learn's digits after MNIST or Fashion-MNIST, "
    "five classes of CIFAR-10 after the other five; from scratch, with a trained head on frozen "
    "features, and fine-tuned.",
    chosen_on="validation images, more of them than labelled ones: in each run and for each arm "
    "the learning rate with the least loss out of the same three, after half the steps with the "
    "larger number of labels; for the logistic regression out of four",
    metrics={
        "accuracy": "share of the test images answered correctly: a row for each arm, in the order "
        "of the settings, with few and with more labelled images",
        "nearest_accuracy": "the same for the nearest labelled image, by its pixels: few, more",
        "linear_accuracy": "the same for logistic regression on the pixels: few, more",
        "learning_rates": "chosen for each arm",
    },
    conditions=[{"set": name} for name in ARMS],
    seeds=range(5),
    run=run,
    data=data,
    settings={
        "arms": ARMS,
        "counts": COUNTS,
        "steps": {"default": LONG, "fine-tuning and from scratch": SHORT},
        "training": RECIPE,
        "learning_rates_tried": RATES,
        "augmentation": "none, in no arm",
        "digits": "8 x 8 pixels enlarged to 20 x 20 in the middle of 28 x 28, as in MNIST",
        "odd": "automobile, cat, dog, horse, truck; the model was trained on the other five",
    },
    replay=({"set": "digits"}, 0),
    steps=lambda condition: sum(
        2 * arm.get("steps", LONG) + 3 * (arm.get("steps", LONG) // 2)
        for arm in ARMS[condition["set"]].values()
    ),
)
