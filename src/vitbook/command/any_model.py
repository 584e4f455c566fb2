"""A model of timm or of somebody's own file, with its weights."""

import argparse
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn

from vitbook.files import defined_in
from vitbook.models.weights import read_weights as read_safetensors

RANDOM = (
    "The weights are random. Nothing here was learned: these maps show what the architecture does "
    "to a photograph by itself."
)
AS_RETURNED = "weights: as the function returned them"
ANSWERS = 5  # seconds for the hub of weights to say a word
WRAPPERS = ("state_dict", "model_state_dict", "model")  # where training scripts put the weights


def any_model(options: argparse.Namespace) -> tuple[nn.Module, str]:
    """The model of ``--timm`` or ``--model``, in evaluation mode, and what its weights are."""
    if options.random and options.weights:
        raise ValueError("--random and --weights exclude each other; leave one out")
    if options.random and options.model:
        raise ValueError("--random belongs to --timm; with --model the function says the weights")
    torch.manual_seed(0)
    state = None if options.weights is None else read_weights(Path(options.weights))
    if options.timm:
        model = _of_timm(options.timm, state, options.random, options.size)
    else:
        model = _of_file(options.model)
    if state is not None:
        load_whole(model, state, options.weights)
        return model.eval(), f"weights from {Path(options.weights).name}"
    if options.model:
        return model.eval(), AS_RETURNED
    return model.eval(), "random weights" if options.random else "timm's pretrained weights"


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, of a run's checkpoint, or of a torch one with no more.

    Raises:
        ValueError: There is no such file, or it holds other things; code in it never runs.
    """
    if path.is_dir():  # of a run?
        path = path / "checkpoint.safetensors"
    if not path.is_file():
        raise ValueError(
            f"--weights must be a file, or the folder of a run, but there is no {path}"
        )
    try:
        if path.suffix == ".safetensors":
            return read_safetensors(path)[0]
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path} holds more than tensors, a whole model perhaps, and code in it is not run; "
            "save its weights alone, torch.save(model.state_dict(), ...)"
        ) from None
    except (ValueError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be read as weights ({str(error).splitlines()[0]}); a state dict saved "
            "by safetensors.torch.save_file or torch.save can"
        ) from None
    for name in WRAPPERS:
        found = found[name] if isinstance(found, dict) and name in found else found
    if not isinstance(found, dict) or not all(isinstance(x, Tensor) for x in found.values()):
        raise ValueError(f"{path} holds no state dict, names with a tensor each")
    return {name.removeprefix("module."): x for name, x in found.items()}  # of DataParallel


def load_whole(model: nn.Module, state: dict[str, Tensor], path: str) -> None:
    """All weights or none: what is missing would stay random without a word."""
    try:
        wrong = model.load_state_dict(state, strict=False)
    except RuntimeError as error:  # a shape differs
        lines = str(error).splitlines()
        raise ValueError(f"{path} does not fit the model: {lines[-1].strip()}") from None
    for what, names in (("lacks", wrong.missing_keys), ("has, unknown to the model,", wrong[1])):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ValueError(f"{path} {what} {', '.join(names[:3])}{more}")


def _of_timm(name: str, state: dict | None, random: bool, size: int | None) -> nn.Module:
    changed: dict[str, Any] = {} if size is None else {"img_size": size}
    if state is not None and (classes := _classes(name, state)):
        changed["num_classes"] = classes
    try:
        return timm_model(name, pretrained=state is None and not random, **changed)
    except ValueError as error:
        raise ValueError(f"{error}, or --random to see it untrained") from None


def timm_model(name: str, **arguments: Any) -> Any:
    """What ``timm.create_model`` returns.

    Raises:
        ValueError: timm is missing, or cannot make it; the message says what timm said.
    """
    try:
        import timm
    except ImportError:
        raise ValueError("--timm needs timm, which is not installed: pip install timm") from None
    with _hub(wanted=arguments.get("pretrained", False)) as silent:
        try:
            return timm.create_model(name, **arguments)
        except Exception as error:  # of timm, of its hub, of the network: many kinds
            said = silent or shorten(str(error), 200, placeholder=" ...") or type(error).__name__
            raise ValueError(
                f"timm cannot make {name} ({said}); where its weights cannot be downloaded, say "
                "--weights FILE"
            ) from None


@contextmanager
def _hub(wanted: bool) -> Iterator[str]:
    """Why the hub of timm's weights is silent, or ""; then only what was fetched before is used,
    where the hub's own client would try each file six times."""
    try:
        import huggingface_hub as hub
    except ImportError:
        wanted = False
    if not wanted or hub.constants.HF_HUB_OFFLINE:
        yield ""
        return
    try:
        hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=ANSWERS)
        silent = ""
    except Exception as error:  # of two libraries, by the hub's version
        silent = f"{hub.constants.ENDPOINT} does not answer: {error}"
    hub.constants.HF_HUB_OFFLINE = bool(silent)
    try:
        yield silent
    finally:
        hub.constants.HF_HUB_OFFLINE = False


def _classes(name: str, state: dict[str, Tensor]) -> int | None:
    """How many classes a fine-tuned model's head has, by its weights."""
    try:
        import timm
    except ImportError:
        return None
    config = timm.get_pretrained_cfg(name)
    names = classifiers((config.classifier if config else None) or "head")
    heads = [state[f"{name}.weight"] for name in names if f"{name}.weight" in state]
    return len(heads[0]) if heads else None


def classifiers(of_timm: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names of a model's heads; distilled ones have two."""
    return (of_timm,) if isinstance(of_timm, str) else tuple(of_timm)


def _of_file(place: str) -> nn.Module:
    """The model that a function of somebody's file builds, "file.py:build"."""
    build = defined_in(place, "--model", "FUNCTION")
    model = build()
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"--model: {place.rpartition(':')[2]}() must return a torch.nn.Module, got {model!r}"
        )
    return model
