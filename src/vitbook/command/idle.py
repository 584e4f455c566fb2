"""Options that would do nothing are refused: who says one expects that it does something."""

import argparse
import os
from pathlib import Path

from vitbook.command.architectures import ARCHITECTURES, arguments_of
from vitbook.command.recipes import DOWNLOADED

IMAGES = {"image_size", "in_channels", "num_classes"}  # what the pictures say of any model
# What ``train`` may be told of a model of this package; one of timm has its own.
OF_OUR_MODELS = {"architecture", "model"}.union(*map(arguments_of, ARCHITECTURES)) - IMAGES
OF_OTHERS = ("weights", "random", "mean", "std", "size")
OF_PAGES = ("num_prefix", "layers", "target", "no_audit")
PAGES = (".html", ".htm")


def refuse_idle(options: argparse.Namespace) -> None:
    """Refuse what the command would not read, as far as its words alone tell.

    Raises:
        ValueError: The message names the options and when they count.
    """
    if options.command == "compare" and options.task != "garments":
        _refuse(options, ("root", "download"), "only --task garments reads a data set")
    if options.command == "train" and not options.download:
        _refuse(options, ("mirror",), "it says from where --download fetches")
    if options.command == "train" and getattr(options, "weights", None):
        _refuse(options, ("position_std",), "a table of positions comes with the weights")
    if options.command == "attention":
        _refuse_of_attention(options)


def _refuse_of_attention(options: argparse.Namespace) -> None:
    if os.path.realpath(options.out) == os.path.realpath(options.image):
        raise ValueError(
            f"--out must be another file than IMAGE, which it would replace: {options.out}"
        )
    number = options.run and options.image.isdecimal()
    if not number:
        _refuse(options, ("root",), "it counts where IMAGE is the number of an image of a run")
        if options.part != "test":
            _refuse(options, ("part",), "it counts where IMAGE is the number of an image of a run")
    if number or not options.run:
        _refuse(options, ("invert",), "it counts for a picture file shown to a run")
    if options.run:
        _refuse(options, OF_OTHERS, "a run knows its own; with --timm and --model they count")
        if Path(options.out).suffix.lower() not in PAGES:
            _refuse(options, OF_PAGES, "they count for an .html file")
    if options.no_audit:
        _refuse(options, ("target",), "it says of which class the audit speaks")


def refuse_idle_data(options: argparse.Namespace, data: str) -> None:
    """Refuse ``--root``, ``--download`` and ``--mirror`` for data that need no such thing."""
    if data not in (*DOWNLOADED, "folder"):
        why = f"{data} come with the package; one's own pictures are --data folder --root DIR"
        _refuse(options, ("root", "download", "mirror"), why)
    if data != "folder":
        _refuse(options, ("folders_are_classes",), "only --data folder has folders of classes")
    else:
        _refuse(options, ("download", "mirror"), "one's own pictures are not fetched")


def refuse_idle_of_timm(given: dict) -> None:
    """Refuse what is said of a model of this package where one of timm is trained."""
    if idle := sorted(OF_OUR_MODELS & given.keys()):
        raise ValueError(
            f"{', '.join(map(_option, idle))} must be left out: {given['timm']} is built by timm "
            "as it is; another size of its images (--image-size) can be asked for"
        )


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    given = {name: getattr(options, name, None) for name in names}
    if said := [_option(name) for name, x in given.items() if x is not None and x is not False]:
        raise ValueError(f"{', '.join(said)} must be left out: {why}")


def _option(name: str) -> str:
    return {"norm_first": "--post-norm"}.get(name, f"--{name.replace('_', '-')}")
