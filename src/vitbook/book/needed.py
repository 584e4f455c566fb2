"""What the package needs beside itself: a notebook's first cell names what of it is missing.

Nothing here imports any of it.
"""

from __future__ import annotations

import importlib.util

# As Python calls it: as pip calls it.
NEEDED = {
    "torch": "torch",
    "torchvision": "torchvision",
    "matplotlib": "matplotlib",
    "einops": "einops",
    "sklearn": "scikit-learn",
    "scipy": "scipy",
    "PIL": "pillow",
    "safetensors": "safetensors",
    "tqdm": "tqdm",
}


def look_for(*more: str) -> None:
    """Look for all that the package needs, and for modules that this notebook needs besides.

    Raises:
        ModuleNotFoundError: Something is missing; the message is what to install.
    """
    wanted = NEEDED | {name: name for name in more}
    missing = [name for module, name in wanted.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ModuleNotFoundError("This notebook also needs: pip install " + " ".join(missing))
