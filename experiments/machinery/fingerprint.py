"""What an experiment's numbers depend on: its script and the first-party modules it reaches."""

from __future__ import annotations

import hashlib
from pathlib import Path

import vitbook
from tools.dependencies import Packages, code_hash, parsed

PACKAGE = Path(vitbook.__file__).parent
EXPERIMENTS = Path(__file__).resolve().parents[1]


def fingerprint(script: Path) -> dict[str, str]:
    """Hash of the script and of each module of vitbook and of experiments/machinery it reaches.

    A hash covers what the code means: comments, layout and documentation do not count. The
    packages' own `__init__` (a version) are left out.

    Returns:
        File name ("digits.py", "vitbook/layers/attention.py") -> SHA-256, the script first.
    """
    packages = Packages([PACKAGE, EXPERIMENTS])
    reached = {packages.label(path): path for path in packages.closure(parsed(script))}
    for folder in packages.folders:
        reached.pop(f"{folder}/__init__.py", None)
    hashes = {label: code_hash(path) for label, path in sorted(reached.items())}
    return {script.name: code_hash(script), **hashes}


def digest(hashes: dict[str, str]) -> str:
    """One short name for a whole fingerprint."""
    return hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()[:16]
