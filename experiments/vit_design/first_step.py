"""Pre-norm and post-norm before training: gradients by block, and what Adam's first step does."""

from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

from experiments.machinery.experiment import Experiment, Log, Outcome, scaled
from experiments.machinery.image_sets import digits_checksums, digits_set
from experiments.vit_design.norm_placement import MODEL
from vitbook.models.vit import VisionTransformer

TABLE: dict = {
    "positions": "sincos_2d",
    "position_base": 8,
    "centred_positions": True,
    "position_std": None,
}
DEPTHS = (2, 6, 12, 24)
GRADED, LOOKED_AT = 128, 16  # images that make the gradient; those whose features are compared
RATES = {"small": 4e-4, "large": 4e-3}  # `norm_placement` trains at rates on both sides
FIXED = 0.02  # the other start: one deviation for all weights


def build(norm: str, depth: int, start: str, seed: int) -> VisionTransformer:
    """A ViT of which each layer keeps the size of its input, or all weights have one deviation."""
    torch.manual_seed(seed)
    model = VisionTransformer(**{**MODEL, **TABLE}, depth=depth, norm_first=norm == "pre")
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            fan_in = layer.weight[0].numel()
            nn.init.normal_(layer.weight, std=FIXED if start == "0.02" else fan_in**-0.5)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    nn.init.normal_(model.head.weight, std=0.02)  # classes alike at first
    return model


def features(model: VisionTransformer, images: torch.Tensor) -> torch.Tensor:
    return model.encoder(model.embed(images))


def graded(
    condition: dict, seed: int, log: Log, scale: float
) -> tuple[VisionTransformer, torch.Tensor]:
    """A fresh model with the gradients of its first loss, and the images that made them."""
    images, labels = digits_set("trainval")
    images, labels = images[: scaled(GRADED, scale)], labels[: scaled(GRADED, scale)]
    model = build(**condition, seed=seed)
    loss = F.cross_entropy(model(images), labels)
    log(loss.item())
    loss.backward()
    return model, images


def stepped(condition: dict, seed: int, log: Log, scale: float, rate: float) -> tuple[float, float]:
    """How far the features move in Adam's first step, and the share of whole steps."""
    model, images = graded(condition, seed, log, scale)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    with torch.no_grad():
        matrices = [p for p in model.parameters() if p.ndim > 1]
        before, old = features(model, images[:LOOKED_AT]), [p.clone() for p in matrices]
        optimizer.step()
        after = features(model, images[:LOOKED_AT])
        steps = torch.cat(
            [(p - o).abs().flatten() / rate for p, o in zip(matrices, old, strict=True)]
        )
    whole = ((steps - 1).abs() < 0.1).double().mean().item()
    return ((after - before).norm() / before.norm()).item(), whole


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    """Measure before training and after one step; the scale takes fewer images."""
    model, images = graded(condition, seed, log, scale)
    norms = [
        nn.utils.get_total_norm([p.grad for p in block.parameters() if p.grad is not None]).item()
        for block in model.encoder.blocks
    ]
    with torch.no_grad():
        x = start = model.embed(images)
        for block in model.encoder.blocks:
            x = block(x)
    moved = {name: stepped(condition, seed, log, scale, rate) for name, rate in RATES.items()}
    return Outcome(
        {
            "gradients": norms,
            "stream": (x.norm() / start.norm()).item(),
            **{f"moved_{name}": far for name, (far, _) in moved.items()},
            "whole_steps": min(whole for _, whole in moved.values()),
        }
    )


EXPERIMENT = Experiment(
    what="Before training, in small ViTs of 2 to 24 blocks on digits of 8 x 8 pixels, with the "
    "norm before each branch (pre) or after each addition (post): the gradient of each block, and "
    "how far the features move in the first step of Adam.",
    chosen_on="nothing: there is no setting to choose",
    metrics={
        "gradients": "norm of the gradient of each block's weights, first block first",
        "stream": "size of the tokens behind the last block over that before the first",
        "moved_small": "relative change of the features in one step of Adam at the small rate",
        "moved_large": "the same at ten times that rate",
        "whole_steps": "share of the weights in matrices that move by the rate, within a tenth",
    },
    conditions=[
        *(
            {"norm": norm, "depth": depth, "start": "fan-in"}
            for norm, depth in product(("pre", "post"), DEPTHS)
        ),
        {"norm": "pre", "depth": max(DEPTHS), "start": "0.02"},
    ],
    seeds=range(20),
    run=run,
    data=lambda: digits_checksums("trainval"),
    settings={
        "model": {**MODEL, **TABLE},
        "rates": RATES,
        "images": GRADED,
        "looked_at": LOOKED_AT,
    },
    replay=({"norm": "post", "depth": 12, "start": "fan-in"}, 0),
    steps=lambda condition: 1 + len(RATES),
    workers=1,
)
