"""The folder of a run: metrics.csv and checkpoint.safetensors."""

import csv
import io
import json
import os
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from vitbook import require
from vitbook.data.room import Images
from vitbook.files import write_atomically
from vitbook.training import processes
from vitbook.training.batches import device_of
from vitbook.training.checkpoints import pack, restore, unpack
from vitbook.training.config import TrainConfig

CHUNK = 64  # images that are looked at together
# of metrics.csv, one row for each step
COLUMNS: tuple[str, ...] = ("step", "epoch", "seconds", "learning_rate", "loss", "grad_norm")
NO_ROW = (ValueError, TypeError, KeyError, csv.Error)  # of a line that was cut or overwritten
COLUMNS += ("val_loss", "val_accuracy")
HEADER = ",".join(COLUMNS).encode()
HELD = "{} already holds a run; go on with resume=True or choose another folder"


class RunFolder:
    """Where ``train`` writes, and from where it goes on after the process was killed.

    Args:
        path: The folder; it is made if it is missing.
        resume: Go on from the checkpoint in it, if there is one. Else a folder that holds a run
            is refused.
        checkpoint_every: Steps between checkpoints; once an epoch by default.

    Attributes:
        told: More that checkpoints are to keep beside the weights, as JSON can hold it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        resume: bool = False,
        checkpoint_every: int | None = None,
    ):
        self.path = Path(path)
        self.resume = require.truth("resume", resume)
        if checkpoint_every is not None:
            require.whole("checkpoint_every", checkpoint_every)
        self.checkpoint_every = checkpoint_every
        self.told: dict = {}
        self.checkpoint, self.metrics = (
            self.path / "checkpoint.safetensors",
            self.path / "metrics.csv",
        )
        self._claimed = False

    def require_free(self) -> None:
        """Refuse a folder that holds a run, unless it is resumed."""
        if self.metrics.exists() and not self.checkpoint.exists():
            with open(self.metrics, "rb") as file:
                start = file.read(len(HEADER))
            if not HEADER.startswith(start):
                raise ValueError(f"{self.metrics} is of no run: choose another folder")
        if not self.resume and (self.checkpoint.exists() or self.metrics.exists()):
            raise ValueError(HELD.format(self.path))

    def claim(self) -> None:
        """Make a free folder this run's; of two that begin at once one is refused."""
        self.require_free()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            self.metrics.touch(exist_ok=False)
        except FileExistsError:
            raise ValueError(HELD.format(self.path)) from None
        self._claimed = True

    def start(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        config: TrainConfig,
        images: Images,
        labels: Tensor,
    ) -> tuple[list[dict], int, float]:
        """Open the folder and, when resuming, put model and optimizer where the run stood.

        Returns:
            The rows of metrics.csv so far (in process 0), the steps done, the seconds they took.
        """
        self._state = model, optimizer
        self._notes = json.loads(
            json.dumps({"config": asdict(config), "data": fingerprint(images, labels)})
        )
        data = None
        if processes.rank() == 0:
            if not self.resume and not self._claimed:
                self.claim()
            self._claimed = False  # a second start is another run
            self.path.mkdir(parents=True, exist_ok=True)
            for half_written in self.path.glob(".*.tmp"):  # by a process that was killed
                half_written.unlink()
            data = self.checkpoint.read_bytes() if self.checkpoint.exists() else None
        data = processes.from_first(data, device_of(model))
        step, seconds = 0, 0.0
        if data is not None:
            tensors, notes = unpack(data, self.checkpoint)
            self._require_same(notes)
            restore(tensors, self.checkpoint, model, optimizer)
            step, seconds = notes["step"], notes["seconds"]
        if processes.rank() != 0:
            return [], step, seconds
        rows = self._read(step)
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(self.metrics, text.getvalue().encode())  # rows after the checkpoint go
        self._size = self.metrics.stat().st_size
        return rows, step, seconds

    def append(self, rows: list[dict]) -> None:
        """Add rows to metrics.csv; they are on the disk on return."""
        if processes.rank() != 0:
            return
        if self.metrics.stat().st_size != self._size:
            raise ValueError(
                f"{self.metrics} is written by another process, too, which goes on with the run; "
                "this one stops"
            )
        with open(self.metrics, "a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)
            file.flush()
            os.fsync(file.fileno())
            self._size = file.tell()

    def save(self, step: int, seconds: float) -> None:
        """Write the checkpoint of ``step`` steps; the one before stays until this one is whole."""
        if processes.rank() != 0:
            return
        notes = self._notes | self.told | {"step": step, "seconds": seconds}
        try:
            write_atomically(self.checkpoint, pack(*self._state, notes))
        except OSError as error:
            kept = f"the one before is whole; free space and resume {self.path}"
            kept = kept if self.checkpoint.exists() else "there was none before"
            kept = kept if self.path.exists() else "the folder was taken away"
            raise OSError(
                error.errno,
                f"the checkpoint of step {step} could not be written ({error.strerror}): {kept}",
            ) from error

    def _read(self, step: int) -> list[dict]:
        """The rows of the steps that the checkpoint has seen."""
        rows: list[dict] = []
        if step and self.metrics.exists():
            with open(self.metrics, newline="", encoding="utf-8") as file, suppress(*NO_ROW):
                for row in csv.DictReader(file):
                    if len(rows) == step:
                        break
                    rows.append({name: _number(name, row[name]) for name in COLUMNS})
        if [row["step"] for row in rows] != list(range(1, step + 1)):
            raise ValueError(
                f"{self.metrics} must hold the steps 1 to {step} of the checkpoint beside it; "
                "it was changed or is missing"
            )
        return rows

    def _require_same(self, notes: dict) -> None:
        there, here = notes["config"], self._notes["config"]
        other = [name for name in here if here[name] != there.get(name)]
        if other:
            differences = ", ".join(f"{n} was {there.get(n)}, now {here[n]}" for n in other)
            raise ValueError(
                f"config is not that of the run in {self.path}: {differences}; resume with the "
                "same settings or choose another folder"
            )
        if told := difference(notes["data"], self._notes["data"]):
            raise ValueError(f"images are not those of the run in {self.path}: {told}")


def fingerprint(images: Images, labels: Tensor) -> dict:
    """What tells one data set from another; "pictures" and "labelled" in whichever order."""
    crc, n, rows = 0, len(images), list[int]()
    for i in range(0, n, CHUNK):
        part = images[i : i + CHUNK].to("cpu").detach().contiguous().numpy()
        crc = zlib.crc32(part.data, crc)
        rows += [zlib.crc32(row.data) for row in part]
    told = labels.cpu().contiguous().numpy()
    crc = zlib.crc32(told.data, crc)
    both = (zlib.crc32(label.tobytes(), row) for label, row in zip(told, rows, strict=True))
    sums = {"pictures": sum(rows), "labelled": sum(both)}
    return {"shape": list(images.shape), "crc32": f"{crc:08x}"} | sums


def difference(old: dict, new: dict) -> str:
    """In what the images of one fingerprint are others than those of an older one, or ""."""
    other = [name for name in old if old[name] != new[name]]
    if not other:
        return ""
    shapes = [old.get("shape", new["shape"]), new["shape"]]
    then, now = (f"{n} of {' x '.join(map(str, size))}" for n, *size in shapes)
    if now == then:
        same = "the same in another order: were files renamed?"
        same = "the same with other labels" if "labelled" in other else same
        now = same if "pictures" in old and "pictures" not in other else "as many, but others"
    return f"{then} then, now {now}"


def _number(name: str, text: str) -> int | float | None:
    return None if text == "" else int(text) if name in ("step", "epoch") else float(text)
