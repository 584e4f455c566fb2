"""The command: ``python -m vitbook train``, ``evaluate`` and ``attention``."""

import argparse
import errno
import json
import os
import sys
from pathlib import Path

import torch
from tqdm import tqdm

import vitbook
from vitbook.data.splits import PARTS
from vitbook.files import write_atomically
from vitbook.intervals import wilson_interval
from vitbook.recipes import (
    MODELS,
    RECIPES,
    augment,
    build_model,
    load_part,
    settings_of,
    train_config,
)
from vitbook.training import evaluate, processes, train
from vitbook.training.run_folder import RunFolder
from vitbook.vit import POOLS, POSITIONS
from vitbook.weights import load_weights

EXAMPLES = """examples:
  python -m vitbook train --out runs/digits
  python -m vitbook train --data mnist --root data --download --out runs/mnist
  python -m vitbook train --out runs/mnist --resume
  python -m vitbook evaluate runs/mnist
  python -m vitbook attention 7 --run runs/mnist --out seven.png
  torchrun --nproc-per-node 2 -m vitbook train --out runs/digits
"""
# Options of `train` that say where and how, not what: they may change when a run is resumed.
WHERE = ("root", "download", "mirror", "out", "resume", "checkpoint_every", "evaluate_every")
WHERE += ("tensorboard", "progress", "device", "threads", "command", "traceback")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; errors become one sentence and the exit code 2."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    try:
        {"train": _train, "evaluate": _evaluate, "attention": _attention}[options.command](options)
        return 0
    except KeyboardInterrupt:
        print("vitbook: stopped; train --resume goes on from the last checkpoint", file=sys.stderr)
        return 130
    except (ValueError, TypeError, ArithmeticError, OSError, RuntimeError) as error:
        if options.traceback or not (explained := _sentence(error, options)):
            raise
        print(f"vitbook: {explained}", file=sys.stderr)
        return 2


def _train(options: argparse.Namespace) -> None:
    out = Path(options.out)
    if _device_type(options.device) == "cuda":
        _make_gpu_repeatable()
    with processes.process_group(_device_type(options.device)) as device:
        first = processes.rank() == 0
        stored = _stored(out) if first and options.resume and (out / "run.json").exists() else None
        stored = processes.from_first(
            None if stored is None else json.dumps(stored).encode(), device
        )
        given = {k: v for k, v in vars(options).items() if k not in WHERE}
        run = None if stored is None else json.loads(stored)
        settings = settings_of(given) if run is None else _same(run["settings"], given, out)
        root = options.root or (run or {}).get("root")
        config, model = train_config(settings), build_model(settings).to(device)

        download = {"download": options.download, "mirror": options.mirror}
        if not first:
            processes.barrier()  # process 0 downloads
            download = {}
        images, labels = load_part(settings, settings["learn_from"], root, **download)
        if first:
            processes.barrier()
        part = "test" if settings["learn_from"] == "train" else "validation"
        evaluate_on = load_part(settings, part, root)
        folder = RunFolder(
            out,
            resume=options.resume,
            checkpoint_every=options.checkpoint_every,
            tensorboard=options.tensorboard,
        )
        steps = config.total_steps(len(images))
        if first:
            size = sum(parameter.numel() for parameter in model.parameters())
            shape = " x ".join(map(str, images.shape[1:]))
            print(
                f"{settings['data']}: {len(images):,} images of {shape} to learn from; "
                f"{settings['model']}: {size:,} parameters; {steps:,} steps of "
                f"{config.batch_size} images; {processes.world()} x {device.type}; into {out}"
            )
            if not (folder.checkpoint.exists() or folder.metrics.exists()):
                _write_run(out, settings, root)

        def report(row: dict) -> None:
            if first:
                line = f"step {row['step']:>6,}  epoch {row['epoch']:>3}  {row['seconds']:7.1f} s"
                line += f"  loss {row['loss']:.4f}  {part} loss {row['val_loss']:.4f}"
                tqdm.write(f"{line}  {part} accuracy {100 * row['val_accuracy']:.2f} %")

        train(
            model,
            images,
            labels,
            config,
            augment=augment(settings),
            evaluate_on=evaluate_on,
            evaluate_every=options.evaluate_every,
            folder=folder,
            progress=options.progress,
            report=report,
        )


def _evaluate(options: argparse.Namespace) -> None:
    settings, root, model = _trained(options)
    images, labels = load_part(settings, options.part, options.root or root)
    loss, accuracy, n = evaluate(model, images, labels)
    _, low, high = wilson_interval(round(n * accuracy), n)
    print(
        f"{settings['data']}, {options.part}: {round(n * accuracy):,} of {n:,} right, "
        f"accuracy {100 * accuracy:.2f} % (95 % interval {100 * low:.2f} to {100 * high:.2f} %), "
        f"loss {loss:.4f} nats"
    )


def _attention(options: argparse.Namespace) -> None:
    from vitbook.pictures import attention_figure, read_image, save_figure

    settings, root, model = _trained(options)
    image, name = read_image(options, settings, root)
    figure, told = attention_figure(model, image, settings, options.query, options.rollout)
    save_figure(figure, Path(options.out))
    print(f"{name}: {told}; drawn into {options.out}")


def _trained(options: argparse.Namespace):
    run = _stored(Path(options.run))
    model = build_model(run["settings"])
    checkpoint = Path(options.run) / "checkpoint.safetensors"
    if not checkpoint.is_file():
        raise FileNotFoundError(
            f"there is no checkpoint {checkpoint}; train first, or name another run"
        )
    if adapted := load_weights(model, checkpoint):
        raise ValueError(f"checkpoint {checkpoint} is of another model: {'; '.join(adapted)}")
    model.to(_device_type(options.device)).eval()
    return run["settings"], run["root"], model


def _stored(out: Path) -> dict:
    path = out / "run.json"
    if not path.is_file():
        raise ValueError(f"{out} holds no run: there is no {path}; train one with --out {out}")
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        return {"settings": settings_of(run["settings"]), "root": run["root"]}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({error!r}); train again into another folder"
        ) from None


def _write_run(out: Path, settings: dict, root: str | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    root = None if root is None else str(Path(root).expanduser().resolve())
    run = {"vitbook": vitbook.__version__, "settings": settings, "root": root}
    write_atomically(out / "run.json", (json.dumps(run, indent=2) + "\n").encode())


def _same(stored: dict, given: dict, out: Path) -> dict:
    """The settings of the run that is resumed; what was said again must not differ."""
    other = [name for name, value in given.items() if stored.get(name) != value]
    if other:
        differences = ", ".join(f"{n} was {stored.get(n)}, now {given[n]}" for n in other)
        raise ValueError(f"the run in {out} was made otherwise: {differences}; leave these out")
    return stored


def _device_type(name: str) -> str:
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch sees no GPU (--device cuda); use --device cpu")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def _make_gpu_repeatable() -> None:
    """Two runs on one GPU are equal bit for bit; the backward pass of attention is not by itself.

    Source: pytorch.org, notes on reproducibility.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first matrix product
    torch.use_deterministic_algorithms(True)  # a warning instead would let attention differ


def _sentence(error: Exception, options: argparse.Namespace) -> str:
    """What to tell the user; empty for an error that only its traceback explains."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) and "out" in options
        if full and text == os.strerror(error.errno):
            text = f"{options.out} could not be written: {text}; free space and run it again"
            text += ", with --resume" if options.command == "train" else ""
    if isinstance(error, RuntimeError):
        compiler = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
        if isinstance(error, torch.OutOfMemoryError):
            text = f"{text.split('. ')[0]}; a smaller --batch-size or --device cpu may help"
        elif compiler and getattr(options, "compile", False):
            text = f"torch.compile failed ({text.strip().splitlines()[0]}); leave --compile out"
        else:
            return ""
    where = f"process {os.environ['RANK']}: " if "RANK" in os.environ else ""
    return where + " ".join((text or type(error).__name__).split())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(2, f"vitbook: {message}; see {self.prog} --help\n")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _clip(text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be a number or "none", got {text!r}') from None


def _place(text: str) -> tuple[int, int]:
    try:
        row, column = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be ROW,COLUMN such as 2,3, got {text!r}") from None
    return row, column


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="vitbook",
        description="Train a Vision Transformer, test it, and see where it looks.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"vitbook {vitbook.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="train a model, or go on with a run"))
    _add_evaluate(commands.add_parser("evaluate", help="loss and accuracy of a trained model"))
    _add_attention(commands.add_parser("attention", help="draw where a trained model looks"))
    return parser


def _add_common(parser: argparse.ArgumentParser, root_help: str) -> None:
    parser.add_argument("--root", metavar="DIR", help=root_help)
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if any"
    )
    parser.add_argument(
        "--threads",
        type=_count,
        default=1,
        help="of the CPU; the last digits depend on it (default: 1)",
    )
    parser.add_argument("--traceback", action="store_true", help="show where an error arose")


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train a Vision Transformer. What is not said comes from the data set's recipe. The test "
        "images are looked at after each epoch but choose nothing; choose settings with "
        "--learn-from fit, which keeps validation images apart."
    )
    unset = argparse.SUPPRESS  # so that a resumed run can tell what was said from what was not
    data = parser.add_argument_group("data")
    data.add_argument("--data", choices=tuple(RECIPES), default=unset, help="default: digits")
    data.add_argument("--download", action="store_true", help="fetch what --root lacks")
    data.add_argument("--mirror", metavar="URL", help="fetch the archives from there")
    data.add_argument(
        "--learn-from", choices=("train", "fit"), default=unset, help="default: train"
    )
    data.add_argument("--shift", type=int, metavar="PIXELS", default=unset, help="random shifts")
    data.add_argument("--flip", action=argparse.BooleanOptionalAction, default=unset)
    _add_common(data, "folder of the downloaded data sets")

    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", choices=tuple(MODELS), default=unset, help="sizes, to be changed by what follows"
    )
    for name in ("--patch-size", "--embed-dim", "--depth", "--num-heads"):
        model.add_argument(name, type=int, metavar="N", default=unset)
    model.add_argument("--mlp-ratio", type=float, metavar="R", default=unset)
    model.add_argument("--pool", choices=POOLS, default=unset)
    model.add_argument("--positions", choices=POSITIONS, default=unset)
    model.add_argument(
        "--post-norm", action="store_const", const=False, dest="norm_first", default=unset
    )
    model.add_argument("--dropout", type=float, metavar="P", default=unset)

    recipe = parser.add_argument_group("recipe")
    length = recipe.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, metavar="N", default=unset)
    length.add_argument("--steps", type=int, metavar="N", default=unset)
    recipe.add_argument(
        "--batch-size", type=int, metavar="N", default=unset, help="over all processes together"
    )
    recipe.add_argument("--learning-rate", type=float, metavar="R", default=unset, help="the peak")
    recipe.add_argument("--weight-decay", type=float, metavar="R", default=unset)
    recipe.add_argument("--warmup-steps", type=int, metavar="N", default=unset)
    recipe.add_argument("--label-smoothing", type=float, metavar="P", default=unset)
    recipe.add_argument("--clip-norm", type=_clip, metavar="R", default=unset, help='or "none"')
    recipe.add_argument("--seed", type=int, metavar="N", default=unset)
    recipe.add_argument("--precision", choices=("fp32", "bf16"), default=unset)
    recipe.add_argument("--compile", action="store_true", default=unset, help="torch.compile")

    files = parser.add_argument_group("files")
    files.add_argument("--out", metavar="RUN", required=True, help="folder of the run")
    files.add_argument("--resume", action="store_true", help="go on from RUN's checkpoint")
    files.add_argument("--checkpoint-every", type=_count, metavar="STEPS", help="default: an epoch")
    files.add_argument("--evaluate-every", type=_count, metavar="STEPS", help="default: an epoch")
    files.add_argument("--tensorboard", action="store_true", help="event files, too")
    files.add_argument("--no-progress", action="store_false", dest="progress", default=None)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print loss and accuracy of a trained model."
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--part", choices=PARTS, default="test", help="default: test")
    _add_common(parser, "folder of the data sets, if not the one of the training")


def _add_attention(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Draw how a trained model looks at one image: a panel for each layer and head, with the "
        "weights that the class token gives to the patches; without one, the mean over all patches."
    )
    parser.add_argument("image", metavar="IMAGE", help="a picture file, or the number of an image")
    parser.add_argument("--run", metavar="RUN", required=True, help="folder of the run")
    parser.add_argument("--out", metavar="FIG", required=True, help=".png, .pdf or .svg")
    parser.add_argument("--part", choices=PARTS, default="test", help="where IMAGE counts (test)")
    parser.add_argument(
        "--invert", action="store_true", help="the file shows dark strokes on white paper"
    )
    parser.add_argument(
        "--query", type=_place, metavar="ROW,COLUMN", help="let this patch look, counted from 0"
    )
    parser.add_argument("--rollout", action="store_true", help="attention through all layers")
    _add_common(parser, "folder of the data sets, if not the one of the training")
