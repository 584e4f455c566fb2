"""``python -m vitbook predict``."""

import argparse
from pathlib import Path

import torch

from vitbook.command.images import read_picture
from vitbook.command.recipes import class_names
from vitbook.command.runs import trained_model
from vitbook.data.folder_names import printed


@torch.no_grad()
def predict(options: argparse.Namespace) -> None:
    """Print what a run's model says of each picture; one that cannot be read stops nothing."""
    settings, _, model = trained_model(options)
    device = next(model.parameters()).device
    names, refused = class_names(settings), []
    for path in options.images:
        try:
            image, remarks = read_picture(Path(path), settings, invert=options.invert)
        except ValueError as error:
            refused.append(str(error))
            continue
        probabilities = model(image[None].to(device)).softmax(dim=-1)[0].cpu()
        best = probabilities.topk(min(options.top, len(names)))
        answers = (f"{names[i]} {100 * p:.1f} %" for p, i in zip(*map(list, best), strict=True))
        print(printed(f"{path}: {', '.join(answers)}{remarks}"))
    if refused:
        raise ValueError("; ".join(refused))
