"""Do W_Q and W_K have to be two matrices? Trained side by side: two, one merged, and one fixed.

With two, scores are x W_Q (x W_K)^T. "merged" learns the product M = W_Q W_K^T itself, a full D x D
matrix for each head. "identity" fixes W_Q: each head's queries are its own slice of the tokens.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from experiments.machinery.experiment import Experiment, Outcome, checksum, logged, scaled
from experiments.machinery.image_sets import checksums, image_set
from vitbook.data import ImageSet, matching_pairs
from vitbook.training import TrainConfig, evaluate, train
from vitbook.vit import VisionTransformer


class Scores(nn.Module):
    """Attention but for its scores: values and output are projected as usual.

    Queries and keys have no bias, so that two matrices can be merged exactly. The scores of all
    variants have the same variance at the start, 1 for tokens that come out of a norm.
    """

    def __init__(self, *, embed_dim: int, num_heads: int):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.value = nn.Linear(embed_dim, embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (B, h, N, d)

    def attention_weights(self, x: Tensor, mask: None = None) -> Tensor:
        q, k = self.queries_and_keys(x)  # (B, h, N, d), or D instead of d
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, h, N, N)
        return scores.softmax(dim=-1)

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        out = self.attention_weights(x) @ self.split(self.value(x))  # (B, h, N, d)
        return self.proj(out.transpose(1, 2).flatten(2))  # (B, N, D)


class Separate(Scores):
    """As usual: 2 D d numbers a head."""

    def __init__(self, *, embed_dim: int, num_heads: int):
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
        self.query = nn.Linear(embed_dim, embed_dim, bias=False)
        self.key = nn.Linear(embed_dim, embed_dim, bias=False)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(self.query(x)), self.split(self.key(x))


class Merged(Scores):
    """One matrix M for each head, of full rank: D^2 numbers a head."""

    def __init__(self, *, embed_dim: int, num_heads: int):
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
        self.merged_weight = nn.Parameter(torch.empty(num_heads, embed_dim, embed_dim))
        # The entries of W_Q W_K^T: sums of d products of numbers with variance 1 / D.
        nn.init.trunc_normal_(self.merged_weight, std=math.sqrt(self.head_dim) / embed_dim)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x[:, None]  # (B, 1, N, D)
        return x @ self.merged_weight, x  # (B, h, N, D), the keys are the tokens


class Identity(Scores):
    """W_Q is the identity: D d numbers a head."""

    def __init__(self, *, embed_dim: int, num_heads: int):
        super().__init__(embed_dim=embed_dim, num_heads=num_heads)
        self.key = nn.Linear(embed_dim, embed_dim, bias=False)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(x), self.split(self.key(x))


LAYERS = {"separate": Separate, "merged": Merged, "identity": Identity}
COMMON = {"in_channels": 1, "pool": "mean", "positions": "sincos_2d"}
COMMON |= {"position_base": 10000.0, "centred_positions": False}  # the published table
MODELS = {
    "matching_pairs": {"image_size": 32, "patch_size": 8, "num_classes": 2, "depth": 2},
    "fashion_mnist": {"image_size": 28, "patch_size": 7, "num_classes": 10, "depth": 3},
}
RECIPES = {
    "matching_pairs": {"steps": 600, "batch_size": 128, "warmup_steps": 50},
    "fashion_mnist": {"steps": 500, "batch_size": 100, "warmup_steps": 50},  # 5 epochs
}
GRID = (1e-3, 2e-3, 4e-3, 8e-3)
# Those of the grid with the lowest validation loss, at the usual width.
RATES = {
    ("matching_pairs", 4): {"separate": 2e-3, "merged": 4e-3, "identity": 8e-3},
    ("matching_pairs", 1): {"separate": 4e-3, "merged": 2e-3},
    ("fashion_mnist", 4): {"separate": 4e-3, "merged": 4e-3, "identity": 8e-3},
}
PAIRS = {"train": 20_000, "validation": 2_000, "test": 2_000}


def images(task: str, part: str, scale: float = 1.0) -> ImageSet:
    if task == "fashion_mnist":
        return image_set("fashion-mnist", part, scale)
    pairs = matching_pairs(scaled(PAIRS[part], scale), seed=list(PAIRS).index(part))
    return ImageSet(pairs.images, pairs.labels)


def sizes(scores: str, budget: str, heads: int) -> dict:
    """Width of tokens and MLP. For equal parameters both change, as alike as heads allow."""
    usual = {"embed_dim": 64, "mlp_ratio": 2.0}
    if budget == "width":
        return usual
    if scores == "merged" and heads == 4:
        return {"embed_dim": 56, "mlp_ratio": 2.25}
    return {"embed_dim": 68, "mlp_ratio": 2.03}  # "identity"; with one head "merged" is as large


def build(task: str, heads: int, scores: str, budget: str) -> VisionTransformer:
    return VisionTransformer(
        **COMMON,
        **MODELS[task],
        **sizes(scores, budget, heads),
        num_heads=heads,
        attn_layer=LAYERS[scores],
    )


def score_parameters(model: VisionTransformer) -> int:
    """Numbers in the maps from tokens to scores, over all layers."""
    layers = [block.attn for block in model.encoder.blocks]
    others = sum(p.numel() for a in layers for m in (a.value, a.proj) for p in m.parameters())
    return sum(p.numel() for a in layers for p in a.parameters()) - others


def curve(losses: list[float], points: int = 100) -> list[float]:
    """Means over runs of steps of equal length."""
    width = max(1, len(losses) // points)
    return [
        round(mean, 5) for mean in torch.tensor(losses).unfold(0, width, width).mean(1).tolist()
    ]


def steps_until(losses: list[float], level: float, width: int = 20) -> int:
    """Steps until the mean of the last `width` losses is below a level; all, if it never is."""
    width = min(width, len(losses))
    means = torch.tensor(losses).unfold(0, width, 1).mean(1)
    below = (means < level).nonzero()
    return int(below[0]) + width if len(below) else len(losses)


def run(condition: dict, seed: int, log, scale: float) -> Outcome:
    """Train one model and test it."""
    task, heads, scores = condition["task"], condition["heads"], condition["scores"]
    data = {part: images(task, part, scale) for part in ("train", "test")}
    recipe = {**RECIPES[task], "learning_rate": RATES[task, heads][scores], "seed": seed}
    if scale != 1:
        recipe |= {"steps": scaled(recipe["steps"], scale), "batch_size": 8}
    torch.manual_seed(seed)
    model = build(**condition)
    config = TrainConfig(**recipe)
    history = train(model, *data["train"], config, loss_function=logged(log), progress=False)
    losses = [row["loss"] for row in history]
    test = evaluate(model, *data["test"])
    metrics = {
        "test_accuracy": test.accuracy,
        "test_loss": test.loss,
        "train_accuracy": evaluate(model, *(part[:2000] for part in data["train"])).accuracy,
        "loss": curve(losses),
        "parameters": sum(p.numel() for p in model.parameters()),
        "parameters_scores": score_parameters(model),
        "embed_dim": model.head.in_features,
    }
    if task == "matching_pairs":
        metrics["steps_to_learn"] = steps_until(losses, 0.5 * math.log(2))
    return Outcome(metrics, model.state_dict())


def conditions() -> list[dict]:
    """With one head "identity" is left out: W_K is then as large as M and does the same."""
    pairs = [("separate", "width")]
    pairs += [(s, budget) for s in ("merged", "identity") for budget in ("width", "parameters")]
    return [
        {"task": task, "heads": heads, "scores": scores, "budget": budget}
        for task, heads in RATES
        for scores, budget in pairs
        if scores in RATES[task, heads]
    ]


KEPT = {"task": "fashion_mnist", "heads": 4, "budget": "width"}

EXPERIMENT = Experiment(
    what="Scores from W_Q and W_K, from one merged matrix for each head, and with W_Q fixed to the "
    "identity: the same model otherwise, on matching pairs and 10,000 images of Fashion-MNIST.",
    chosen_on="validation images: the learning rate, the one with the lowest loss out of the same "
    "four for every kind of scores, for each task and number of heads at the usual width, with a "
    "seed of its own (matching pairs: in runs of half the length); the code and the trials of "
    "that search were not kept",
    metrics={
        "test_accuracy": "share of the test images answered rightly",
        "test_loss": "mean cross-entropy on the test images, nats",
        "train_accuracy": "share of the first 2,000 training images answered rightly",
        "loss": "training loss, 100 means over equally many steps, nats",
        "steps_to_learn": "matching pairs: steps until the mean of the last 20 training losses is "
        "below half of ln 2",
        "parameters": "numbers that are learned",
        "parameters_scores": "those of them that lead from tokens to scores",
        "embed_dim": "D, the width of a token",
    },
    conditions=conditions(),
    seeds=range(5),
    run=run,
    data=lambda: {
        **{f"matching pairs, {p}": checksum(*images("matching_pairs", p)) for p in PAIRS},
        **checksums("fashion-mnist"),
    },
    settings={
        "model": COMMON,
        "models": MODELS,
        "usual_size": sizes("separate", "width", 4),
        "training": RECIPES,
        "learning_rates": [
            {"task": task, "heads": heads, **rates} for (task, heads), rates in RATES.items()
        ],
        "learning_rates_tried": GRID,
    },
    replay=({"task": "matching_pairs", "heads": 4, "scores": "merged", "budget": "width"}, 0),
    keep={scores: ({**KEPT, "scores": scores}, 0) for scores in ("separate", "merged")},
    steps=lambda condition: RECIPES[condition["task"]]["steps"],
)
