"""What is each part of a block for? One part left out of every block, on two tasks."""

from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.baselines import linear, nearest
from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier, trial_by
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.small_vit import LEARNED
from experiments.vit_design.canvas import COUNTS, FIRST, SIDE, garments
from vitbook.data import ImageSet, pointer
from vitbook.layers.ablations import UniformAttention
from vitbook.layers.encoder import Encoder, EncoderBlock
from vitbook.models.small_cnn import SmallCNN
from vitbook.models.vit import VisionTransformer

TASKS: dict[str, dict] = {
    "garments": {"image_size": SIDE, "patch_size": 7, "in_channels": 1, "num_classes": 10},
    "pointer": {"image_size": 32, "patch_size": 8, "in_channels": 1, "num_classes": 4},
}
MODEL: dict = {
    "embed_dim": 48,
    "depth": 3,
    "num_heads": 2,
    "mlp_ratio": 2.0,
    "pool": "mean",  # without attention a class token would see no patch
    **LEARNED,
}
RECIPES = {
    "garments": {"steps": 800, "batch_size": 64, "warmup_steps": 40},
    "pointer": {"steps": 500, "batch_size": 128, "warmup_steps": 40},
}
WHOLE = "whole"
LEFT_OUT = {
    "no attention": "without the attention branch: no token sees another",
    "uniform": "every token listens to all tokens equally",
    "no MLP": "without the MLP branch",
    "no GELU": "the two layers of the MLP without the GELU between them",
    "no additions": "each branch replaces the tokens",
    "no norms": "without any norm, the last one too; the last matrix of each branch starts "
    "smaller, by the square root of the number of branches",
}
CNN, LINEAR, NEAREST = "small CNN", "logistic regression", "nearest neighbour"


@lru_cache(maxsize=3)
def images_of(task: str, part: str, scale: float = 1.0) -> ImageSet:
    """Images (n, 1, size, size) and labels (n,)."""
    if task == "garments":
        return garments(part, scale)
    count, seed = scaled(COUNTS[part], scale), FIRST + list(COUNTS).index(part)
    drawn = pointer(count, seed=seed, cells_per_side=4)
    return ImageSet(2 * drawn.images - 1, drawn.labels)


class Block(nn.Module):
    """A pre-norm block with one part left out; what stays starts with the same weights.

    Args:
        whole: The block that is taken apart.
        without: `WHOLE`, or a key of `LEFT_OUT`.
        branches: How many branches the whole stack has.
    """

    def __init__(self, whole: EncoderBlock, without: str, branches: int) -> None:
        super().__init__()
        norm1: nn.Module = whole.norm1
        norm2: nn.Module = whole.norm2
        attn: Any = whole.attn
        mlp: Any = whole.mlp
        if without == "no norms":
            norm1, norm2 = nn.Identity(), nn.Identity()
            with torch.no_grad():
                for last in (attn.proj, mlp.fc2):
                    last.weight /= branches**0.5
        if without == "uniform":
            attn = uniform(attn)
        if without == "no GELU":
            mlp = nn.Sequential(mlp.fc1, mlp.fc2)  # two linear maps in a row
        kept = {"no attention": nn.Sequential(norm1, attn), "no MLP": nn.Sequential(norm2, mlp)}
        kept.pop(without, None)
        self.branches = nn.ModuleList(kept.values())
        self.residual = without != "no additions"

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        for branch in self.branches:
            x = x + branch(x) if self.residual else branch(x)
        return x


def uniform(attn: Any) -> UniformAttention:
    """The same values and the same projection, without queries and keys."""
    D = attn.proj.in_features
    without_scores = UniformAttention(embed_dim=D)
    with torch.no_grad():
        without_scores.value.weight.copy_(attn.qkv.weight[2 * D :])
        without_scores.value.bias.copy_(attn.qkv.bias[2 * D :])
    without_scores.proj = attn.proj
    return without_scores


def build(task: str, model: str) -> nn.Module:
    sizes = TASKS[task]
    if model == LINEAR:
        return linear(sizes["in_channels"] * sizes["image_size"] ** 2, sizes["num_classes"])
    if model == CNN:
        return SmallCNN(in_channels=sizes["in_channels"], num_classes=sizes["num_classes"])
    vit: Any = VisionTransformer(**sizes, **MODEL)
    blocks = [Block(block, model, branches=2 * MODEL["depth"]) for block in vit.encoder.blocks]
    vit.encoder = Encoder(blocks, nn.Identity() if model == "no norms" else vit.encoder.norm)
    return vit


CLASSIFIERS = {
    task: Classifier(build=build, images=partial(images_of, task), recipe=RECIPES[task])
    for task in TASKS
}


def run(condition: dict, seed: int, log: Log, scale: float, **chosen: Any) -> Outcome:
    task = condition["task"]
    if condition["model"] == NEAREST:
        return nearest(CLASSIFIERS[task].images, scale)
    return CLASSIFIERS[task].run(condition, seed, log, scale, **chosen)


def steps(condition: dict) -> int:
    return 0 if condition["model"] == NEAREST else RECIPES[condition["task"]]["steps"]


EXPERIMENT = Experiment(
    what="A small ViT of three blocks, whole and with one part left out of every block, on two "
    "tasks: garments anywhere on a larger canvas, and pointer (the glyph in the first of 16 cells "
    "names the cell with the answer); a small CNN, logistic regression and the nearest image.",
    chosen_on="validation images: the learning rate of each model on each task",
    metrics=METRICS,
    conditions=[
        {"task": task, "model": model}
        for task in TASKS
        for model in (WHOLE, *LEFT_OUT, CNN, LINEAR)
    ],
    once=[{"task": task, "model": NEAREST} for task in TASKS],
    seeds=range(3),
    run=run,
    data=lambda: {
        f"{task}, {part}": checksum(*images_of(task, part)) for task in TASKS for part in COUNTS
    },
    settings={
        "tasks": TASKS,
        "model": MODEL,
        "training": RECIPES,
        "left_out": LEFT_OUT,
        "counts": COUNTS,
        "first_seed": FIRST,
    },
    replay=({"task": "pointer", "model": WHOLE}, 0),
    steps=steps,
    choose=Choice(
        grid={"learning_rate": (1e-3, 2e-3, 4e-3)},
        trial=trial_by("task", CLASSIFIERS),
        length=0.5,
        finalists=0,
        limit=6,
    ),
)
