"""How long do the models of `mixing_pictures` take, and how much memory? And an update of those
of `time_to_learn`? About three minutes.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from experiments.machinery.experiment import Experiment, Log, Outcome, scaled
from experiments.machinery.memory import peak_mib
from experiments.machinery.timing import milliseconds
from experiments.token_mixing import mixing, time_to_learn
from experiments.token_mixing.mixing import EQUAL
from experiments.token_mixing.mixing_pictures import TASK
from experiments.token_mixing.mixing_recall import RECIPE, images_of

ROUNDS = 7
ANSWERED = 100  # images at a time, when a model only answers


def batch(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    side, _, channels, classes = TASK.images
    return torch.randn(n, channels, side, side), torch.arange(n) % classes


def updating(
    model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor
) -> Callable[[], object]:
    """One update of a model, with what it needs made before. logits: (n, ..., classes)."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(images).flatten(0, -2), labels.flatten()).backward()
        optimizer.step()

    step()  # the optimizer's memory is made once
    return step


def training(name: str, seed: int, scale: float) -> Callable[[], object]:
    """One update of a model of `mixing_pictures`."""
    return updating(mixing.build(TASK, name), *batch(scaled(TASK.batch_size, scale)))


def recall(name: str, seed: int, scale: float) -> Callable[[], object]:
    """One update of a model of `time_to_learn`."""
    images, labels = (
        one[: scaled(RECIPE["batch_size"], scale)] for one in images_of("train", scale)
    )
    return updating(time_to_learn.build(name, seed, "place"), images, labels)


def answering(name: str, seed: int, scale: float) -> Callable[[], object]:
    """One call of a model without gradients."""
    model = mixing.build(TASK, name).eval()
    return partial(torch.no_grad()(model), batch(scaled(ANSWERED, scale))[0])


CALLS = {"training": training, "answering": answering, "recall": recall}
NAMES = {"training": EQUAL, "answering": EQUAL, "recall": time_to_learn.MODELS}


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Milliseconds of each model, median over rounds; its memory, in a process of its own."""
    torch.manual_seed(seed)
    make, names = CALLS[condition["measured"]], NAMES[condition["measured"]]
    mib = [peak_mib(partial(make, name, seed, scale)) for name in names]
    calls = {name: make(name, seed, scale) for name in names}
    return Outcome({"ms": [*milliseconds(calls, scaled(ROUNDS, scale)).values()], "mib": mib})


EXPERIMENT = Experiment(
    what="Time and memory of the models of `mixing_pictures`: an update with "
    f"{TASK.batch_size} images, and {ANSWERED} images answered. And an update of the models of "
    f"`time_to_learn` with {RECIPE['batch_size']} images.",
    chosen_on="Nothing was chosen.",
    metrics={
        "ms": "milliseconds of a call, in the order of the names in the settings",
        "mib": "MiB that a call adds at its peak, in the same order",
    },
    conditions=[{"measured": name} for name in CALLS],
    seeds=range(5),
    run=run,
    settings={
        "names": {measured: list(names) for measured, names in NAMES.items()},
        "batch_size": TASK.batch_size,
        "answered": ANSWERED,
        "rounds": ROUNDS,
    },
    workers=1,
    timing=True,
)
