"""A small ViT and 1,000 images: which remedy helps, one at a time, in a short and a long run?"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.machinery.choose import Choice
from experiments.machinery.experiment import Experiment, Outcome, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import parameters
from vitbook.data import STATISTICS, ImageSet, augmentation
from vitbook.distillation import WithTeacher, distillation_loss
from vitbook.small_cnn import SmallCNN
from vitbook.stems import ConvStem
from vitbook.training import TrainConfig, evaluate, train
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
PER_CLASS = 100  # images to learn from
MODEL = {
    "image_size": 32,
    "patch_size": 8,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 48,
    "depth": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "learned",
}
RECIPE = {"batch_size": 100, "weight_decay": 0.05}
STEPS = {"short": 80, "long": 400}  # 8 and 40 epochs
BLACK = -STATISTICS[SET][0][0] / STATISTICS[SET][1][0]
AUGMENTATION = {"shift": 1, "flip": True}
CNN = (12, 24, 48)  # channels
TEACHER = {"steps": 150, "learning_rate": 1.6e-2, "warmup_steps": 15}
DISTILLATION = {"share": 0.7, "temperature": 3.0}
ARMS = {
    "nothing": {},
    "augmentation": {},
    "weight decay": {"weight_decay": 0.5},
    "distillation": {},
    "convolutional stem": {},
    "small CNN": {},
}
VALIDATION = KNOWN = 2000  # images, at most
LINEAR_RATES = (1e-3, 3e-3, 1e-2)


def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Normalized images (n, 1, 32, 32): a black border of two pixels, so that 8 divides."""
    images, labels = image_set(SET, part, scale)
    if part == "validation":
        images, labels = images[:VALIDATION], labels[:VALIDATION]
    return ImageSet(F.pad(images, [2] * 4, value=BLACK), labels)


def learned_from(seed: int, scale: float) -> ImageSet:
    """100 images of each class, drawn by the seed; the same for every arm."""
    images, labels = images_of("train", scale)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    count = scaled(PER_CLASS, scale)
    index = torch.cat([order[labels[order] == k][:count] for k in labels.unique()])
    return ImageSet(images[index], labels[index])


def build(arm: str, seed: int) -> nn.Module:
    """The model of an arm; all ViTs but one start with the same weights, given the seed."""
    torch.manual_seed(seed)
    if arm == "small CNN":
        return SmallCNN(in_channels=1, num_classes=10, widths=CNN)
    model = VisionTransformer(**MODEL)
    if arm == "convolutional stem":
        sizes = ("image_size", "patch_size", "in_channels", "embed_dim")
        model.patch_embed = ConvStem(**{name: MODEL[name] for name in sizes})
    return model


def fit(
    arm: str, steps: int, learn: ImageSet, seed: int, log, scale: float, rate: float
) -> nn.Module:
    """The trained model of one arm."""
    steps = scaled(steps, scale)
    recipe = {**RECIPE, "batch_size": scaled(RECIPE["batch_size"], scale)}
    recipe |= ARMS[arm]
    config = TrainConfig(
        steps=steps, warmup_steps=steps // 10, learning_rate=rate, seed=seed, **recipe
    )
    student = build(arm, seed)
    model, loss = student, logged(log)
    if arm == "distillation":
        model = WithTeacher(student, taught(learn, seed, scale))

        def loss(both: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
            value = distillation_loss(*both, labels, **DISTILLATION)
            log(value.item())
            return value

    augment = augmentation(**AUGMENTATION, fill=BLACK) if arm == "augmentation" else None
    train(model, *learn, config, augment=augment, loss_function=loss, progress=False)
    return student.eval()


def taught(learn: ImageSet, seed: int, scale: float) -> nn.Module:
    """The teacher: the small CNN, trained on the same images."""
    teacher = build("small CNN", seed)
    recipe = {**TEACHER, "steps": scaled(TEACHER["steps"], scale), "seed": seed}
    recipe["batch_size"] = scaled(RECIPE["batch_size"], scale)
    train(teacher, *learn, TrainConfig(**recipe), progress=False)
    return teacher


def trial(condition: dict, seed: int, log, scale: float, *, length: float, learning_rate: float):
    """One learning rate, judged on validation images."""
    arm, steps = condition["arm"], round(STEPS["long"] * length)
    learn = learned_from(seed, scale)
    model = fit(arm, steps, learn, seed, log, scale, learning_rate)
    result = evaluate(model, *images_of("validation", scale))
    return {"validation_error": 1 - result.accuracy, "validation_loss": result.loss}


def baselines(learn: ImageSet, seed: int, scale: float) -> dict[str, float]:
    """The nearest image, and logistic regression, on the pixels of the same images."""
    images, labels = images_of("test", scale)
    known = learn.images.flatten(1)
    half = known.square().sum(1) / 2
    found = [(half - x @ known.T).argmin(1) for x in images.flatten(1).split(500)]
    tried = []
    for rate in LINEAR_RATES:
        linear = nn.Linear(known.shape[1], 10)
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
        model = nn.Sequential(nn.Flatten(), linear)
        batch = scaled(RECIPE["batch_size"], scale)
        steps = scaled(STEPS["long"], scale)
        config = TrainConfig(
            steps=steps, warmup_steps=0, learning_rate=rate, seed=seed, batch_size=batch
        )
        train(model, *learn, config, progress=False)
        tried.append((evaluate(model, *images_of("validation", scale)).loss, rate, model))
    best = min(tried, key=lambda one: one[0])[2]
    return {
        "nearest_accuracy": (learn.labels[torch.cat(found)] == labels).double().mean().item(),
        "linear_accuracy": evaluate(best, images, labels).accuracy,
    }


def run(condition: dict, seed: int, log, scale: float, learning_rate: float) -> Outcome:
    """Train one model for each budget and test it once."""
    arm = condition["arm"]
    learn, test = learned_from(seed, scale), images_of("test", scale)
    metrics = {}
    for budget, steps in STEPS.items():
        model = fit(arm, steps, learn, seed, log, scale, learning_rate)
        result = evaluate(model, *test)
        metrics[f"{budget}_accuracy"], metrics[f"{budget}_loss"] = result.accuracy, result.loss
        known = (part[:KNOWN] for part in learn)
        metrics[f"{budget}_train_accuracy"] = evaluate(model, *known).accuracy
    metrics["parameters"] = parameters(model)
    if arm == "nothing":
        metrics |= baselines(learn, seed, scale)
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="A small ViT learns 1,000 images of Fashion-MNIST without help and with one remedy at a "
    "time, in 80 and in 400 steps; beside it a small CNN, logistic regression and the nearest "
    "image; tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each arm the learning rate with the "
    "fewest errors after the long run, with a subset of its own; where the least or the largest "
    "was the best, more were tried. The short run takes the same rate. The strength of each remedy "
    "and the recipe of the teacher were set before and not searched for",
    metrics={
        **{
            f"{budget}_{what}": f"{words}, after {steps} steps"
            for budget, steps in STEPS.items()
            for what, words in (
                ("accuracy", "share of the test images answered correctly"),
                ("loss", "mean cross-entropy on the test images, in nats"),
                ("train_accuracy", "share of the training images, as they are, answered correctly"),
            )
        },
        "parameters": "numbers that are learned",
        "nearest_accuracy": "share of the test images answered correctly by the nearest of the "
        "1,000 images",
        "linear_accuracy": "the same for logistic regression on the pixels",
    },
    conditions=[{"arm": arm} for arm in ARMS],
    seeds=range(3),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "steps": STEPS,
        "images": 10 * PER_CLASS,
        "arms": ARMS,
        "cnn": CNN,
        "augmentation": AUGMENTATION,
        "teacher": TEACHER,
        "distillation": DISTILLATION,
        "linear_rates": LINEAR_RATES,
    },
    replay=({"arm": "nothing"}, 0),
    steps=lambda condition: sum(STEPS.values()),
    choose=Choice(
        grid={"learning_rate": (1e-3, 4e-3, 1.6e-2)},
        trial=trial,
        by="validation_error",
        length=1.0,
        finalists=0,
        limit=5,
    ),
)
