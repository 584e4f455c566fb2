"""What cheaper attention costs a trained model: swapped in, and after a brief fine-tuning."""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.attention_math.cheaper import WAYS, with_way
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, logged, scaled
from experiments.machinery.image_sets import root
from experiments.machinery.measures import multiplies, thin
from vitbook.book.records import load_record
from vitbook.data import STATISTICS, ImageSet, load_torchvision, normalize
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, train

SET = "cifar10"
COUNTS = {"train": 8000, "test": 2000}  # the first ones of each part
MODEL: dict = {**load_record("cifar_maps").settings["model"], "depth": 3, "num_heads": 4}
POINTS = 20  # of a curve
RECIPE: dict = {"steps": 40, "batch_size": 100, "warmup_steps": 4, "learning_rate": 1e-3}


def trained(way: str, seed: int) -> VisionTransformer:
    """The trained model of the record `cifar_maps`, in one of the ways."""
    return with_way(way, MODEL, load_record("cifar_maps").weights("deep"), seed=seed)


@lru_cache
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    """Images (n, 3, 36, 36), normalised and resized as in `cifar_maps`, and labels (n,)."""
    images, labels = load_torchvision(SET, root(), part)
    kept, side = scaled(COUNTS[part], scale), MODEL["image_size"]
    images = normalize(images[:kept], *STATISTICS[SET])
    return ImageSet(F.interpolate(images, size=(side, side), mode="bilinear"), labels[:kept])


@torch.no_grad()
def logits_of(model: nn.Module, images: Tensor) -> Tensor:
    return torch.cat([model(x) for x in images.split(100)])


@lru_cache
def answered(seed: int, scale: float) -> Tensor:
    """The answers of the untouched model to the test images, (n,)."""
    images, _ = images_of("test", scale)
    return logits_of(trained("untouched", seed).eval(), images).argmax(dim=-1)


def measured(model: nn.Module, before: Tensor, scale: float, when: str) -> dict[str, float]:
    """Accuracy, loss, and how many answers are not those of the untouched model, `before`."""
    images, labels = images_of("test", scale)
    logits = logits_of(model.eval(), images)
    answers = logits.argmax(dim=-1)
    return {
        f"accuracy_{when}": (answers == labels).double().mean().item(),
        f"loss_{when}": F.cross_entropy(logits, labels).item(),
        f"changed_{when}": (answers != before).double().mean().item(),
    }


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Swap one way in, test, fine-tune the whole model, test again."""
    way = condition["way"]
    before = answered(seed, scale)
    model = trained(way, seed)
    torch.manual_seed(seed)
    metrics = measured(model, before, scale, "swapped")
    given = RECIPE | {n: scaled(RECIPE[n], scale) for n in ("steps", "batch_size")}
    config = TrainConfig(**given, seed=seed)
    history = train(
        model, *images_of("train", scale), config, loss_function=logged(log), progress=False
    )
    metrics |= measured(model, before, scale, "tuned")
    return Outcome(
        metrics
        | {
            "loss": thin([row["loss"] for row in history], POINTS),
            "multiplies": multiplies(model, images_of("test", scale).images),
        }
    )


MEASURED = {
    "accuracy": f"share of {COUNTS['test']:,} test images answered correctly",
    "loss": "mean cross-entropy on them, in nats",
    "changed": "share of them with another answer than the untouched, trained model's",
}
WHEN = {
    "swapped": "with the change swapped into the trained model, nothing learned since",
    "tuned": f"after {RECIPE['steps']} steps of fine-tuning",
}

EXPERIMENT = Experiment(
    what="A trained ViT of 144 patches on CIFAR-10, made cheaper in four ways, each beside a "
    "control that saves as much and chooses badly: its answers at once, and after a brief "
    "fine-tuning of the whole model.",
    chosen_on="Nothing was chosen: one learning rate for all, window and number of tokens fixed "
    "beforehand. One trained model; a seed decides the order of its fine-tuning and what is drawn "
    "at random.",
    metrics={
        **{f"{n}_{when}": f"{m}, {w}" for n, m in MEASURED.items() for when, w in WHEN.items()},
        "loss": "training loss of the fine-tuning, means over equally many steps, in nats",
        "multiplies": "multiplications in the matrix products for one image",
    },
    conditions=[{"way": way} for way in WAYS],
    seeds=range(3),
    run=run,
    data=lambda: {f"{SET}, {part}": checksum(*images_of(part)) for part in ("train", "test")},
    settings={"model": MODEL, "training": RECIPE, "ways": WAYS, "weights": "deep, of cifar_maps"},
    replay=({"way": "untouched"}, 0),
    steps=lambda condition: RECIPE["steps"],
)
