"""The bytes of one file that anybody may have put there: no link, no device, not without end."""

import os
import stat
from pathlib import Path
from typing import IO

MOST_BYTES = 30_000_000  # of one notebook: one full of pictures has 10 MB


class NotReadableError(Exception):
    """One file of one student cannot be read; the text says why."""


def read_file(path: Path) -> bytes:
    """The file itself: no link to another, no folder, no pipe that would be waited for.

    Raises:
        NotReadableError: It is none, cannot be opened, or is too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink():
            raise NotReadableError("this is a link to another file; links are not followed")
        with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadableError("this is no ordinary file")
            return limited(file)
    except OSError as error:
        raise NotReadableError(f"it cannot be read: {error.strerror}") from error


def limited(file: IO[bytes]) -> bytes:
    """All bytes, counted as they come: the size that an archive states may be a lie."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise NotReadableError(f"larger than {MOST_BYTES // 10**6} MB; clear its outputs")
    return data
