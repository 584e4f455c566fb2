"""MNIST, Fashion-MNIST and CIFAR-10 whole: small ViTs on one core, by the parts of the command."""

from dataclasses import replace

from torch import nn

from experiments.machinery.experiment import Experiment, Log, Outcome, logged, scaled
from experiments.machinery.image_sets import root, whole_checksums
from experiments.machinery.measures import ANSWERS, answers, parameters, probabilities, thin
from vitbook.command.recipes import augment, build_model, load_part, settings_of, train_config
from vitbook.data import ImageSet
from vitbook.training import train

# What differs from the recipes of `python -m vitbook train`. Patches of 7 rather than 4, with more
# epochs in the same time, were better in a trial on the validation images of Fashion-MNIST.
SMALL: dict = {"patch_size": 7, "embed_dim": 96, "depth": 3, "mlp_ratio": 1.5, "epochs": 16}
GIVEN = {
    "mnist": {**SMALL, "shift": 2},
    "fashion-mnist": {**SMALL, "flip": True},
    "cifar10": {
        "embed_dim": 96,
        "depth": 3,
        "mlp_ratio": 2.0,
        "epochs": 6,
        "shift": 2,
        "flip": True,
    },
}
SETTINGS = {
    name: settings_of({"data": name, "learn_from": "train", **given})
    for name, given in GIVEN.items()
}


def command(name: str) -> str:
    """The line that trains the same model; `python -m vitbook evaluate` then tests it."""
    words = [f"python -m vitbook train --data {name} --learn-from train"]
    for option, value in GIVEN[name].items():
        option = option.replace("_", "-")
        words.append(f"--{option}" if value is True else f"--{option} {value}")
    return " ".join([*words, f"--root data --out runs/{name}"])


def images_of(name: str, part: str, scale: float = 1.0) -> ImageSet:
    """One part of a data set, normalised; for a trial only its first images."""
    images, labels = load_part(SETTINGS[name], part, str(root()))
    kept = scaled(len(labels), scale)
    return ImageSet(images[:kept].to("cpu"), labels[:kept])


def trained(settings: dict, log: Log, scale: float = 1.0) -> tuple[nn.Module, list[dict]]:
    """A model that learned from nine tenths of the training images, and its rows."""
    name = settings["data"]
    learned, validation = images_of(name, "train"), images_of(name, "validation", scale)
    config = train_config(settings)
    steps = scaled(config.total_steps(len(learned.labels)), scale)
    if scale < 1:
        config = replace(config, batch_size=scaled(config.batch_size, scale))
    model = build_model(settings)
    history = train(
        model,
        *learned,
        replace(config, epochs=None, steps=steps),
        augment=augment(settings),
        loss_function=logged(log, config.label_smoothing),
        evaluate_on=validation,
        evaluate_every=max(1, steps // config.epochs),
        progress=False,
    )
    return model, history


def run(condition: dict, seed: int, log: Log, scale: float) -> Outcome:
    settings = {**SETTINGS[condition["data"]], "seed": seed}
    model, history = trained(settings, log, scale)
    evaluated = [row for row in history if row["val_loss"] is not None]
    images, labels = images_of(condition["data"], "test", scale)
    metrics = {
        **answers(probabilities(model, images), labels),
        "validation_accuracy": [round(row["val_accuracy"], 5) for row in evaluated],
        "validation_loss": [round(row["val_loss"], 5) for row in evaluated],
        "loss": thin([row["loss"] for row in history]),
        "parameters": parameters(model),
        "epochs": settings["epochs"],
    }
    return Outcome(metrics, model.state_dict())


EXPERIMENT = Experiment(
    what="MNIST, Fashion-MNIST and CIFAR-10: Vision Transformers of at most 210,000 parameters "
    "(CIFAR-10: 250,000), trained for minutes on one core, tested on the official test images.",
    chosen_on='a tenth of each class of the training images ("validation"), which the models do '
    "not learn from; the test images were looked at once, at the end of each run; "
    "the code and the trials of what was chosen were not kept",
    metrics={
        "test_accuracy": "share of the 10,000 official test images answered rightly",
        **ANSWERS,
        "validation_accuracy": "share of the validation images answered rightly after each epoch",
        "validation_loss": "mean cross-entropy on them after each epoch, in nats",
        "loss": "training loss, means over about a hundredth of the steps each",
        "parameters": "numbers that are learned",
        "epochs": "passes over the nine tenths of the training images that are learned from",
    },
    conditions=[{"data": name} for name in GIVEN],
    seeds=range(3),
    run=run,
    data=lambda: whole_checksums(*GIVEN, added=""),
    settings={**SETTINGS, "commands": {name: command(name) for name in GIVEN}},
    replay=({"data": "mnist"}, 0),
    keep={name.replace("-", "_"): ({"data": name}, 0) for name in ("mnist", "fashion-mnist")},
    steps=lambda condition: train_config(SETTINGS[condition["data"]]).total_steps(
        45_000 if condition["data"] == "cifar10" else 54_000
    ),
)
