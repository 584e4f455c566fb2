"""MNIST, Fashion-MNIST and CIFAR-10 through torchvision, with errors that say what to do."""

import gzip
import hashlib
import math
import os
import socket
import zlib
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch

from vitbook import require
from vitbook.data.splits import PARTS, ImageSet, part_of_training

SETS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST", "cifar10": "CIFAR10"}
SECONDS_WITHOUT_ANSWER = 30


class DataError(OSError):
    """A data set is missing, damaged or out of reach; the message says what to do."""


def load_torchvision(
    name: str,
    root: str | os.PathLike,
    part: str = "trainval",
    *,
    download: bool = False,
    mirror: str | None = None,
) -> ImageSet:
    """One part of MNIST, Fashion-MNIST or CIFAR-10, whole in memory.

    The files lie in ``root`` as torchvision puts them there (``MNIST/raw``, ``FashionMNIST/raw``,
    ``cifar-10-batches-py``) and are checked at each load. "test" are the official test images,
    "trainval" the official training images; "validation" is a tenth of each class of these, always
    the same, and "train" the rest of them.

    Args:
        name: "mnist", "fashion-mnist" or "cifar10".
        root: Folder of the data sets.
        part: "train", "validation", "trainval" or "test".
        download: Whether to fetch what is missing or damaged; the folder is made if need be.
        mirror: Address of a folder that holds the same archives, instead of the official ones.

    Returns:
        Images uint8 (n, 1, 28, 28) or (n, 3, 32, 32) and labels (n,) in 0 ... 9.

    Raises:
        ValueError: No such name or part.
        DataError: The folder or a file is missing or damaged, or cannot be fetched or unpacked.
    """
    require.one_of("name", name, tuple(SETS))
    require.one_of("part", part, PARTS)
    require.truth("download", download)
    from torchvision import datasets  # here, because it takes as long to import as torch

    dataset, root = _at_mirror(getattr(datasets, SETS[name]), mirror), Path(root).expanduser()
    folder = root / dataset.__name__ / "raw"
    find_problem = _cifar_problem if name == "cifar10" else _mnist_problem
    if name == "cifar10":
        folder = root / dataset.base_folder
    if not root.is_dir() and not download:
        raise DataError(
            f"the data folder {root} does not exist: name the folder that holds {name}, or fetch "
            "it there with download=True"
        )
    if download and find_problem(dataset, root, folder):
        _fetch(dataset, root, folder, name)
    problem = find_problem(dataset, root, folder)
    if problem:
        raise DataError(
            f"{problem}: delete it and fetch {name} again with download=True"
            if "is missing" not in problem
            else f"{problem}: fetch {name} with download=True, or name another root"
        )
    try:  # download=True only unpacks here: every archive was found whole, or is not needed
        loaded = dataset(str(root), train=part != "test", download=True)
    except OSError as error:
        raise DataError(f"{name} cannot be unpacked in {root}: {error}") from error
    images = torch.as_tensor(loaded.data)  # (n, 28, 28) or (n, 32, 32, 3)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    whole = ImageSet(images, torch.as_tensor(loaded.targets))
    return whole if part == "test" else part_of_training(whole, part, 0.1, seed=1)


def _at_mirror(dataset: type[Any], mirror: str | None) -> type[Any]:
    """The torchvision class, or one of the same name that downloads from somewhere else."""
    if mirror is None:
        return dataset
    if not isinstance(mirror, str) or not mirror.startswith(("http://", "https://")):
        raise ValueError(f"mirror must be an address such as https://host/folder, got {mirror!r}")
    mirror = mirror.rstrip("/") + "/"
    if hasattr(dataset, "mirrors"):
        return type(dataset.__name__, (dataset,), {"mirrors": [mirror]})
    return type(dataset.__name__, (dataset,), {"url": mirror + dataset.filename})


def _fetch(dataset: type[Any], root: Path, folder: Path, name: str) -> None:
    """Let torchvision download; damaged unpacked files go first, else it would keep them."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_WITHOUT_ANSWER)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for archive, md5 in getattr(dataset, "resources", []):
            archive, raw = folder / archive, folder / Path(archive).stem
            bad_archive = archive.exists() and _archive_problem(archive, md5)
            if raw.exists() and (bad_archive or _raw_problem(raw, archive)):
                raw.unlink()
        dataset(str(root), download=True)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise _unreachable(dataset, folder, name, error) from error
    except RuntimeError as error:  # torchvision's, also for a checksum that does not fit
        damaged = (_cifar_problem if name == "cifar10" else _mnist_problem)(dataset, root, folder)
        if damaged and "is missing" not in damaged:
            raise DataError(
                f"{damaged} after the download: run it again, or name another mirror"
            ) from error
        raise _unreachable(dataset, folder, name, error) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name} cannot be written to {root}: {error}") from error
    finally:
        socket.setdefaulttimeout(before)


def _unreachable(dataset: type[Any], folder: Path, name: str, error: Exception) -> DataError:
    addresses = getattr(dataset, "mirrors", None) or [dataset.url]
    reason = " ".join(str(error).split())
    return DataError(
        f"{name} cannot be fetched from {' or '.join(addresses)} ({reason}): check the network, "
        f"name a mirror, or copy the files into {folder} by other means"
    )


def _mnist_problem(dataset: type[Any], root: Path, folder: Path) -> str | None:
    """What is wrong with the first file that is not as it should be."""
    for archive, md5 in dataset.resources:
        archive, raw = folder / archive, folder / Path(archive).stem
        if not archive.exists() and not raw.exists():
            return f"{archive} is missing"
        problem = archive.exists() and _archive_problem(archive, md5)
        problem = problem or (raw.exists() and _raw_problem(raw, archive))
        if problem:
            return problem
    return None


def _cifar_problem(dataset: type[Any], root: Path, folder: Path) -> str | None:
    archive = root / dataset.filename
    if not folder.exists() and archive.exists():
        return _archive_problem(archive, dataset.tgz_md5)
    meta = (dataset.meta["filename"], dataset.meta["md5"])
    for name, md5 in [*dataset.train_list, *dataset.test_list, meta]:
        path = folder / name
        if not path.exists():
            return f"{path} is missing"
        data = path.read_bytes()
        found = hashlib.md5(data).hexdigest()
        if found != md5:
            if not data.endswith(b"."):  # a whole pickle ends with its STOP sign
                return f"{path} is truncated ({len(data):,} bytes)"
            return f"{path} is damaged (MD5 {found}, expected {md5})"
    return None


def _archive_problem(path: Path, md5: str) -> str | None:
    found = hashlib.md5(path.read_bytes()).hexdigest()
    if found == md5:
        return None
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return f"{path} is truncated ({path.stat().st_size:,} bytes)"
    except (OSError, zlib.error):
        pass
    return f"{path} has the wrong checksum (MD5 {found}, expected {md5})"


def _raw_problem(raw: Path, archive: Path) -> str | None:
    """Compare an unpacked file with its own header and, if it is there, with its archive's end."""
    data = raw.read_bytes()
    axes = data[3] if len(data) > 3 else 0
    sizes = [int.from_bytes(data[4 * i : 4 * i + 4], "big") for i in range(1, axes + 1)]
    if axes == 0 or len(data) < 4 + 4 * axes + math.prod(sizes):
        return f"{raw} is truncated ({len(data):,} bytes)"
    if archive.exists() and zlib.crc32(data) != int.from_bytes(
        archive.read_bytes()[-8:-4], "little"
    ):
        return f"{raw} is damaged (its checksum is not that of {archive.name})"
    return None
