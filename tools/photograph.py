"""The photograph on the front page, without the library it comes with: importing scikit-learn takes
two seconds of each build."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from PIL import Image


def dahlia() -> Image.Image:
    """The whole of scikit-learn's ``flower.jpg``."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the photograph of the front page comes with scikit-learn")
    return Image.open(Path(found.origin).parent / "datasets" / "images" / "flower.jpg")
