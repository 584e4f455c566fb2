"""How far apart may two glyphs stand for a model to tell whether they are the same?"""

import torch
from torch import Tensor

from experiments.machinery.choose import Choice
from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment, checksum, scaled
from experiments.machinery.small_vit import LEARNED
from vitbook.data import ImageSet
from vitbook.data.glyphs import stamp
from vitbook.models.hybrid import Hybrid

CELLS, P = 12, 8  # a strip of 12 patches in one row
KINDS, NOISE = 8, 0.1
DISTANCES = range(1, CELLS)
IMAGES = {"train": 30_000, "validation": 4_400, "test": 11_000}
MODEL: dict = {
    "image_size": (P, CELLS * P),
    "patch_size": P,
    "in_channels": 1,
    "num_classes": 2,
    "embed_dim": 64,
    "mlp_ratio": 2.0,
}
RECIPE: dict = {"steps": 500, "batch_size": 128, "warmup_steps": 50}
ARMS: dict = {
    "conv 1 x 3": {"layers": ["conv"], "kernel_size": 3},
    "conv 2 x 3": {"layers": ["conv"] * 2, "kernel_size": 3},
    "conv 4 x 3": {"layers": ["conv"] * 4, "kernel_size": 3},
    "conv 2 x 5": {"layers": ["conv"] * 2, "kernel_size": 5},
    "conv 2 x 7": {"layers": ["conv"] * 2, "kernel_size": 7},
    "ViT": {"layers": ["attention"] * 2, "num_heads": 4},
    "Mixer": {"layers": ["mixer"] * 2, "token_dim": 32},
    "no mixing": {"layers": ["none"] * 2},
}


def build(arm: str) -> Hybrid:
    kind = ARMS[arm]["layers"][0]
    stem = "normed" if kind == "conv" else "patches"
    positions = {"positions": "none"} if kind in ("conv", "mixer") else LEARNED
    return Hybrid(**MODEL, **ARMS[arm], stem=stem, **positions)


def strips(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 1, 8, 96) with two glyphs, whether they are the same (n,), how far apart (n,).

    Half of the pairs are the same. All distances are equally frequent, and so are all kinds in
    both classes.
    """
    random = torch.Generator().manual_seed(seed)
    labels = torch.randperm(n, generator=random) % 2
    first = torch.randint(KINDS, (n,), generator=random)
    other = torch.randint(1, KINDS, (n,), generator=random)
    kinds = torch.stack([first, (first + other * (1 - labels)) % KINDS], dim=1)  # (n, 2)
    apart = torch.randint(1, CELLS, (n,), generator=random)
    left = (torch.rand(n, generator=random) * (CELLS - apart)).long()
    images = torch.zeros(n, 1, P, CELLS * P)
    top = torch.ones(n, dtype=torch.long)
    for i, cell in enumerate((left, left + apart)):
        stamp(images, kinds[:, i], top, cell * P + 1)
    images = (images + NOISE * torch.randn(images.shape, generator=random)).clamp(0, 1)
    return images, labels, apart


def images_of(part: str, scale: float = 1.0) -> ImageSet:
    images, labels, _ = strips(scaled(IMAGES[part], scale), seed=list(IMAGES).index(part))
    return ImageSet(images, labels)


@torch.no_grad()
def by_distance(model: Hybrid, scale: float) -> dict[str, list[float]]:
    """Share of the test images answered correctly, for each distance."""
    images, labels, apart = strips(
        max(200, scaled(IMAGES["test"], scale)), seed=list(IMAGES).index("test")
    )
    right = torch.cat([model(x) for x in images.split(500)]).argmax(dim=-1) == labels
    found = [round(float(right[apart == d].double().mean()), 4) for d in DISTANCES]
    return {"by_distance": found}


CLASSIFIER = Classifier(build=build, images=images_of, recipe=RECIPE, further=by_distance)
EXPERIMENT = Experiment(
    what="Two glyphs in a strip of 12 patches: are they the same? By their distance, for "
    "ConvMixers of several depths and kernels, a ViT, an MLP-Mixer and a model without mixing.",
    chosen_on="validation images: the learning rate of each model",
    metrics={
        **METRICS,
        "by_distance": f"share of the test images answered correctly, for the distances 1 to "
        f"{CELLS - 1} patches, about {IMAGES['test'] // (CELLS - 1)} images each",
    },
    conditions=[{"arm": arm} for arm in ARMS],
    seeds=range(3),
    run=CLASSIFIER.run,
    data=lambda: {f"strips, {part}": checksum(*images_of(part)) for part in IMAGES},
    settings={
        "model": MODEL,
        "training": RECIPE,
        "arms": ARMS,
        "images": IMAGES,
        "kinds": KINDS,
        "noise": NOISE,
    },
    replay=({"arm": "conv 1 x 3"}, 0),
    steps=CLASSIFIER.steps,
    choose=Choice(
        grid={"learning_rate": (2e-3, 4e-3, 8e-3)}, trial=CLASSIFIER.trial, length=0.3, finalists=0
    ),
)
