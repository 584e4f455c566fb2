"""Which learning rate suits a larger batch? Four batch sizes against the linear and the root rule.

Two questions are meant: the batch grows while the images seen stay as many (equal epochs, what a
larger batch on the same data set is), or while the updates stay as many (more data or more time).
"""

import math
from functools import lru_cache

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import Classifier
from experiments.machinery.experiment import Experiment, Log, Outcome
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.small_vit import LEARNED, SMALL
from vitbook.data import ImageSet
from vitbook.models.vit import VisionTransformer
from vitbook.training import evaluate

SET = "mnist"
SIZES: dict = {"image_size": 28, "patch_size": 7, "embed_dim": 32, "depth": 2, "num_heads": 4}
MODEL: dict = {**SMALL, **LEARNED, **SIZES}
BATCHES = (16, 64, 256, 1024)
FROM = 64  # the batch whose searched rate the rules start from: the command's own
IMAGES, UPDATES = 32_000, 125  # seen in all; a batch of 256 makes as many updates of both kinds
WARMUP = 10  # one update in so many
RULES = {"same": 0.0, "root": 0.5, "linear": 1.0}  # rate ~ batch^p
WALK = 10  # rates at most, until worse ones lie on both sides of the best


@lru_cache(maxsize=3)
def images_of(part: str, scale: float = 1.0) -> ImageSet:
    return image_set(SET, part, scale)


def settings(condition: dict) -> dict:
    """What `TrainConfig` takes for one batch size."""
    batch = condition["batch"]
    steps = UPDATES if condition["equal"] == "updates" else IMAGES // batch
    return {"batch_size": batch, "steps": steps, "warmup_steps": steps // WARMUP}


CLASSIFIER = Classifier(
    build=lambda **_: VisionTransformer(**MODEL), images=images_of, recipe={}, settings=settings
)


class Trials:
    """The trainings of one batch size with one seed, each rate once."""

    def __init__(self, condition: dict, seed: int, log: Log, scale: float) -> None:
        self.given = condition, seed, log, scale
        self.found: dict[float, tuple[float, float]] = {}  # validation loss, test accuracy

    def loss(self, rate: float) -> float:
        """On the validation images, after training at this rate."""
        if rate not in self.found:
            condition, seed, log, scale = self.given
            model, _ = CLASSIFIER.fit(condition, seed, log, scale, learning_rate=rate)
            judged, tested = (
                evaluate(model, *images_of(part, scale)) for part in ("validation", "test")
            )
            self.found[rate] = judged.loss, tested.accuracy
        return self.found[rate][0]

    def walk(self, rates: list[float]) -> tuple[float, bool]:
        """The rate with the least loss, and whether worse ones lie on both sides of it."""
        tried = sorted(rates)
        while True:
            best = min(tried, key=self.loss)
            if best not in (tried[0], tried[-1]) or len(tried) == WALK:
                return best, best not in (tried[0], tried[-1])
            tried = sorted([*tried, best / 2 if best == tried[0] else best * 2])

    def between(self, best: float) -> float:
        """Where a parabola through the best rate of the grid and its neighbours is lowest."""
        low, middle, high = (self.loss(rate) for rate in (best / 2, best, best * 2))
        return best * 2 ** ((low - high) / (2 * (low - 2 * middle + high)))


def run(condition: dict, seed: int, log: Log, scale: float, learning_rate: float) -> Outcome:
    """Train one batch size at the rates of all rules and between them; walk on to the best."""
    times = math.log2(condition["batch"] / FROM)
    rates = {rule: learning_rate * 2 ** (power * times) for rule, power in RULES.items()}
    ends = sorted((rates["same"], rates["linear"]))
    if not times:
        ends = [learning_rate / 2, learning_rate * 2]
    doublings = round(math.log2(ends[1] / ends[0]))
    trials = Trials(condition, seed, log, scale)
    best, inside = trials.walk([ends[0] * 2**k for k in range(doublings + 1)])
    curve = sorted(trials.found.items())
    return Outcome(
        {
            "best_rate": best,
            "between": trials.between(best) if inside else best,
            "at_edge": int(not inside),
            "best_accuracy": trials.found[best][1],
            **{f"{rule}_accuracy": trials.found[rate][1] for rule, rate in rates.items()},
            "rates": [rate for rate, _ in curve],
            "validation_loss": [loss for _, (loss, _) in curve],
            "test_accuracy": [right for _, (_, right) in curve],
        }
    )


EXPERIMENT = Experiment(
    what="A small ViT learns MNIST with AdamW at four batch sizes: the learning rate that suits "
    "each, found by factors of two, and what the same rate, the root rule and the linear rule "
    "bring, with equally many images seen and with equally many updates; 10,000 images.",
    chosen_on="validation images that no run learns from: first the rate of a batch of 64, from "
    "which the rules start, with a seed of its own; then for each seed and batch the rate with the "
    "least loss, by factors of two until worse ones lie on both sides. Warm-up (a tenth of the "
    "updates), cosine, clipping, weight decay and AdamW's other rates were set before, the same "
    "for all",
    metrics={
        "best_rate": "the rate of the grid with the least validation loss",
        "between": "the same between the rates of the grid, by a parabola through the three around",
        "at_edge": "1 where no worse rate lay on one side of the best",
        "best_accuracy": "share of the test images answered correctly, at the best rate of the "
        "grid",
        "same_accuracy": f"the same at the searched rate of batch {FROM}",
        "root_accuracy": f"the same at that rate times the root of batch / {FROM}",
        "linear_accuracy": f"the same at that rate times batch / {FROM}",
        "rates": "all rates that were tried",
        "validation_loss": "for each of these the mean cross-entropy on the validation images",
        "test_accuracy": "for each of these the share of the test images answered correctly",
    },
    conditions=[
        {"equal": equal, "batch": batch} for equal in ("images", "updates") for batch in BATCHES
    ],
    seeds=range(3),
    run=run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "images": IMAGES,
        "updates": UPDATES,
        "from": FROM,
        "warmup": f"one update in {WARMUP}",
    },
    replay=({"equal": "updates", "batch": FROM}, 0),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=CLASSIFIER.trial,
        length=1.0,
        finalists=0,
        arm=lambda condition: {**condition, "batch": FROM},
    ),
)
