"""Files that are whole or not there at all."""

import os
from pathlib import Path

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
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name has to reach the disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
