"""vitbook: the package behind the course *Attention, Patch by Patch*."""

__version__ = "0.1.0"
