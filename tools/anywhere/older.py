"""An environment like the book's with the torch that Colab has, in ``.venv-older``.

python -m tools.anywhere.older
"""

import hashlib
import re
import shutil
import subprocess
import sys

from tools.anywhere.runs import OLDER, ROOT, older_python

TORCH = ("torch==2.11.*", "torchvision==0.26.*")  # mid-2026
OWN = r"^(torch|torchvision|triton|setuptools|nvidia-[\w-]+|cuda-[\w-]+)=="  # with each torch


def main() -> None:
    """Make it, or leave it where the lock is still the same."""
    lock = (ROOT / "requirements.txt").read_text("utf8")
    python = older_python()
    folder = python.parents[1]
    stamp = folder / "made-from.txt"
    digest = hashlib.sha256("\n".join([lock, sys.version, *TORCH]).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(folder)], check=True)
    pinned = re.findall(r"^([\w.-]+==[^\s\\]+(?: ; [^\\]+)?)", lock, re.MULTILINE)
    wanted = folder / "requirements.txt"
    wanted.write_text("\n".join([*(one for one in pinned if not re.match(OWN, one)), *TORCH]))
    subprocess.run([*uv, "pip", "install", "--python", str(python), "-r", str(wanted)], check=True)
    ours = ["--no-deps", "--no-build-isolation", "-e", str(ROOT), "-e", str(ROOT / "src/gradebox")]
    subprocess.run([*uv, "pip", "install", "--python", str(python), *ours], check=True)
    stamp.write_text(digest)
    print(f"{OLDER}: in {folder}")


if __name__ == "__main__":
    main()
