"""How long a step of each arm of `recipe` takes: `python -m experiments.full_sets.costs`.

Prints a line for each data set and arm: milliseconds of the processor for one step, of a whole
run's mean, and how many times that of the plain arm. The kinds of steps take turns, a few at a
time, and the median over the turns counts, so that a busy machine disturbs all of them alike.
"""

import time
from collections.abc import Callable
from statistics import median

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
from vitbook.command.recipes import SHAPES, augment
from vitbook.models.cost import count_parameters
from vitbook.training import TrainConfig, parameter_groups, update

TURNS, STEPS = 8, 6


class Stepper:
    """Takes steps of one kind and notes how long they take."""

    def __init__(
        self, model: nn.Module, change: Callable | None, images: Tensor, labels: Tensor
    ) -> None:
        self.model, self.change, self.images, self.labels = model, change, images, labels
        self.optimizer = torch.optim.AdamW(parameter_groups(model, 0.05), lr=1e-3)
        self.milliseconds: list[float] = []

    def turn(self, seed: int) -> None:
        """STEPS steps."""
        generator, config = torch.Generator().manual_seed(seed), TrainConfig(steps=1)
        start = time.process_time()
        for _ in range(STEPS):
            x = self.change(self.images, generator) if self.change else self.images
            update(self.model, self.optimizer, x, self.labels, config)
        self.milliseconds.append(1000 * (time.process_time() - start) / STEPS)


def parts(name: str, arm: str) -> list[tuple[float, nn.Module]]:
    """The kinds of steps of an arm: the share of its steps, and a model that takes such steps."""
    last = Averaged(build(name, arm, 0))
    if LARGE_FIRST in words(arm):
        return [(LARGE_SHARE, build(name, arm, 0, patches=2)), (1 - LARGE_SHARE, last)]
    if HALF in words(arm):
        return [(HALF_SHARE, prepared(name, arm, 0, steps=10**9)), (1 - HALF_SHARE, last)]
    return [(1.0, last)]


def steppers(name: str) -> dict[str, list[tuple[float, Stepper]]]:
    """For each arm of a data set its kinds of steps, ready for their first turn."""
    shape, n = SHAPES[name], SETTINGS[name]["batch_size"]
    side = shape["image_size"]
    batch = torch.randn(n, shape["in_channels"], side, side), torch.arange(n) % 10
    weak, strong = augment(SETTINGS[name]), stronger(name)
    return {
        arm: [
            (share, Stepper(model.train(), strong if AUGMENTED in words(arm) else weak, *batch))
            for share, model in parts(name, arm)
        ]
        for arm in ARMS[name]
    }


def step_costs(name: str, turns: int = TURNS) -> dict[str, float]:
    """Milliseconds of one step of each arm, the mean over a whole run."""
    arms = steppers(name)
    for turn in range(turns + 1):  # the first one warms up
        for kinds in arms.values():
            for _, stepper in kinds:
                stepper.turn(turn)
    return {
        arm: sum(share * median(stepper.milliseconds[1:]) for share, stepper in kinds)
        for arm, kinds in arms.items()
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in SETTINGS:
        costs = step_costs(name)
        for arm, cost in costs.items():
            size = count_parameters(build(name, arm, 0))
            ratio = cost / costs[PLAIN]
            print(f"{name}: {arm}: {cost:.1f} ms, {ratio:.2f}, {size:,} parameters", flush=True)
