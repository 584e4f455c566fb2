"""Where is a patch? A small ViT with five kinds of positions, patches in order and shuffled."""

import torch

from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from experiments.machinery.measures import thin
from experiments.machinery.patch_orders import reordered, shuffled
from experiments.machinery.small_vit import SMALL
from vitbook.data import ImageSet
from vitbook.models.vit import VisionTransformer
from vitbook.training import TrainConfig, evaluate, train

SET = "mnist"
SIZE, PATCH = 28, 4
# No class token: all tokens are patches, and their order is lost in the mean.
MODEL: dict = {**SMALL, "image_size": SIZE, "patch_size": PATCH, "depth": 2, "num_heads": 4}
POINTS = 104  # of a curve
# 5 epochs
RECIPE: dict = {"steps": 1560, "batch_size": 32, "learning_rate": 4e-3, "warmup_steps": 50}
TOKENS = (SIZE // PATCH) ** 2
# Place i of a shuffled image shows patch ORDER[i] of the image; one order for all images.
ORDER = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(0))


def images(part: str, patches: str, scale: float = 1.0) -> ImageSet:
    """The part's images, their patches in order or all shuffled in the same way."""
    shown, labels = image_set(SET, part, scale)
    return ImageSet(reordered(shown, PATCH, ORDER) if patches == "shuffled" else shown, labels)


def each_shuffled(test: ImageSet) -> ImageSet:
    """The same images, the patches of each in a random order of its own."""
    return ImageSet(shuffled(test.images, PATCH, torch.Generator().manual_seed(1)), test.labels)


def build(positions: str, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    std = 0.5 if positions == "learned" else None  # the others are the published ones
    return VisionTransformer(**MODEL, positions=positions, position_std=std)


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one model; test it on images like those it learned from, then on scrambled ones."""
    learn, test = (images(part, condition["patches"], scale) for part in ("train", "test"))
    model = build(condition["positions"], seed)
    tables = {f"{k}_at_start": v.detach().clone() for k, v in model.positions.named_parameters()}
    small = {
        "steps": scaled(RECIPE["steps"], scale),
        "batch_size": min(RECIPE["batch_size"], len(learn.images)),
    }
    config = TrainConfig(**{**RECIPE, **small}, seed=seed)
    history = train(model, *learn, config, loss_function=logged(log), progress=False)
    result = evaluate(model, *test)
    metrics = {
        "test_accuracy": result.accuracy,
        "test_accuracy_each_shuffled": evaluate(model, *each_shuffled(test)).accuracy,
        "test_loss": result.loss,
        "train_accuracy": evaluate(model, *learn).accuracy,
        "loss": thin([row["loss"] for row in history], POINTS),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    return Outcome(metrics, {**tables, **dict(model.positions.named_parameters())})


LEARNED: dict = {"positions": "learned", "patches": "in order"}

EXPERIMENT = Experiment(
    what="Handwritten digits cut into 49 patches: a small ViT with no positions, a learned table, "
    "two sin-cos tables or rotary positions, its patches in order or all shuffled in one way, "
    "trained on 10,000 images of MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from, one seed, patches in order: the learning "
    "rate, one for all, after 468 steps with none, learned, sincos_2d and rotary (4e-3 was better "
    "than 2e-3 with each of them); the batch size with sincos_2d; MNIST, after 156 steps on it and "
    "on Fashion-MNIST with none and sincos_2d, because digits differ in where their strokes are; "
    "the code and the trials of that search were not kept",
    metrics={
        "test_accuracy": "share of the 10,000 test images answered rightly, their patches in the "
        "order of the training images",
        "test_accuracy_each_shuffled": "the same model, the patches of each test image in a random "
        "order of its own",
        "test_loss": "mean cross-entropy on the test images, in nats",
        "train_accuracy": "share of the 10,000 training images answered rightly",
        "loss": "training loss, each point the mean of 15 steps",
        "parameters": "numbers that are learned",
    },
    conditions=[
        {"positions": positions, "patches": patches}
        for positions in ("none", "learned", "sincos_1d", "sincos_2d", "rotary")
        for patches in ("in order", "shuffled")
    ],
    seeds=range(5),
    run=run,
    data=lambda: checksums(SET),
    settings={"model": MODEL, "training": RECIPE, "order": ORDER.tolist()},
    replay=({"positions": "sincos_2d", "patches": "in order"}, 0),
    keep={"learned": (LEARNED, 0), "learned_shuffled": ({**LEARNED, "patches": "shuffled"}, 0)},
    steps=lambda condition: RECIPE["steps"],
)
