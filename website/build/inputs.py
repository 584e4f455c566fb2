"""What a step of the build was made from: files with a hash of their bytes, never their dates."""

import hashlib
import sys
from pathlib import Path

IGNORED = {"__pycache__", ".ipynb_checkpoints"}


def hashes(root: Path, names: list[str], folders: list[str]) -> dict[str, str]:
    """The named files and everything in the folders, each with the hash of its bytes."""
    files = [root / name for name in names]
    for folder in folders:
        files += sorted((root / folder).rglob("*"))
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file() and not IGNORED & set(path.parts) and path.suffix != ".pyc"
    }


def digest(files: dict[str, str]) -> str:
    """One digest over files and this Python."""
    lines = [sys.version, *(f"{name} {content}" for name, content in files.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
