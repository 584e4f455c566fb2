"""Is the attention of a trained hybrid used, and is it needed? Small stacks on digits."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import digits_checksums
from experiments.machinery.small_vit import DIGITS
from vitbook.data import load_digits
from vitbook.inspection import record_attention
from vitbook.models.hybrid import Hybrid
from vitbook.training import TrainConfig, evaluate, train

KINDS: dict = {"A": "attention", "M": "mixer", "N": "none"}
MODEL: dict = {**DIGITS, "embed_dim": 24, "num_heads": 3, "position_std": 0.5}
RECIPE: dict = {"steps": 300, "batch_size": 64, "learning_rate": 4e-3, "warmup_steps": 20}


def build(stack: str, seed: int) -> Hybrid:
    torch.manual_seed(seed)
    return Hybrid(**MODEL, layers=[KINDS[letter] for letter in stack])


def right_with(model: Hybrid, block: int, new: Callable[..., Tensor]) -> float:
    """Share of the test digits right while the mixing of one block gives new(layer, tokens)."""
    layer = model.encoder.blocks[block].attn
    hook = layer.register_forward_hook(lambda layer, x, _: new(layer, x[0]))
    try:
        return evaluate(model, *load_digits("test")).accuracy
    finally:
        hook.remove()


def nothing(layer: Any, x: Tensor) -> Tensor:
    return torch.zeros_like(x)


def with_map(weights: Tensor) -> Callable[..., Tensor]:
    """These weights (h, N, N) for every image, instead of the layer's own."""

    def new(layer: Any, x: Tensor) -> Tensor:
        values = layer.project(x)[2]  # (B, h, N, d)
        return layer.proj((weights @ values).transpose(1, 2).flatten(2))

    return new


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Train one stack; test it whole, with each mixing silent, and with other attention maps."""
    stack, known = condition["stack"], load_digits("trainval")
    model = build(stack, seed)
    config = TrainConfig(**RECIPE | {"steps": scaled(RECIPE["steps"], scale), "seed": seed})
    train(model, *known, config, loss_function=logged(log), progress=False)
    metrics = {
        "test_accuracy": evaluate(model, *load_digits("test")).accuracy,
        "silent": [right_with(model, block, nothing) for block in range(len(stack))],
    }
    if stack[0] == "A":
        with record_attention(model) as maps, torch.no_grad():
            model(known.images)
        (weights,) = maps.values()  # (n, h, N, N)
        even = torch.full_like(weights[0], 1 / weights.shape[-1])
        metrics["even_map"] = right_with(model, 0, with_map(even))
        metrics["fixed_map"] = right_with(model, 0, with_map(weights.mean(0)))
    return Outcome(metrics)


EXPERIMENT = Experiment(
    what="Digits: three blocks with attention first (AMM), with token mixing only (MMM), and "
    "without mixing (NNN): whole, with the mixing of one block silent, and with another map in "
    "the place of the attention's own.",
    chosen_on="nothing: one recipe for all, which these trainings did not choose",
    metrics={
        "test_accuracy": "share of the test digits right",
        "silent": "the same while the mixing of the first, second or third block gives nothing",
        "even_map": "the same while every token listens to all tokens alike",
        "fixed_map": "the same while each image gets the mean of the maps of all training digits",
    },
    conditions=[{"stack": stack} for stack in ("AMM", "MMM", "NNN")],
    seeds=range(10, 30),
    run=run,
    data=lambda: digits_checksums("trainval", "test"),
    settings={"model": MODEL, "training": RECIPE},
    replay=({"stack": "AMM"}, 10),
    steps=lambda condition: RECIPE["steps"],
)
