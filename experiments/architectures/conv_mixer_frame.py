"""A ConvMixer of digits at a larger size: what does an empty frame change, and where?"""

from copy import deepcopy

import torch
import torch.nn.functional as F

from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import digits_checksums
from experiments.machinery.small_vit import DIGITS
from vitbook.data import load_digits
from vitbook.models.conv_mixer import ConvMixer
from vitbook.training import TrainConfig, evaluate, train

MODEL: dict = {**DIGITS, "embed_dim": 32, "depth": 3, "kernel_size": 3}
RECIPE: dict = {"steps": 150, "batch_size": 64, "learning_rate": 8e-3, "warmup_steps": 20}
FRAME = 2  # pixels on each side: one patch


def build(seed: int) -> ConvMixer:
    torch.manual_seed(seed)
    return ConvMixer(**MODEL)


@torch.no_grad()
def on_larger(model: ConvMixer, *, old_edge: bool = False, old_mean: bool = False) -> float:
    """Share of the framed test digits right, by the same weights on the larger image."""
    test, grid = load_digits("test"), MODEL["image_size"] // MODEL["patch_size"]
    old = F.pad(torch.ones(grid, grid), [FRAME // MODEL["patch_size"]] * 4).flatten()[:, None]
    larger = deepcopy(model).eval()
    larger.set_image_size(MODEL["image_size"] + 2 * FRAME)
    x = larger.embed(F.pad(test.images, [FRAME] * 4))
    for block in larger.encoder.blocks:
        x = block(x * old if old_edge else x)  # zeros outside of the old grid, or not
    weights = old if old_mean else torch.ones_like(old)
    logits = larger.head((x * weights).sum(1) / weights.sum())
    return (logits.argmax(-1) == test.labels).double().mean().item()


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    model = build(seed)
    config = TrainConfig(**RECIPE | {"steps": scaled(RECIPE["steps"], scale), "seed": seed})
    train(model, *load_digits("trainval"), config, loss_function=logged(log), progress=False)
    return Outcome(
        {
            "accuracy_small": evaluate(model, *load_digits("test")).accuracy,
            "accuracy_framed": on_larger(model),
            "accuracy_old_edge": on_larger(model, old_edge=True),
            "accuracy_old_mean": on_larger(model, old_mean=True),
            "accuracy_both": on_larger(model, old_edge=True, old_mean=True),
        }
    )


EXPERIMENT = Experiment(
    what="A small ConvMixer of digits, tested on the same digits in an empty frame one patch wide.",
    chosen_on="nothing: one recipe, which these trainings did not choose",
    metrics={
        "accuracy_small": "share of the test digits right at the size of the training",
        "accuracy_framed": "share right in the frame, by the same weights",
        "accuracy_old_edge": "the same with zeros outside of the old grid before each block",
        "accuracy_old_mean": "the same with the mean over the tokens of the old grid",
        "accuracy_both": "the same with both",
    },
    conditions=[{"model": "conv-mixer"}],
    seeds=range(10, 30),
    run=run,
    data=lambda: digits_checksums("trainval", "test"),
    settings={"model": MODEL, "training": RECIPE, "frame": FRAME},
    replay=({"model": "conv-mixer"}, 10),
    steps=lambda condition: RECIPE["steps"],
)
