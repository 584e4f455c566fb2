"""What can be asked of the command."""

import argparse
import os
import re
from functools import partial
from typing import NoReturn

import vitbook
from vitbook.command.architectures import ARCHITECTURES
from vitbook.command.recipes import MODELS, RECIPES
from vitbook.data.splits import PARTS
from vitbook.layers.positions import POSITIONS
from vitbook.models.hybrid import LAYERS, STEMS
from vitbook.models.vit import POOLS

MOST, LARGEST = 10**9, 10**4  # of whatever is counted; of sizes
EXAMPLES = """examples:
  python -m vitbook train --out runs/digits
  python -m vitbook train --data mnist --root data --download --out runs/mnist
  python -m vitbook train --out runs/mnist --resume
  python -m vitbook train --architecture mlp-mixer --out runs/mixer
  python -m vitbook train --architecture hybrid --layers "mixer*2,attention" --out runs/hybrid
  python -m vitbook train --data folder --root photos --out runs/photos
  python -m vitbook predict runs/photos a.jpg b.jpg
  python -m vitbook evaluate runs/mnist
  python -m vitbook examine runs/photos
  python -m vitbook compare my_layer.py:MyMixing --out runs/mixing
  python -m vitbook compare my_layer.py:MyMixing --task labels --out runs/labels
  python -m vitbook results runs/photos --out results.html
  python -m vitbook export runs/mnist --out mnist.pt2
  python -m vitbook attention 7 --run runs/mnist --out seven.png
  python -m vitbook attention photo.jpg --timm vit_small_patch16_224 --out look.html
  torchrun --nproc-per-node 2 -m vitbook train --out runs/digits
"""
COPIES = (
    "Copies of a picture in two parts are left out. Told are near ones, in two classes, too: saved "
    "anew, scaled (of small JPEGs not each), mirrored or turned by right angles, and, where most "
    "of a part are such, six at least, a little brighter, darker or cropped; not what was made "
    "grey, much brighter or darker, turned by less or framed."
)


def parser() -> argparse.ArgumentParser:
    """All that the command understands."""
    whole = _Parser(
        prog="vitbook",
        description="Train a Vision Transformer or a relative, test it, and see where it looks.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"vitbook {vitbook.__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (add, words) in COMMANDS.items():
        one = commands.add_parser(name, help=words)
        one.register("type", None, _text)  # of every option that names no type of its own
        add(one)
    return whole


def options_of(command: str) -> list[str]:
    """All that may be said to a command, such as "--batch-size"."""
    one = argparse.ArgumentParser()
    COMMANDS[command][0](one)
    return re.findall(r"--[a-z-]+", one.format_usage())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"vitbook: {message}; see {self.prog} --help\n")


def _text(text: str) -> str:
    """Words, or a path: the shell leaves --out=~/run as it is, and an unset variable is empty."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; leave it out, or give it a value")
    if (text := os.path.expanduser(text)).startswith("~"):
        raise argparse.ArgumentTypeError(f"must name a user's folder that exists, got {text}")
    return text


def _whole(text: str, most: int = MOST) -> int:
    """A whole number; how small it may be, says what takes it."""
    try:
        number = int(text)
    except ValueError:  # more than 4,300 digits, too
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text[:20]!r}") from None
    if number > most:
        raise argparse.ArgumentTypeError(f"must be at most {most:,}, got {text[:20]}")
    return number


def _count(text: str, most: int = MOST) -> int:
    if not text.isdecimal() or set(text) <= {"0"}:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return _whole(text, most)


_size, _layer_size = partial(_count, most=LARGEST), partial(_whole, most=LARGEST)


def _ratio(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if number > LARGEST:
        raise argparse.ArgumentTypeError(f"must be at most {LARGEST:,}, got {text}")
    return number


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


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be one number for each channel such as 0.5,0.5,0.5, got {text!r}"
        ) from None


def _layers(text: str) -> list[str]:
    words = []
    for part in text.split(","):
        kind, _, count = part.strip().partition("*")
        if kind not in LAYERS or not (count or "1").isdecimal() or count == "0":
            known = ", ".join(LAYERS)
            raise argparse.ArgumentTypeError(
                f'must be words of {known}, such as "mixer*3,attention", got {text!r}'
            )
        words += [kind] * _layer_size(count or "1")
    return words


def _patterns(text: str) -> str | list[str]:
    return text.split(",") if "," in text else _text(text)


def _add_common(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, root_help: str | None = None
) -> None:
    if root_help is not None:
        parser.add_argument("--root", metavar="DIR", help=root_help)
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if any"
    )
    parser.add_argument(
        "--threads",
        type=partial(_count, most=1000),
        default=1,
        help="of the CPU; the last digits depend on it (default: 1)",
    )
    parser.add_argument("--traceback", action="store_true", help="show where an error arose")


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train a Vision Transformer or a relative. What is not given comes from the data set's "
        "recipe. The test images are looked at after each epoch but choose nothing; choose "
        "settings with --learn-from train, which keeps validation images apart."
    )
    # so that a resumed run can tell what was said from what was not; where and how may change
    parser.argument_default = argparse.SUPPRESS
    parser.set_defaults(root=None, download=False, mirror=None, folders_are_classes=False)
    parser.set_defaults(resume=False, checkpoint_every=None, evaluate_every=None, micro_batch=None)
    parser.set_defaults(traceback=False)
    data = parser.add_argument_group("data")
    data.add_argument("--data", choices=tuple(RECIPES), help="default: digits")
    data.add_argument("--download", action="store_true", help="fetch what --root lacks")
    data.add_argument("--mirror", metavar="URL", help="fetch the archives from there")
    data.add_argument("--learn-from", choices=("trainval", "train"), help="default: trainval")
    data.add_argument("--shift", type=_layer_size, metavar="PIXELS", help="random shifts")
    data.add_argument("--flip", action=argparse.BooleanOptionalAction)
    _add_common(data, "folder of the downloaded data sets, or of one's own pictures")

    own = parser.add_argument_group("one's own pictures (--data folder --root DIR)", COPIES)
    own.add_argument("--image-size", type=_size, metavar="PIXELS", help="64")
    own.add_argument(
        "--folders-are-classes",
        action="store_true",
        help='take classes called "train", "test", "images" or "masks" for what they say',
    )
    own.add_argument(
        "--weights", metavar="FILE", help="to start from; of a RUN, whose model is then built"
    )
    own.add_argument("--timm", metavar="NAME", help="a model of timm to start from")
    own.add_argument(
        "--head-epochs",
        type=_whole,
        metavar="N",
        help="epochs in which the head alone is trained, before the others (3 with a start)",
    )

    model = parser.add_argument_group("model")
    model.add_argument("--architecture", choices=tuple(ARCHITECTURES), help="default: vit")
    model.add_argument(
        "--model", choices=tuple(MODELS), help="sizes, to be changed by what follows"
    )
    for name in ("--patch-size", "--embed-dim", "--depth", "--num-heads"):
        model.add_argument(name, type=_layer_size, metavar="N")
    model.add_argument("--mlp-ratio", type=_ratio, metavar="R")
    model.add_argument(
        "--layers",
        type=_layers,
        metavar="WORDS",
        help=f'of a hybrid, such as "mixer*3,attention"; of {", ".join(LAYERS)}',
    )
    model.add_argument("--stem", choices=tuple(STEMS), help="of a hybrid")
    model.add_argument(
        "--token-dim", type=_layer_size, metavar="N", help="of a Mixer (default: D / 2)"
    )
    model.add_argument(
        "--kernel-size", type=_layer_size, metavar="N", help="of a ConvMixer (default: 5)"
    )
    model.add_argument("--pool", choices=POOLS)
    model.add_argument("--positions", choices=POSITIONS)
    model.add_argument(
        "--position-base",
        type=float,
        metavar="B",
        help="of sin-cos or rotary angles (default: the published 10000 and 100)",
    )
    model.add_argument(
        "--centred-positions",
        action=argparse.BooleanOptionalAction,
        help="take the mean row off a sin-cos table (default: no)",
    )
    model.add_argument(
        "--position-std",
        type=float,
        metavar="S",
        help="of a learned table at the start (default: 0.5; published: 0.02)",
    )
    model.add_argument("--post-norm", action="store_const", const=False, dest="norm_first")
    model.add_argument("--dropout", type=float, metavar="P")
    model.add_argument(
        "--drop-path",
        type=float,
        metavar="P",
        help="stochastic-depth rate of the last block, per sample, while training (default: 0)",
    )

    recipe = parser.add_argument_group("recipe")
    length = recipe.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=_count, metavar="N")
    length.add_argument("--steps", type=_count, metavar="N")
    recipe.add_argument(
        "--batch-size", type=_whole, metavar="N", help="over all processes together"
    )
    recipe.add_argument(
        "--micro-batch", type=_count, metavar="N", help="images at once, where memory is little"
    )
    recipe.add_argument("--learning-rate", type=float, metavar="R", help="the peak")
    recipe.add_argument("--weight-decay", type=float, metavar="R")
    recipe.add_argument("--warmup-steps", type=_whole, metavar="N")
    recipe.add_argument("--label-smoothing", type=float, metavar="P")
    recipe.add_argument(
        "--class-weights",
        action=argparse.BooleanOptionalAction,
        help="let each class count alike, however many images it has (default: no)",
    )
    recipe.add_argument("--clip-norm", type=_clip, metavar="R", help='or "none"')
    recipe.add_argument("--seed", type=int, metavar="N")
    recipe.add_argument("--precision", choices=("fp32", "bf16"))
    recipe.add_argument("--compile", action="store_true", help="torch.compile")

    files = parser.add_argument_group("files")
    files.add_argument("--out", metavar="RUN", required=True, help="folder of the run")
    files.add_argument("--resume", action="store_true", help="go on from RUN's checkpoint")
    files.add_argument("--checkpoint-every", type=_count, metavar="STEPS", help="default: an epoch")
    files.add_argument("--evaluate-every", type=_count, metavar="STEPS", help="default: an epoch")
    files.add_argument("--no-progress", action="store_false", dest="progress", default=None)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print loss and accuracy of a trained model."
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--part", choices=PARTS, default="test", help="default: test")
    _add_common(parser, "folder of the data sets, if not the one of the training")


def _add_examine(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Try the model of a run, as its seed drew it, and the images that it learns from for what "
        "commonly spoils a training, and say what to mend first."
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--model", metavar="FILE.py:FUNCTION", help="in its place what the function returns"
    )
    parser.add_argument(
        "--updates", type=_count, metavar="N", default=100, help="in a trial that learns (100)"
    )
    parser.set_defaults(timm=None, weights=None, random=False)
    _add_common(parser, "folder of the data sets, if not the one of the training")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print the most probable classes of picture files."
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("images", metavar="IMAGE", nargs="+", help="a picture file")
    parser.add_argument("--top", type=_count, default=3, metavar="N", help="classes shown (3)")
    parser.add_argument("--invert", action="store_true", help="dark strokes on white paper")
    _add_common(parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Put a token mixer of one's own, (B, N, D) -> (B, N, D), in the place of attention "
        "and train it as the book's layers were: equal parameters, one budget of multiplications, "
        "a rate searched in the same way. How long until half of the answers are right, and how "
        "many times as long as with attention? 14 trainings or more, a few minutes on two cores; "
        "with --task garments about ten, each ten times as long, and right answers are compared. "
        "What is stopped goes on with the same command, also after edits elsewhere in the file. "
        "The constructor may ask by name for embed_dim, num_tokens, grid and num_heads."
    )
    parser.add_argument("layer", metavar="FILE.py:CLASS", help="where the layer is")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="of trainings and page")
    parser.add_argument(
        "--task",
        choices=("places", "labels", "garments"),
        default="places",
        help="by what a patch names another one: its place (default), or a label that moves from "
        "image to image, so that a layer has to find it by what it holds; or garments of "
        "Fashion-MNIST anywhere on a canvas of 8 x 8 patches, which needs --root",
    )
    parser.add_argument("--root", metavar="DIR", help="folder of Fashion-MNIST, for garments")
    parser.add_argument("--download", action="store_true", help="fetch what --root lacks")
    parser.add_argument("--workers", type=_size, metavar="N", help="processes (default: cores)")
    parser.add_argument("--no-progress", action="store_false", dest="progress", default=None)
    parser.add_argument("--traceback", action="store_true", help="show where an error arose")
    parser.set_defaults(threads=1)


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one HTML file: accuracy by class, which classes are confused, and the mistakes that "
        "the model was surest of, as pictures with where its last layer looks."
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--out", metavar="FILE", required=True, help="its name ends in .html")
    parser.add_argument("--part", choices=PARTS, default="test", help="default: test")
    _add_common(parser, "folder of the data sets, if not the one of the training")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a trained model as a program of torch.export, which runs without this package, and "
        "compare its logits with the model's."
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--out", metavar="FILE", required=True, help="its name ends in .pt2")
    _add_common(parser)


def _add_attention(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show how a model looks at one image. As a picture: a panel for each layer and head, with "
        "the weights that the class token gives to the patches; without one, the mean over all "
        "patches. As .html: the interactive figure in one file, with an audit that says what the "
        "map may be used for."
    )
    parser.add_argument("image", metavar="IMAGE", help="a picture file, or the number of an image")
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("--run", metavar="RUN", help="folder of the run")
    whose.add_argument("--timm", metavar="NAME", help="a model of timm, with --out look.html")
    whose.add_argument("--model", metavar="FILE.py:FUNCTION", help="what the function returns")
    parser.add_argument("--out", metavar="FIG", required=True, help=".html, .png, .pdf or .svg")
    parser.add_argument("--part", choices=PARTS, default="test", help="where IMAGE counts (test)")
    parser.add_argument(
        "--invert", action="store_true", help="the file shows dark strokes on white paper"
    )
    parser.add_argument(
        "--query", type=_place, metavar="ROW,COLUMN", help="let this patch look, counted from 0"
    )
    parser.add_argument("--rollout", action="store_true", help="attention through all layers")
    model = parser.add_argument_group("models of others (--timm, --model)")
    model.add_argument(
        "--weights", metavar="FILE", help="safetensors, a torch state dict, or the folder of a RUN"
    )
    model.add_argument("--random", action="store_true", help="weights of timm that learned nothing")
    for name in ("mean", "std"):
        words = f"{name} of the channels of its images, in 0 to 1 (timm's models know it)"
        model.add_argument(f"--{name}", type=_numbers, metavar="R,G,B", help=words)
    model.add_argument("--size", type=_size, metavar="PIXELS", help="of a side of its images")
    model.add_argument(
        "--num-prefix", type=_layer_size, metavar="N", help="tokens before the patches"
    )
    words = 'which of them, such as "blocks.*"; several with commas between'
    model.add_argument("--layers", type=_patterns, metavar="PATTERN", help=words)
    page = parser.add_argument_group("the audit of an .html file")
    words = "name of a class, or its number from 0 on (default: the model's answer)"
    page.add_argument("--target", metavar="CLASS", help=words)
    page.add_argument("--no-audit", action="store_true", help="the file then says so")
    _add_common(parser, "folder of the data sets, if not the one of the training")


COMMANDS = {
    "train": (_add_train, "train a model, or go on with a run"),
    "evaluate": (_add_evaluate, "loss and accuracy of a trained model"),
    "examine": (_add_examine, "what commonly spoils a training, tried on a run"),
    "predict": (_add_predict, "what a trained model says of pictures"),
    "compare": (_add_compare, "a layer of one's own beside attention"),
    "results": (_add_results, "a page: confusions and worst mistakes"),
    "export": (_add_export, "a trained model as one file for elsewhere"),
    "attention": (_add_attention, "draw where a trained model looks"),
}
