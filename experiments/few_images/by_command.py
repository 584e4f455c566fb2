"""A folder of pictures, learned by the very command that a reader types."""

import argparse
import contextlib
import csv
import io
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from experiments.machinery.experiment import Log
from vitbook.book.records import FOLDER as RECORDED
from vitbook.command.cli import main
from vitbook.command.recipes import load_part
from vitbook.command.runs import stored_run, trained_model

WEIGHTS = RECORDED / "five_classes.safetensors"


def learned_by_command(photos: Path, options: list, seed: int, log: Log) -> tuple[Tensor, Tensor]:
    """Logits (n, K) of the trained model for the test pictures of the folder, and labels (n,)."""
    with tempfile.TemporaryDirectory() as place:
        words = ["train", "--data", "folder", "--root", photos, *options, "--no-progress"]
        with contextlib.redirect_stdout(io.StringIO()):
            if main([*map(str, words), "--seed", str(seed), "--out", place]) != 0:
                raise RuntimeError(f"the command refused {words}")
        out = Path(place)
        with open(out / "metrics.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                log(float(row["loss"]))
        model = trained_model(argparse.Namespace(run=out, device="cpu"))[2]
        images, labels = load_part(stored_run(out)["settings"], "test", str(photos))
        with torch.no_grad():
            return model(images.to("cpu")), labels
