"""A model of timm or of somebody's own file, with its weights."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn

from vitbook.command.beside import of_other_timm
from vitbook.files import defined_in
from vitbook.models.fitting import drop_idle, unfit, unwritten
from vitbook.models.foreign import SHOWN, Found, read_weights, some, take, telling

RANDOM = (
    "The weights are random. Nothing here was learned: these maps show what the architecture does "
    "to a photograph by itself."
)
AS_RETURNED = "weights: as the function returned them"
ANSWERS = 5  # seconds for the hub of weights to say a word


def any_model(options: argparse.Namespace) -> tuple[nn.Module, str]:
    """The model of ``--timm`` or ``--model``, in evaluation mode, and what its weights are."""
    if options.random and options.weights:
        raise ValueError("--random and --weights exclude each other; leave one out")
    if options.random and options.model:
        raise ValueError("--random belongs to --timm; with --model the function says the weights")
    torch.manual_seed(0)
    found = None if options.weights is None else read_weights(Path(options.weights))
    model = _of_timm(options, found) if options.timm else _of_file(options.model)
    if found is not None:
        state, notes = take(found, model.state_dict(), options.weights)
        with telling(notes):
            notes = notes + load_whole(model, state, options.weights)
        if options.timm:
            notes += of_other_timm(options.timm, Path(options.weights))
        words = [f"weights from {Path(options.weights).name}", *notes]
        return model.eval(), "; ".join(words).replace(options.weights, Path(options.weights).name)
    if options.model:
        return model.eval(), AS_RETURNED
    return model.eval(), "random weights" if options.random else "timm's pretrained weights"


def load_whole(model: nn.Module, state: dict[str, Tensor], path: str) -> list[str]:
    """All weights or none: what is missing would stay random without a word.

    Positions of timm's models for another image size are resampled, as timm does it; whatever else
    it would change without a word (kernels of another patch size, names) is refused.

    Returns:
        One sentence for each part that was adapted.

    Raises:
        ValueError: Tensors are missing, unknown, of another shape or not finite.
    """
    own, state = model.state_dict(), dict(state)
    notes = drop_idle(state, own)
    fit = getattr(sys.modules.get(type(model).__module__), "checkpoint_filter_fn", None)
    if fit and _of_another_grid(state.get("pos_embed"), own.get("pos_embed")):
        table = state["pos_embed"]
        try:
            state["pos_embed"] = fit(dict(state), model)["pos_embed"]
        except Exception:  # of timm, whose functions expect their own files
            raise ValueError(f"{path} cannot be fitted: {_no_grid(model, table)}") from None
        old, new = table.shape[1], state["pos_embed"].shape[1]
        notes += [f"positions resampled from {old} to {new} tokens"]
    for what, names in (
        ("lacks", [name for name in own if name not in state]),
        ("has, unknown to the model,", [name for name in state if name not in own]),
    ):
        if names:
            held = f"; it has {some(state)}" if what == "lacks" else ""
            raise ValueError(f"{path} {what} {some(names)}{held}")
    wrong: dict[str, list[str]] = {}
    for name, tensor in state.items():
        wrong.setdefault(unfit(tensor, own[name]), []).append(name)
    if sentences := [f"{why} in {some(names)}" for why, names in wrong.items() if why]:
        raise ValueError(f"{path} {some(sentences)}")
    model.load_state_dict(state)
    return notes + unwritten(state)


def _of_another_grid(theirs: Tensor | None, ours: Tensor | None) -> bool:
    """Whether tables of positions differ in no more than the number of their patches."""
    if theirs is None or ours is None or theirs.ndim != ours.ndim:
        return False
    return theirs.shape != ours.shape and (ours.ndim != 3 or theirs.shape[2] == ours.shape[2])


def _no_grid(model: Any, table: Tensor) -> str:
    """Why timm does not resample a table of positions."""
    first = 0 if getattr(model, "no_embed_class", False) else getattr(model, "num_prefix_tokens", 0)
    theirs, ours = tuple(table.shape), tuple(model.pos_embed.shape)
    return (
        f"pos_embed has the shape {theirs}, the model needs {ours}; timm resamples it where, "
        f"behind {first} for the tokens before the patches, it has as many rows as a square"
    )


def _of_timm(options: argparse.Namespace, found: Found | None) -> nn.Module:
    changed: dict[str, Any] = {} if options.size is None else {"img_size": options.size}
    try:
        wanted = found is None and not options.random
        model = timm_model(options.timm, pretrained=wanted, **changed)
    except ValueError as error:
        advice = "" if options.random else ", or --random to see it untrained"
        raise ValueError(f"{error}{advice}") from None
    if found is not None:
        state, _ = take(found, model.state_dict(), options.weights)
        heads = [state.get(f"{name}.weight") for name in classifiers(model)]
        head = heads[0] if heads else None
        if head is not None and head.ndim and len(head) != model.num_classes:  # fine-tuned
            return timm_model(options.timm, pretrained=False, num_classes=len(head), **changed)
    return model


def timm_model(name: str, **arguments: Any) -> Any:
    """What ``timm.create_model`` returns; ``img_size`` is left out where it changes nothing.

    Raises:
        ValueError: timm is missing, or cannot make it; the message says what timm said.
    """
    try:
        import timm
    except ImportError:
        raise ValueError("--timm needs timm, which is not installed: pip install timm") from None
    with _hub(wanted=arguments.get("pretrained", False)) as silent:
        try:
            return _created(timm, name, arguments)
        except Exception as error:  # of timm, of its hub, of the network: many kinds
            said = silent or shorten(str(error), 200, placeholder=" ...") or type(error).__name__
            raise ValueError(f"timm cannot make {name} ({said}); {_instead(timm, name)}") from None


def _instead(timm: Any, name: str) -> str:
    """What to say for a model that timm does not make."""
    name, _, tag = name.partition(".")
    if timm.is_model(name) and (not tag or name + "." + tag in timm.list_pretrained(f"{name}.*")):
        return "where its weights cannot be downloaded, say --weights FILE"
    known = timm.list_pretrained(f"{name}.*") or timm.list_models()
    near = get_close_matches(f"{name}.{tag}", known, SHOWN, 0)
    return f"the nearest that it has: {', '.join(near)}"


def _created(timm: Any, name: str, arguments: dict[str, Any]) -> Any:
    size, config = arguments.get("img_size"), timm.get_pretrained_cfg(name)
    others = {key: value for key, value in arguments.items() if key != "img_size"}
    if size is None or (config and tuple(config.input_size[1:]) == (size, size)):
        return timm.create_model(name, **others)
    try:
        return timm.create_model(name, **arguments)
    except TypeError as error:
        if "img_size" not in str(error) or (config and config.fixed_input_size):
            raise
        return timm.create_model(name, **others)  # convolutions take any size


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


def classifiers(model: Any) -> tuple[str, ...]:
    """The names of a timm model's heads; distilled ones have two."""
    names = model.pretrained_cfg.get("classifier") or ()
    return (names,) if isinstance(names, str) else tuple(names)


def _of_file(place: str) -> nn.Module:
    """The model that a function of somebody's file builds, "file.py:build"."""
    build = defined_in(place, "--model", "FUNCTION")
    model = build()
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"--model: {place.rpartition(':')[2]}() must return a torch.nn.Module, got {model!r}"
        )
    if any(weight.is_meta for weight in model.parameters()):
        raise ValueError(
            f"--model: {place} gives weights on the device meta, which holds no numbers"
        )
    return model
