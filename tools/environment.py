"""Create the book's environment in .venv: exactly the versions of requirements.txt.

    python3 tools/environment.py               (make install)
    python3 tools/environment.py --torch cpu   (make install TORCH=cpu)

Needs Python 3.11 and nothing else. A stamp keeps the digest of what was installed, so that a
second call returns at once; while an install runs it says "unfinished", so that one that was
interrupted is done again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GRADER = Path("src/gradebox")  # a distribution of its own
OLDEST = (3, 11)
DISK = {"default": 7, "cpu": 3}  # GB that the environment takes
# In the lock only because torch from the registry is built with CUDA on Linux.
CUDA = re.compile(r"^(nvidia-|cuda-|triton==)")
TORCH = re.compile(r"^(torch|torchvision)==")


class InstallError(Exception):
    """Something the reader has to do before the environment can be made."""


def blocks(lock: str) -> list[str]:
    """The requirements of a lock file, each with its hashes."""
    return re.findall(r"^(?=[A-Za-z0-9])(?:[^\n]*\\\n)*[^\n]*", lock, flags=re.MULTILINE)


def split_for_cpu(lock: str) -> tuple[list[str], str]:
    """torch and torchvision as plain pins, and the rest of the lock without the CUDA libraries."""
    torch = [re.split(r"[ ;\\]", block)[0] for block in blocks(lock) if TORCH.match(block)]
    rest = [block for block in blocks(lock) if not TORCH.match(block) and not CUDA.match(block)]
    return torch, "\n".join(rest) + "\n"


def wanted(root: Path, torch: str) -> dict:
    """What the stamp says when the environment is as it should be."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "pyproject.toml", GRADER / "pyproject.toml"):
        digest.update((root / name).read_bytes())
    return {"digest": digest.hexdigest(), "torch": torch, "root": str(root)}


def found(venv: Path) -> dict:
    """What the stamp says; nothing when there is none or the environment does not start."""
    try:
        stamp = json.loads((venv / "environment.json").read_text())
        version = run_quietly(str(venv / "bin/python"), "-c", "import sys; print(sys.version)")
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    return stamp if version.strip() == stamp.pop("python", None) else {}


def claim(root: Path, venv: Path, begun: dict) -> None:
    """Say whose environment this is before there is one, so that an interrupted run knows it.

    Raises:
        InstallError: It is another's: one that this folder did not make is never removed.
    """
    if venv.is_symlink():
        raise InstallError(
            f"{venv} is a link to {os.readlink(venv)}, and what a link points to is never touched; "
            f"remove the link ('rm {venv}') and run make again"
        )
    stamp = venv / "environment.json"
    try:
        owner = json.loads(stamp.read_text()).get("root")
    except (OSError, ValueError, AttributeError):
        owner = None
    there = any(venv.iterdir()) if venv.is_dir() else venv.exists()
    if owner != str(root) and there:
        whose = f"was made for {owner}" if owner else "was not made by 'make install'"
        raise InstallError(
            f"{venv} {whose} and is not removed; if nothing needs it any more, "
            f"remove it ('rm -r {venv}') and run make again"
        )
    venv.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps(begun, indent=1))


def emptied(venv: Path) -> None:
    """Remove all but the claim."""
    for path in venv.iterdir() if venv.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "environment.json":
            path.unlink()


def write_stamp(venv: Path, state: dict) -> None:
    version = run_quietly(str(venv / "bin/python"), "-c", "import sys; print(sys.version)")
    part = venv / "environment.part"
    part.write_text(json.dumps({**state, "python": version.strip()}, indent=1))
    part.replace(venv / "environment.json")


def run(*command: str) -> None:
    print("+ " + " ".join(command), flush=True)
    subprocess.run(command, check=True)


def run_briefly(*command: str) -> None:
    """Run uv, and show what it says but for its list of a hundred packages."""
    print("+ " + " ".join(command[:4]) + " ...", flush=True)
    said = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if not line.startswith((" + ", " - ", " ~ ", " Downloaded ")):
                print(line, end="", flush=True)
    if process.returncode:
        print("".join(said), end="", flush=True)
        raise subprocess.CalledProcessError(process.returncode, command)


def run_quietly(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def as_root() -> list[str] | None:
    """What to put before a command so that it runs as root; None when that is not possible."""
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if works("sudo", "-n", "true") else None


def apt_install(*packages: str) -> bool:
    """Install Debian packages where that needs no question; says whether it was done."""
    prefix = as_root()
    if prefix is None or not shutil.which("apt-get"):
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *packages]):
        print("+ apt-get " + " ".join(command), flush=True)
        if subprocess.run([*prefix, "apt-get", *command], env=environment).returncode:
            return False
    return True


def pip_of(venv: Path, reuse: bool) -> list[str]:
    """Make an empty virtual environment, or ``reuse`` the one there is. Returns the command that
    runs a pip for it."""
    python = str(venv / "bin/python")
    if reuse and works(python, "-m", "pip", "--version"):
        return [python, "-m", "pip"]
    emptied(venv)
    if has_ensurepip() and works(sys.executable, "-m", "venv", str(venv)):
        return [python, "-m", "pip"]
    emptied(venv)
    # Debian keeps ensurepip in a package of its own; the system's pip can stand in.
    if works(sys.executable, "-m", "pip", "--version"):
        run(sys.executable, "-m", "venv", "--without-pip", str(venv))
        return [sys.executable, "-m", "pip", "--python", python]
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if apt_install(package):
        run(sys.executable, "-m", "venv", str(venv))
        return [python, "-m", "pip"]
    raise InstallError(f"Python's venv module is incomplete: run 'sudo apt install {package}'")


def has_ensurepip() -> bool:
    return importlib.util.find_spec("ensurepip") is not None


def install(
    root: Path, venv: Path, torch: str, pip: list[str], run: Callable[..., None] = run_briefly
) -> None:
    """Fill the environment from the lock, and put this checkout's packages into it."""
    lock = (root / "requirements.txt").read_text("utf8")
    python, uv = str(venv / "bin/python"), str(venv / "bin/uv")
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.txt"
        only_uv.write_text(next(block for block in blocks(lock) if block.startswith("uv==")))
        run(*pip, "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(only_uv))
        into = [uv, "pip", "install", "--python", python]
        if torch == "cpu":
            pins, rest = split_for_cpu(lock)
            without_cuda = Path(folder) / "requirements.txt"
            without_cuda.write_text(rest)
            print("torch for the CPU comes from PyTorch's own index: without the lock's hashes.")
            run(*into, "--torch-backend", "cpu", "--no-deps", *pins)
            run(*into, "--no-deps", "--require-hashes", "-r", str(without_cuda))
        else:
            run(*into, "--require-hashes", "-r", str(root / "requirements.txt"))
        ours = ["-e", str(root), "-e", str(root / GRADER)]
        run(*into, "--no-deps", "--no-build-isolation", *ours)


def ensure(root: Path, venv: Path, torch: str | None, verbose: bool = False) -> bool:
    """Make the environment unless it is as wanted; says whether there was anything to do.

    Without a word on ``torch``, what is there stays: the CPU build is chosen once.

    Raises:
        InstallError: What is there is a link, or belongs to another folder.
    """
    stamp = found(venv)
    torch = torch or stamp.get("torch", "default")
    target = wanted(root, torch)
    if stamp == target:
        return False
    begun = {**target, "digest": "unfinished"}
    # Another torch needs a fresh start; new versions do not.
    reuse = {**stamp, "digest": "unfinished"} == begun
    claim(root, venv, begun)
    free = shutil.disk_usage(root).free / 1e9
    print(f"Setting up {venv}: about {DISK[torch]} GB on disk, {free:.0f} GB are free.", flush=True)
    pip = pip_of(venv, reuse)
    write_stamp(venv, begun)
    install(root, venv, torch, pip, run if verbose else run_briefly)
    write_stamp(venv, target)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", choices=sorted(DISK), help="cpu: without the CUDA libraries")
    parser.add_argument("--verbose", action="store_true", help="all that uv says")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        raise SystemExit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}.")
    try:
        ensure(ROOT, options.venv.absolute(), options.torch, options.verbose)
    except InstallError as error:
        raise SystemExit(f"make install: {error}") from None
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd[:4]))
        raise SystemExit(f"make install: '{command} ...' failed (above); run make again.") from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
