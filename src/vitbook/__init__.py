"""vitbook: the package behind the course *Attention, Patch by Patch*."""

from importlib.metadata import version

__version__ = version("vitbook")
