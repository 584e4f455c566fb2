"""``python -m vitbook examine``: what is wrong with a training, before or after it."""

import argparse

import torch

from vitbook import training
from vitbook.command.any_model import any_model
from vitbook.command.recipes import build_model, load_part
from vitbook.command.runs import changed, device_type, run_of
from vitbook.data.folder_names import printed


def examine(options: argparse.Namespace) -> None:
    """Put the model of a run, as it began, or one's own and the run's images to short trials."""
    settings, root = run_of(options)
    model = any_model(options)[0] if options.model else build_model(settings)
    model.to(device_type(options.device))
    part = settings["learn_from"]
    images, labels = known = load_part(settings, part, root)
    if settings["data"] == "folder":
        for note in changed(options.run, settings, root, part, known):
            print(printed(note))
    some = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    found = training.examine(
        model,
        images[some].to("cpu"),  # a folder is read class by class
        labels[some],
        learning_rate=settings["learning_rate"],
        batch_size=min(settings["batch_size"], len(labels)),
        updates=options.updates,
    )
    print(found)
