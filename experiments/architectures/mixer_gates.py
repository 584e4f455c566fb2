"""How much of a small Mixer's mixing is the same for all images, beside gates thrown by a coin?"""

from collections.abc import Callable

import torch
from torch import Tensor

from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import digits_checksums
from experiments.machinery.small_vit import DIGITS
from vitbook.data import load_digits
from vitbook.models.mlp_mixer import MlpMixer
from vitbook.training import TrainConfig, train

MODEL: dict = {**DIGITS, "embed_dim": 32, "depth": 2}
RECIPE: dict = {"steps": 150, "batch_size": 64, "learning_rate": 8e-3, "warmup_steps": 20}
IMAGES = 16  # whose mixing is compared, the first of the test digits


def build(seed: int) -> MlpMixer:
    torch.manual_seed(seed)
    return MlpMixer(**MODEL)


def gelu_slope(hidden: Tensor) -> Tensor:
    bell = torch.exp(-hidden.square() / 2) / (2 * torch.pi) ** 0.5
    return torch.special.ndtr(hidden) + hidden * bell


def coin(seed: int) -> Callable[[Tensor], Tensor]:
    """Gates that are open or closed by chance."""
    generator = torch.Generator().manual_seed(seed)
    return lambda hidden: torch.randint(2, hidden.shape, generator=generator).to(hidden)


@torch.no_grad()
def effective(model: MlpMixer, images: Tensor, slope: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """For each block what mixes the tokens of each image and channel, (B, D, N, N)."""
    found, x = [], model.embed(images)
    for block in model.encoder.blocks:
        mlp = block.attn.mlp
        gates = slope(mlp.fc1(block.norm1(x).mT))  # (B, D, S)
        found.append((mlp.fc2.weight * gates[:, :, None]) @ mlp.fc1.weight)
        x = block(x)
    return found


def same(maps: Tensor) -> float:
    """Share of the squared weights (B, ...) that is the same in all images."""
    return (maps.mean(0).square().sum() / maps.square().sum() * len(maps)).item()


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    model = build(seed)
    config = TrainConfig(**RECIPE | {"steps": scaled(RECIPE["steps"], scale), "seed": seed})
    train(model, *load_digits("trainval"), config, loss_function=logged(log), progress=False)
    few = load_digits("test").images[:IMAGES]
    model.eval()
    return Outcome(
        {
            "same": [same(maps) for maps in effective(model, few, gelu_slope)],
            "same_by_coin": [same(maps) for maps in effective(model, few, coin(seed))],
        }
    )


EXPERIMENT = Experiment(
    what="A small MLP-Mixer on digits: how much of the mixing of its tokens is the same in sixteen "
    "images, with its own gates and with gates thrown by a coin.",
    chosen_on="nothing: one recipe, which these trainings did not choose",
    metrics={
        "same": "share of the squared weights of the mixing that is the same, block by block",
        "same_by_coin": "the same with every hidden unit open or closed by chance",
    },
    conditions=[{"model": "mixer"}],
    seeds=range(10, 30),
    run=run,
    data=lambda: digits_checksums("trainval", "test"),
    settings={"model": MODEL, "training": RECIPE, "images": IMAGES},
    replay=({"model": "mixer"}, 10),
    steps=lambda condition: RECIPE["steps"],
)
