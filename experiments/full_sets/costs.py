"""How long a step of each arm of `recipe` takes: `python -m experiments.full_sets.costs`.

Prints a line for each data set and arm: milliseconds of the processor for one step, of a whole
run's mean, and how many times that of the plain arm.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from experiments.full_sets.augment import stronger
from experiments.full_sets.full_sets import SETTINGS
from experiments.full_sets.parts import Averaged
from experiments.full_sets.recipe import (
    ARMS,
    AUGMENTED,
    HALF,
    HALF_SHARE,
    LARGE_FIRST,
    LARGE_SHARE,
    PLAIN,
    build,
    prepared,
    words,
)
from experiments.machinery.timing import milliseconds
from vitbook.command.recipes import SHAPES, augment
from vitbook.models.cost import count_parameters
from vitbook.training import TrainConfig, parameter_groups, update

TURNS, AT_LEAST = 8, 0.2  # seconds


def step(
    model: nn.Module, change: Callable | None, images: Tensor, labels: Tensor
) -> Callable[[], None]:
    """One step of a training."""
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.05), lr=1e-3)
    generator, config = torch.Generator().manual_seed(0), TrainConfig(steps=1)

    def call() -> None:
        update(model, optimizer, change(images, generator) if change else images, labels, config)

    return call


def parts(name: str, arm: str) -> list[tuple[float, nn.Module]]:
    """The kinds of steps of an arm: the share of its steps, and a model that takes such steps."""
    last = Averaged(build(name, arm, 0))
    if LARGE_FIRST in words(arm):
        return [(LARGE_SHARE, build(name, arm, 0, patches=2)), (1 - LARGE_SHARE, last)]
    if HALF in words(arm):
        return [(HALF_SHARE, prepared(name, arm, 0, steps=10**9)), (1 - HALF_SHARE, last)]
    return [(1.0, last)]


def step_costs(name: str) -> dict[str, float]:
    """Milliseconds of one step of each arm, the mean over a whole run."""
    shape, n = SHAPES[name], SETTINGS[name]["batch_size"]
    side = shape["image_size"]
    batch = torch.randn(n, shape["in_channels"], side, side), torch.arange(n) % 10
    kinds = []
    for arm in ARMS[name]:
        change = stronger(name) if AUGMENTED in words(arm) else augment(SETTINGS[name])
        for share, model in parts(name, arm):
            kinds.append((arm, share, step(model.train(), change, *batch)))
    took = milliseconds({str(i): call for i, (_, _, call) in enumerate(kinds)}, TURNS, AT_LEAST)
    costs = dict.fromkeys(ARMS[name], 0.0)
    for (arm, share, _), ms in zip(kinds, took.values(), strict=True):
        costs[arm] += share * ms
    return costs


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in SETTINGS:
        costs = step_costs(name)
        for arm, cost in costs.items():
            size = count_parameters(build(name, arm, 0))
            ratio = cost / costs[PLAIN]
            print(f"{name}: {arm}: {cost:.1f} ms, {ratio:.2f}, {size:,} parameters", flush=True)
