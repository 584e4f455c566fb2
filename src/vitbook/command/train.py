"""``python -m vitbook train``."""

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from vitbook import require, training
from vitbook.command import own_pictures
from vitbook.command.beside import CHECKPOINT_FILE
from vitbook.command.idle import OF_OUR_MODELS, refuse_idle_data, refuse_idle_of_timm
from vitbook.command.recipes import (
    SHAPES,
    augment,
    build_model,
    load_part,
    loss_function,
    settings_of,
    train_config,
)
from vitbook.command.runs import (
    device_type,
    lender_of,
    lent_settings,
    other_test,
    require_same_function,
    same_settings,
    settings_told,
    stored_run,
    write_run,
)
from vitbook.data.folder import FolderImages
from vitbook.data.folder_names import printed
from vitbook.data.room import Images
from vitbook.models.cost import count_parameters
from vitbook.training import RunFolder, TrainConfig, processes
from vitbook.training.loop import require_batches
from vitbook.training.run_folder import fingerprint

# Options of ``train`` that say where and how, not what: they may change when a run is resumed.
WHERE: tuple[str, ...] = (
    "root",
    "download",
    "mirror",
    "folders_are_classes",
    "out",
    "resume",
    "checkpoint_every",
    "evaluate_every",
    "micro_batch",
)
WHERE += ("progress", "device", "threads", "command", "traceback")


def train(options: argparse.Namespace) -> None:
    """Start a run, or go on with one; every process that ``torchrun`` started comes here."""
    out = Path(options.out)
    if device_type(options.device) == "cuda":
        _make_gpu_repeatable()
    folder = RunFolder(out, resume=options.resume, checkpoint_every=options.checkpoint_every)
    with processes.process_group(device_type(options.device)) as device:
        if processes.rank() == 0:
            folder.require_free()
        begins = not (options.resume and (out / "run.json").exists())
        settings, root, pictures = _settings(options, out, device)
        folder.told = settings_told(settings)
        config, model = train_config(settings), build_model(settings).to(device)
        goes_on = options.resume and folder.checkpoint.exists()
        if (settings.get("weights") or settings.get("timm")) and not goes_on:
            _say(*own_pictures.start_from(model, settings))
        part = "test" if settings["learn_from"] == "trainval" else "validation"
        read = {name: own_pictures.prepared(one, settings) for name, one in pictures.items()}
        images, labels = read.get(settings["learn_from"]) or _learned(options, settings, root)
        evaluate_on = read.get(part) or load_part(settings, part, root)
        if processes.rank() == 0:
            folder.told["tested"] = now = fingerprint(*evaluate_on)
            _say(*other_test(folder.checkpoint, now, part))
        shape = " x ".join(map(str, images.shape[1:]))
        _say(
            f"{settings['data']}: {len(images):,} images of {shape} to learn from; "
            f"{settings.get('timm') or settings['model']}: "
            f"{count_parameters(model):,} parameters; "
            f"{config.total_steps(len(images)):,} steps of {config.batch_size} images; "
            f"{processes.world()} x {device.type}; into {out}"
        )
        require_batches(config, len(images))
        updates, warm = config.total_steps(len(images)), vars(options).get("warmup_steps", 0)
        if warm > updates:
            _say(f"the rate is not reached: --warmup-steps {warm} of {updates} updates")
        if processes.rank() == 0 and begins:
            folder.claim()
            write_run(out, settings, root)

        reported: list[float] = []

        def report(row: dict) -> None:
            reported.append(row["val_accuracy"])
            line = f"step {row['step']:>6,}  epoch {row['epoch']:>3}  {row['seconds']:7.1f} s"
            line += f"  loss {row['loss']:.4f}  {part} loss {row['val_loss']:.4f}"
            _say(f"{line}  {part} accuracy {100 * row['val_accuracy']:.2f} %")

        def learn(config: TrainConfig, folder: RunFolder) -> None:
            training.train(
                model,
                images,
                labels,
                config,
                augment=augment(settings),
                loss_function=loss_function(settings, labels),
                evaluate_on=evaluate_on,
                evaluate_every=options.evaluate_every,
                micro_batch=options.micro_batch,
                folder=folder,
                progress=options.progress,
                report=report,
            )

        if settings.get("head_epochs"):
            _say("first the head alone")
            short = replace(config, epochs=settings["head_epochs"], steps=None)
            warmup = short.total_steps(len(images)) // own_pictures.WARMUP
            short = replace(short, warmup_steps=min(config.warmup_steps, warmup))
            model.requires_grad_(False)
            own_pictures.head_of(model).requires_grad_(True)
            learn(short, RunFolder(out / "head", resume=options.resume))
            model.requires_grad_(True)
            _say("now all weights")
        learn(config, folder)
        if not reported:  # the last update is always reported
            _say(f"{out} is already finished: nothing was left to do")
        elif settings["data"] == "folder":
            _say(*own_pictures.no_better(reported[-1], evaluate_on[1], part))


def _settings(
    options: argparse.Namespace, out: Path, device: torch.device
) -> tuple[dict, str | None, dict[str, FolderImages]]:
    """What was asked, or the settings of the run to go on with; where its data are; what of them
    was read."""
    given = {k: v for k, v in vars(options).items() if k not in WHERE}
    data = None
    pictures: dict[str, FolderImages] = {}
    if processes.rank() == 0 and options.resume and (out / "run.json").exists():
        data = json.dumps(stored_run(out)).encode()
    data = processes.from_first(data, device)  # only process 0 needs to see the folder
    if data is None:
        if options.resume and (out / CHECKPOINT_FILE).exists():
            raise ValueError(
                f"{out / 'run.json'} is missing: it says of what model the checkpoint beside it "
                "is; put it back, or train again into another folder"
            )
        if options.resume and not given:
            raise ValueError(f"{out} holds no run to go on with; say what is to be trained")
        if options.resume:
            _say(f"{out} holds no run to go on with: one begins")
        lender = lender_of(given)
        lent = lent_settings(given, lender)
        settings = settings_of(given := lent | given)
        require_same_function(settings, lender)
        if lent.keys() == {"num_heads"}:
            _say(f"num_heads {lent['num_heads']}, as is said with {settings['weights']}")
        require.whole("head_epochs", settings.get("head_epochs", 0), at_least=0)
        size = SHAPES.get(settings["data"], {}).get("image_size")  # of a folder it is known later
        require.whole("shift", settings["shift"], at_least=0, at_most=size and size - 1)
        if settings.get("batch_size") is not None:
            require.whole("batch_size", settings["batch_size"])
        refuse_idle_data(options, settings["data"])
        if settings.get("timm"):
            refuse_idle_of_timm(given)
            settings = {k: v for k, v in settings.items() if k not in OF_OUR_MODELS}
        if settings["data"] == "folder":
            own_pictures.require_outside(out, options.root)
            found, pictures, notes = own_pictures.describe(
                settings, options.root, given, options.folders_are_classes, lender
            )
            settings |= found
            _say(*notes)
        elif "batch_size" not in given:
            world = processes.world()
            settings["batch_size"] = max(settings["batch_size"] // world, 1) * world
        return settings, options.root, pictures
    run = json.loads(data)
    refuse_idle_data(options, run["settings"]["data"])
    return same_settings(run["settings"], given, out), options.root or run["root"], {}


def _say(*lines: str) -> None:
    """Lines for the user, from one process."""
    for line in lines if processes.rank() == 0 else ():
        tqdm.write(printed(line))


def _learned(
    options: argparse.Namespace, settings: dict, root: str | None
) -> tuple[Images, Tensor]:
    """The images to learn from; process 0 downloads them, the others wait for it."""
    first = processes.rank() == 0
    if not first:
        processes.barrier()
    download = {"download": options.download, "mirror": options.mirror} if first else {}
    images = load_part(settings, settings["learn_from"], root, **download)
    if first:
        processes.barrier()
    return images


def _make_gpu_repeatable() -> None:
    """Two runs on one GPU are equal bit for bit; the backward pass of attention is not by itself.

    Source: pytorch.org, notes on reproducibility.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first matrix product
    torch.use_deterministic_algorithms(True)  # a warning instead would let attention differ
