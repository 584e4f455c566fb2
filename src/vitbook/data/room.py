"""Pictures by the thousand: room for their pixels, and normalised a batch at a time."""

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitbook.data.transforms import normalize

CGROUP = Path("/sys/fs/cgroup")  # what a container says of itself
SHARE = 0.5  # of the free memory that pictures may take; the training needs some, too


class NormalizedImages:
    """Images in bytes that are normalised where a batch of them is asked for.

    A part of them is such a thing again, ``images[index].to(device)`` is a tensor as
    :func:`~vitbook.data.normalize` gives it: all at once they would take four times the memory.

    Args:
        pixels: uint8 (n, C, H, W).
        mean, std: One number for each channel, in the scale of [0, 1].
    """

    def __init__(self, pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> None:
        self.pixels, self.mean, self.std = pixels, mean, std

    @property
    def shape(self) -> torch.Size:
        return self.pixels.shape

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: Tensor | slice) -> "NormalizedImages":
        return NormalizedImages(self.pixels[index], self.mean, self.std)

    def to(self, device: torch.device | str) -> Tensor:
        """All of them: float (n, C, H, W)."""
        return normalize(self.pixels, self.mean, self.std).to(device)


Images = Tensor | NormalizedImages


def room(shape: Sequence[int]) -> tuple[Tensor, str | None]:
    """Where pixels uint8 of this shape fit: in memory, or else in a file that goes with them.

    Returns:
        The tensor, and a sentence if it lies in a file.

    Raises:
        ValueError: They fit into neither; the message says what is needed and what is free.
    """
    need, free = math.prod(shape), free_memory()
    if free is None or need <= SHARE * free:
        return torch.empty(*shape, dtype=torch.uint8), None
    folder = _folder()
    what = (
        f"{shape[0]:,} pictures of {shape[-1]} x {shape[-2]} pixels take {_megabytes(need)}, of "
        f"memory {_megabytes(free)} are free"
    )
    if need > (disk := shutil.disk_usage(folder).free):
        raise ValueError(
            f"{what} and in {folder} {_megabytes(disk)}: ask for smaller images (--image-size) "
            "or name a folder with more room (TMPDIR)"
        )
    with tempfile.TemporaryFile(dir=folder) as file:  # it goes when the last tensor of it goes
        pixels = torch.from_numpy(np.memmap(file, np.uint8, "w+", shape=tuple(shape)))
    return pixels, f"{what}: they lie in a file in {folder} as long as this command runs."


def free_memory() -> int | None:
    """Bytes that this process may still take, as its system and its container tell; or None."""
    found = []
    with contextlib.suppress(OSError, KeyError, ValueError):  # not of Linux
        told = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024 * int(told["MemAvailable"].split()[0]))
    with contextlib.suppress(OSError, KeyError, ValueError):  # no container, or one without a limit
        most, used = (int((CGROUP / f"memory.{word}").read_text()) for word in ("max", "current"))
        told = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        found.append(most - used + int(told["inactive_file"]))
    return max(0, min(found)) if found else None


def _folder() -> Path:
    """Where large files may lie for a while: /tmp is memory on some systems, /var/tmp never is."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
