"""Run one command; what goes wrong is told in a sentence."""

import argparse
import errno
import io
import logging
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from vitbook.command.idle import refuse_idle
from vitbook.command.parser import options_of, parser
from vitbook.data.folder_names import printed

STREAMS = {"stdout": "standard output", "stderr": "standard error"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; errors become one sentence and the exit code 2."""
    for name, called in STREAMS.items():
        if getattr(sys, name) is None:  # closed: what is said is lost, what is trained is not
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name it lacks stops nothing
            _name_errors(stream, called)
    options = parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    logging.getLogger("PIL").setLevel(logging.CRITICAL)  # what it could not read has a note
    try:
        refuse_idle(options)
        command = import_module(f"vitbook.command.{options.command}")  # read when needed
        getattr(command, options.command)(options)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        print(f"vitbook: stopped; {_goes_on(options)}", file=sys.stderr)
        return 130
    except (ValueError, TypeError, ArithmeticError, OSError, RuntimeError) as error:
        if options.traceback or not (explained := _sentence(error, options)):
            raise
        print(f"vitbook: {explained}", file=sys.stderr)
        if (
            getattr(error, "filename", None) == STREAMS["stdout"]
        ):  # else it is told once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _name_errors(stream: Any, called: str) -> None:
    """Let errors carry the name of a stream that takes nothing, as they carry those of files."""

    def named(act: Callable, *arguments: str) -> Any:
        try:
            return act(*arguments)
        except OSError as error:
            error.filename = called
            raise

    if not isinstance(stream.write, partial):  # else it is done
        stream.write, stream.flush = partial(named, stream.write), partial(named, stream.flush)


def _goes_on(options: argparse.Namespace) -> str:
    """How what was stopped goes on."""
    if options.command == "compare":
        return "the same command goes on, no finished training is lost"
    if options.command == "train" and os.path.exists(f"{options.out}/run.json"):
        return "train --resume goes on from the last checkpoint"
    return "nothing was kept"


def _sentence(error: Exception, options: argparse.Namespace) -> str:
    """What to tell the user; empty for an error that only its traceback explains."""
    text, goes_on = str(error), _goes_on(options)
    if isinstance(error, BrokenPipeError):
        text = f"what it printed into was closed; {goes_on}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        full = error.errno in FULL and "out" in options
        if full and error.strerror == os.strerror(error.errno or 0):
            text = f"{error.filename or options.out} could not be written: {error.strerror}; free "
            text += "space and run it again"
            text += ", with --resume" if options.command == "train" else ""
    if isinstance(error, RuntimeError):
        compiler = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
        if isinstance(error, torch.OutOfMemoryError):
            text = f"{text.split('. ')[0]}; a smaller --batch-size or --device cpu may help"
        elif isinstance(error, dist.DistError) or ("RANK" in os.environ and "gloo" in text):
            text = f"another process ended or cannot be reached; {goes_on}"
        elif "can't allocate memory" in text:
            text = (
                "there is less memory than this needs: ask for smaller sizes, or for less at once"
            )
        elif compiler and getattr(options, "compile", False):
            text = f"torch.compile failed ({text.strip().splitlines()[0]}); leave --compile out"
        else:
            return ""
    if options.command == "attention":
        text = _as_options(text)
    where = f"process {os.environ['RANK']}: " if "RANK" in os.environ else ""
    for option in options_of(options.command):  # the package says batch_size and resume=True
        name = option.strip("-").replace("-", "_")
        text = text.replace(f"{name}=True", option)
        if "_" in name:  # no word of English; beside / or as a part of one it is of a path
            text = re.sub(rf"(?<![\w/]){name}=", f"{option} ", text)
            text = re.sub(rf"(?<![\w/]){name}(?![\w/])", option, text)
    return printed(where + " ".join((text or type(error).__name__).split()))


def _as_options(advice: str) -> str:
    """What the package advises who calls it, as this command takes it."""
    names = re.search(r"attention_maps\(model, images, layers=(\[.*?\]|'.*?')\)", advice)
    patterns = ",".join(re.findall("'(.*?)'", names[1])) if names else ""
    text = advice.replace(names[0], f"--layers '{patterns}'") if names else advice
    numbers = r"\b(mean|std|size)=\(?([\d., ]*\d)\)?"
    text = re.sub(numbers, lambda x: f"--{x[1]} {x[2].replace(' ', '')}", text)
    return text.replace("; verify=False does not ask", "").replace("layers=...", "--layers")
