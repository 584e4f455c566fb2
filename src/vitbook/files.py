"""Files that are whole or not there at all, and what a file of somebody's own defines."""

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECKPOINT = "vitbook checkpoint 1"  # the format that a checkpoint's metadata names


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader finds the old or the new one, whatever happens between.

    Raises:
        OSError: It could not be written (a full disk, say); the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if error.errno is not None:  # of the system, which names a file of ours that is gone
            error.filename = str(path)
        raise
    if os.name == "posix":  # the new name has to reach the disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def what_instead(path: Path) -> str:
    """What downloads leave in the place of a file, if it is that; else ""."""
    with open(path, "rb") as file:
        start = file.read(512).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not start.strip(b"\0"):
        return "it is empty" if not start else "it begins with zeros, as what was not all written"
    if start.startswith(b"version https://git-lfs"):
        return "it is a pointer of Git LFS; fetch the file itself with git lfs pull"
    if start[4:8] == b"ftyp" and re.search(b"he[iv][cxms]|mif1|msf1", start[8:32]):
        return "it is HEIC, as phones save it; save it as JPEG"
    if start[4:8] == b"ftyp":
        return "it is a film, perhaps; save frames of it as PNG"
    if start[128:132] == b"dicm":
        return "it is DICOM; save it as PNG"
    if start.startswith((b"<?xml", b"<svg")) and b"<svg" in start:
        return "it is a drawing (SVG); save it as PNG"
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<error")):
        return "it is a web page, of a login or an error perhaps; download the file itself"
    return ""


def ends_with_zeros(path: Path) -> bool:
    """Whether the last 4 KB hold nothing, as where a disk was full or a download broke off."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4096))
        return size >= 4096 and not file.read().strip(b"\0")


def utf8(name: str) -> str:
    """A name as the system's bytes say it in UTF-8, whatever the locale: what runs keep of it."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def local(name: str) -> str:
    """The name that :func:`utf8` has read, as this process calls it."""
    return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def printable(text: str) -> str:
    """The text as UTF-8 can hold it; of a file's name the bytes that are none as \\xNN."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def defined_in(place: str, option: str, kind: str) -> Callable[..., Any]:
    """What "file.py:name" names. The file is run, as Python runs what it imports; it may
    import what lies beside it.

    Args:
        place: The file and the name in it.
        option: What the user wrote it for, as the message says it.
        kind: "FUNCTION" or "CLASS".

    Raises:
        ValueError: No such file, or nothing of that name that can be called.
    """
    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(f"{option} must be FILE.py:{kind} of a file that exists, got {place}")
    spec = importlib.util.spec_from_file_location(f"vitbook_reads_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{option} must be FILE.py:{kind}, got {place}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where Python looks for what belongs to a class
    if (folder := str(Path(path).resolve().parent)) not in sys.path:
        sys.path.append(folder)  # at the end: it hides nothing
    spec.loader.exec_module(module)
    if not callable(found := getattr(module, name, None)):
        raise ValueError(f"{option}: {path} has no {kind.lower()} {name}")
    return found
