"""scikit-learn's photographs, without the library they come with: importing it takes two seconds of
each build."""

from importlib.util import find_spec
from pathlib import Path

from PIL import Image


def photograph(name: str) -> Image.Image:
    """The whole of ``china.jpg`` (the temple) or ``flower.jpg`` (the dahlia)."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the photographs of the site come with scikit-learn")
    return Image.open(Path(found.origin).parent / "datasets" / "images" / name)


def dahlia() -> Image.Image:
    """The photograph on the front page."""
    return photograph("flower.jpg")
