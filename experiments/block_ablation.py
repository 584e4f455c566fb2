"""What is each part of a block for? Attention, MLP, residuals, norms or GELU left out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments.machinery.classifier import METRICS, Classifier
from experiments.machinery.experiment import Experiment
from experiments.machinery.image_sets import checksums, image_set
from vitbook.encoder import Encoder, EncoderBlock
from vitbook.vit import VisionTransformer

SET = "fashion-mnist"
MODEL = {
    "image_size": 28,
    "patch_size": 7,
    "in_channels": 1,
    "num_classes": 10,
    "embed_dim": 32,
    "depth": 6,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "pool": "mean",  # without attention a class token would see no patch
    "positions": "sincos_2d",
    "position_base": 10000.0,  # the published table
    "centred_positions": False,
}
RECIPE = {"steps": 400, "batch_size": 100, "warmup_steps": 50}  # 4 epochs
GRID = (5e-4, 2e-3, 8e-3)
RATES = {
    "nothing": 8e-3,
    "attention": 8e-3,
    "mlp": 8e-3,
    "residual": 2e-3,
    "norm": 2e-3,
    "nonlinearity": 8e-3,
}


class Block(nn.Module):
    """A pre-norm block with one part left out; what stays starts with the same weights.

    Args:
        whole: The block that is taken apart.
        without: A key of `RATES`.
    """

    def __init__(self, whole: EncoderBlock, without: str):
        super().__init__()
        norm1, norm2 = whole.norm1, whole.norm2
        attn, mlp = whole.attn, whole.mlp
        if without == "norm":
            norm1, norm2 = nn.Identity(), nn.Identity()
        if without == "nonlinearity":
            mlp = nn.Sequential(whole.mlp.fc1, whole.mlp.fc2)  # two linear maps in a row
        branches = {"attention": nn.Sequential(norm1, attn), "mlp": nn.Sequential(norm2, mlp)}
        branches.pop(without, None)
        self.branches = nn.ModuleDict(branches)
        self.residual = without != "residual"

    def forward(self, x: Tensor, mask: None = None) -> Tensor:
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        for branch in self.branches.values():
            x = x + branch(x) if self.residual else branch(x)
        return x


def build(without: str, seed: int) -> VisionTransformer:
    torch.manual_seed(seed)
    model = VisionTransformer(**MODEL)
    blocks = [Block(block, without) for block in model.encoder.blocks]
    norm = nn.Identity() if without == "norm" else model.encoder.norm  # the last one too
    model.encoder = Encoder(blocks, norm)
    return model


CLASSIFIER = Classifier(
    build=build,
    images=lambda part, scale: image_set(SET, part, scale),
    recipe=RECIPE,
    settings=lambda condition: {"learning_rate": RATES[condition["without"]]},
)


EXPERIMENT = Experiment(
    what="A small ViT of six blocks, whole and with one part left out of every block: attention, "
    "MLP, the residual additions, all norms, or the GELU; trained on 10,000 images of "
    "Fashion-MNIST and tested on the official 10,000.",
    chosen_on="validation images that no run learns from: for each model the learning rate with "
    "the lowest loss out of the same three, with a seed of its own, in runs of half the length; "
    "the code and the trials of that search were not kept",
    metrics=METRICS,
    conditions=[{"without": without} for without in RATES],
    seeds=range(5),
    run=CLASSIFIER.run,
    data=lambda: checksums(SET),
    settings={
        "model": MODEL,
        "training": RECIPE,
        "learning_rates": RATES,
        "learning_rates_tried": GRID,
    },
    replay=({"without": "nothing"}, 0),
    steps=CLASSIFIER.steps,
)
