"""``python -m vitbook export``: a run's model as a file that needs neither its code nor ours."""

import argparse
import io
import json
from pathlib import Path

import torch
from torch import Tensor, nn

from vitbook.command.recipes import class_names, shape_of, statistics_of
from vitbook.command.runs import trained_model
from vitbook.data.folder_names import printed
from vitbook.files import write_atomically

CLASSES = "classes.json"  # in the file, beside the program: names in the order of the logits
SHOWN = 12  # of these names printed
BATCHES = (1, 5)  # the file is tried with so many images
SAME = 1e-4  # relative difference of logits that another order of sums may make, in float32


class FromPixels(nn.Module):
    """A model that takes pixels in 0 ... 1 and normalises them itself."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, settings: dict):
        super().__init__()
        self.model = model
        for name, numbers in zip(("mean", "std"), statistics_of(settings), strict=True):
            self.register_buffer(name, torch.tensor(numbers).view(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels (B, C, S, S) in 0 ... 1 -> logits (B, K)."""
        return self.model((pixels - self.mean) / self.std)


def export(options: argparse.Namespace) -> None:
    """Write the model of a run as a program of ``torch.export``, read it back and compare."""
    out = Path(options.out)
    if out.suffix != ".pt2":
        raise ValueError(f"--out must end in .pt2, got {out}")
    settings, _, model = trained_model(options)
    whole, shape = FromPixels(model.cpu(), settings).eval(), shape_of(settings)
    S, C = shape["image_size"], shape["in_channels"]
    names = class_names(settings)
    generator = torch.Generator().manual_seed(0)
    example = torch.rand(2, C, S, S, generator=generator)
    batch = torch.export.Dim("batch")
    with torch.no_grad():
        program = torch.export.export(whole, (example,), dynamic_shapes=({0: batch},))
        data = io.BytesIO()
        torch.export.save(program, data, extra_files={CLASSES: json.dumps(names)})
        again = torch.export.load(io.BytesIO(data.getvalue())).module()
        differences = []
        for n in BATCHES:
            pixels = torch.rand(n, C, S, S, generator=generator)
            expected = whole(pixels)
            largest = (again(pixels) - expected).abs().max() / expected.abs().max()
            differences.append(largest.item())
    if not max(differences) <= SAME:
        raise ValueError(
            f"the exported model gives other logits (relative difference {max(differences):.1g}); "
            f"{out} was not written"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, data.getvalue())
    print(
        f"{out}: {len(data.getvalue()):,} bytes; pixels (B, {C}, {S}, {S}) in 0 to 1 -> logits "
        f"(B, {len(names)}); for {' and '.join(map(str, BATCHES))} images they differ "
        f"from the model's by {max(differences):.1g}, relative to the largest.\n"
        f"The logits: {', '.join(map(printed, names[:SHOWN]))}{', ...' * (len(names) > SHOWN)}. "
        "In the file: "
        f"names = {{{CLASSES!r}: ''}}; torch.export.load({out.name!r}, extra_files=names)\n"
        f"In Python, without this package: torch.export.load({out.name!r}).module()(pixels)\n"
        f"For ONNX: torch.onnx.export(torch.export.load({out.name!r}), dynamo=True)"
        f".save({out.stem + '.onnx'!r}), which needs the package onnxscript."
    )
