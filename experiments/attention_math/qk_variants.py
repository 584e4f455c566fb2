"""Do W_Q and W_K have to be two matrices? Trained side by side: two, one merged, and one fixed.

With two, scores are x W_Q (x W_K)^T. "merged" learns the product M = W_Q W_K^T itself, a full D x D
matrix for each head. "identity" fixes W_Q: each head's queries are its own slice of the tokens.
Beside them stand layers that are known to lose: queries and keys of one component, equal weights
for all tokens, and no mixing at all.
"""

import math
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from experiments.machinery.baseline_rows import PLAIN, plain, updates
from experiments.machinery.choose import Choice, several
from experiments.machinery.classifier import PatchClassifier, trial_by
from experiments.machinery.experiment import Experiment, Log, Outcome, checksum, scaled
from experiments.machinery.measures import parameters, thin
from vitbook.comparison.recall_task import PatchAnswers, answered
from vitbook.data import ImageSet, pointer
from vitbook.data.recall import recall
from vitbook.layers.ablations import NoMixing, UniformAttention
from vitbook.models.vit import VisionTransformer


class Scores(nn.Module):
    """Attention but for its scores: values and output are projected as usual.

    Queries and keys have no bias, so that two matrices can be merged exactly. Where nothing else
    is said, the scores have the same variance at the start, 1 for tokens that come out of a norm.

    Args:
        embed_dim: D, the width of a token.
        num_heads: h.
        factor: what the scores are multiplied with, besides 1 / sqrt(d).
    """

    def __init__(self, *, embed_dim: int, num_heads: int, factor: float = 1.0) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.factor = factor
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, h, N, d)

    def scores(self, x: Tensor) -> Tensor:
        q, k = self.queries_and_keys(x)  # (B, h, N, d), or D instead of d
        return self.factor * q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, h, N, N)

    def attention_weights(self, x: Tensor, mask: None = None) -> Tensor:
        return self.scores(x).softmax(dim=-1)

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        out = self.attention_weights(x) @ self.split(self.value(x))  # (B, h, N, d)
        return self.proj(out.transpose(1, 2).flatten(2))  # (B, N, D)


class Separate(Scores):
    """As usual: 2 D d numbers a head; or with fewer components of queries and keys than d.

    With one, M has rank 1 in each head: known to lose.
    """

    def __init__(self, *, embed_dim: int, num_heads: int, components: int | None = None) -> None:
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
        components = components or self.head_dim
        self.factor = math.sqrt(self.head_dim / components)
        self.query = nn.Linear(embed_dim, num_heads * components, bias=False)
        self.key = nn.Linear(embed_dim, num_heads * components, bias=False)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(self.query(x)), self.split(self.key(x))


class Merged(Scores):
    """One matrix M for each head, of full rank: D^2 numbers a head."""

    def __init__(self, *, embed_dim: int, num_heads: int) -> None:
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
        self.merged_weight = nn.Parameter(torch.empty(num_heads, embed_dim, embed_dim))
        # The entries of W_Q W_K^T: sums of d products of numbers with variance 1 / D.
        nn.init.trunc_normal_(self.merged_weight, std=math.sqrt(self.head_dim) / embed_dim)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x[:, None]  # (B, 1, N, D)
        return x @ self.merged_weight, x  # (B, h, N, D), the keys are the tokens


class Identity(Scores):
    """W_Q is the identity: D d numbers a head."""

    def __init__(self, *, embed_dim: int, num_heads: int, factor: float = 1.0) -> None:
        super().__init__(embed_dim=embed_dim, num_heads=num_heads, factor=factor)
        self.key = nn.Linear(embed_dim, embed_dim, bias=False)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(x), self.split(self.key(x))


LAYERS: dict = {
    "separate": Separate,
    "merged": Merged,
    "identity": Identity,
    "identity, adapted": partial(Identity, factor=0.5),  # as arXiv 2510.23912 trains it
    "narrow": partial(Separate, components=1),
    "uniform": lambda embed_dim, num_heads: UniformAttention(embed_dim=embed_dim),
    "none": lambda embed_dim, num_heads: NoMixing(embed_dim=embed_dim),
}
MODEL: dict = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 4,
    "embed_dim": 48,
    "depth": 2,
    "num_heads": 2,  # merged and separate then have equally many parameters
    "mlp_ratio": 2.0,
    "pool": "mean",
    "positions": "learned",
    "position_std": 0.5,
}
CHANNELS: dict = {"pointer": 1, "recall": 3}
RECIPES: dict[str, dict] = {
    "pointer": {"steps": 500, "batch_size": 128, "warmup_steps": 40, "weight_decay": 0.05},
    "recall": {"steps": 1200, "batch_size": 32, "warmup_steps": 30, "weight_decay": 0.05},
}
# The authors of arXiv 2510.23912 (their code): 0.1 with W_Q; 0.03, and half the scores, with I.
ADAPTED, LESS_DECAY = "identity, adapted", 0.3
TRIAL_SEEDS = 3  # with one, a rate at which other seeds fail may win
# The rule: the margin is this share of what attention is worth on a task: the mean of
# "separate" less that of the better of "uniform" and "none". "As good": the whole interval of the
# difference to "separate" lies above minus the margin; "worse": all of it lies below zero; else
# open. A task on which "narrow" is not below minus the margin with its whole interval decides
# nothing about scores.
MARGIN = 0.1
IMAGES = {
    "pointer": {"train": 20_000, "validation": 2_000, "test": 2_000},
    "recall": {"train": 12_000, "validation": 500, "test": 1_000},  # 16 answers each
}
FIRST = {"pointer": 50, "recall": 60}  # seed of the first part
RANKS = (1, 2, 4, 8, 24, 48)
CUT = ("separate", "merged")  # the models whose M is cut to these ranks
ASKED = 1000  # test images for each rank
WINDOW = 20  # updates
HALF = math.log(MODEL["num_classes"]) / 2  # nats, half the loss of a guess


class OneAnswer(nn.Module):
    """A classifier as `recall` asks it: images -> logits (B, 1, K)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)[:, None]


@lru_cache(maxsize=4)
def images_of(task: str, part: str, scale: float = 1.0) -> ImageSet:
    """Images (n, C, 32, 32) between -1 and 1, and answers (n, 1) or, of each patch, (n, 16)."""
    count, seed = scaled(IMAGES[task][part], scale), FIRST[task] + list(IMAGES[task]).index(part)
    if task == "pointer":
        one = pointer(count, seed=seed, cells_per_side=4)
        return ImageSet(2 * one.images - 1, one.labels[:, None])
    each = recall(count, seed=seed)
    return ImageSet(2 * each.images - 1, each.labels)


def build(task: str, model: str) -> nn.Module:
    """A model before training, that answers as the task asks."""
    built = VisionTransformer(**MODEL, in_channels=CHANNELS[task], attn_layer=LAYERS[model])
    return OneAnswer(built) if task == "pointer" else PatchAnswers(built)


def decay(condition: dict) -> dict:
    usual = RECIPES[condition["task"]]["weight_decay"]
    return {"weight_decay": LESS_DECAY * usual} if condition["model"] == ADAPTED else {}


CLASSIFIERS = {
    task: PatchClassifier(build, partial(images_of, task), recipe, decay)
    for task, recipe in RECIPES.items()
}


def learned_after(losses: list[float]) -> int:
    """Updates until the mean loss of a window first lay below half a guess's; else all."""
    window = min(WINDOW, len(losses))
    below = (torch.tensor(losses).unfold(0, window, 1).mean(dim=1) < HALF).nonzero()
    return window + int(below[0]) if len(below) else len(losses)


def matrices(layer: Separate | Merged) -> Tensor:
    """M of each head, (h, D, D)."""
    if isinstance(layer, Merged):
        return layer.merged_weight.detach()
    query, key = (
        m.weight.detach().unflatten(0, (layer.num_heads, -1)) for m in (layer.query, layer.key)
    )  # (h, d, D)
    return query.mT @ key


def cut(answers: nn.Module, rank: int) -> nn.Module:
    """A copy in which each M is the nearest matrix of that rank."""
    answers = deepcopy(answers)
    for block in answers.model.encoder.blocks:
        old = block.attn
        block.attn = Merged(embed_dim=old.value.in_features, num_heads=old.num_heads)
        block.attn.value, block.attn.proj = old.value, old.proj
        U, S, Vh = torch.linalg.svd(matrices(old))
        S[:, rank:] = 0
        block.attn.merged_weight.data = U * S[:, None] @ Vh
    return answers


def run(condition: dict, seed: int, log: Log, scale: float, **rate: Any) -> Outcome:
    task, model = condition["task"], condition["model"]
    if model in PLAIN:
        given: dict = {"steps": RECIPES[task]["steps"], "log": log, "scale": scale}
        return plain(model, lambda part: images_of(task, part, scale), **given)
    trained, losses = CLASSIFIERS[task].fit(condition, seed, log, scale, **rate)
    test = images_of(task, "test", scale)
    loss, accuracy = answered(trained, test)
    metrics = {
        "test_accuracy": accuracy,
        "test_loss": loss,
        "loss": thin(losses),
        "steps_to_learn": learned_after(losses),
        "parameters": parameters(trained),
    }
    if model in CUT:
        some = ImageSet(*(part[:ASKED] for part in test))
        metrics["cut_accuracy"] = [answered(cut(trained, r), some)[1] for r in RANKS]
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="Scores from W_Q and W_K, from one merged matrix for each head, and with W_Q fixed to the "
    "identity, beside queries and keys of one component, uniform and no attention: one glyph names "
    "the place of the answer (pointer), and every patch asks another one that it names (recall).",
    chosen_on="validation images: the learning rate of each model on each task. Tasks and numbers "
    "of steps are those at which every seed of the ViT of `mixing_pointer`, and of that of "
    "`mixing_recall` in four times its updates, learned",
    metrics={
        "test_accuracy": "share of right answers to the test images",
        "test_loss": "mean cross-entropy of these answers, in nats",
        "loss": "training loss, about 100 means over equally many steps, in nats",
        "steps_to_learn": f"updates until the mean loss of {WINDOW} in a row first lay below half "
        "a guess's; if it never did, all there were",
        "parameters": "numbers that are learned",
        "learning_rate": "of an opponent: the one of three that validation images prefer",
        "cut_accuracy": f"share of right answers to {ASKED:,} test images after M of every head "
        f"was replaced by the nearest matrix of rank {', '.join(map(str, RANKS))}",
    },
    conditions=[{"task": task, "model": model} for task in RECIPES for model in LAYERS],
    once=[{"task": task, "model": model} for task in RECIPES for model in PLAIN],
    seeds=range(5),
    run=run,
    data=lambda: {
        f"{task}, {part}": checksum(*images_of(task, part))
        for task, parts in IMAGES.items()
        for part in parts
    },
    settings={
        "model": MODEL,
        "channels": CHANNELS,
        "training": RECIPES,
        "trial_seeds": TRIAL_SEEDS,
        "adapted": {"weight_decay": LESS_DECAY, "factor": 0.5},
        "margin": MARGIN,
        "images": IMAGES,
        "first_seed": FIRST,
        "ranks": RANKS,
    },
    replay=({"task": "pointer", "model": "merged"}, 0),
    steps=lambda condition: updates(condition["model"], RECIPES[condition["task"]]["steps"]),
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)},
        trial=several(trial_by("task", CLASSIFIERS), TRIAL_SEEDS),
        length=1.0,
        finalists=0,
        limit=6,
    ),
)
