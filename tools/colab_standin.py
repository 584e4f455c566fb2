"""An environment that stands in for Colab: Colab's packages, and nothing of this project.

It lives in ``.venv-colab``, pinned by requirements.txt and made anew when that file changes.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

# What Colab has and the notebooks may use; ipykernel and pip are how it runs and installs.
PACKAGES = ["torch", "torchvision", "numpy", "matplotlib", "scikit-learn", "einops"]
PACKAGES += ["safetensors", "tqdm", "pandas", "timm", "ipykernel", "ipywidgets", "pip"]
DROPPED = ("PYTHON", "JUPYTER", "IPYTHON", "VIRTUAL_ENV", "CONDA", "VITBOOK", "MPL")


@contextmanager
def environment(root: Path) -> Iterator[Path]:
    """``.venv-colab`` without vitbook, for one user at a time; gives its Python.

    There is one environment, and proving installs into it: a second process waits here until the
    first has done. It is left without vitbook.
    """
    with FileLock(root / ".venv-colab.lock"):
        python = make_environment(root)
        try:
            yield python
        finally:
            uninstall(python)


def make_environment(root: Path) -> Path:
    """Create or reuse ``.venv-colab``, without vitbook. Returns its Python."""
    folder = root / ".venv-colab"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "made-from.txt"
    lock = root / "requirements.txt"
    parts = [hashlib.sha256(lock.read_bytes()).hexdigest(), sys.version, *PACKAGES]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        uv = [sys.executable, "-m", "uv", "--quiet"]
        _run([*uv, "venv", "--python", sys.executable, str(folder)])
        _run([*uv, "pip", "install", "--python", str(python), "-c", str(lock), *PACKAGES])
        stamp.write_text(digest)
    uninstall(python)
    return python


def uninstall(python: Path) -> None:
    """Leave the environment as Colab is: without the package."""
    _run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "vitbook"])


def freeze(python: Path) -> set[str]:
    """Every installed distribution, as pip lists it."""
    return set(_run([str(python), "-m", "pip", "freeze", "--all"]).splitlines())


def child_environment(python: Path, scratch: Path) -> dict[str, str]:
    """The variables of a notebook's process: one thread, no user settings.

    Args:
        python: The stand-in's Python.
        scratch: A temporary folder for configuration files.
    """
    kept = {key: text for key, text in os.environ.items() if not key.startswith(DROPPED)}
    return kept | {
        "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}",
        "PYTHONNOUSERSITE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "IPYTHONDIR": str(scratch / "ipython"),
        "MPLCONFIGDIR": str(scratch / "matplotlib"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
