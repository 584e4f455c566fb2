"""Arrays in, figure out. Nothing here sees a model."""

from vitbook.plotting.display import figure_html, figure_png, show
from vitbook.plotting.style import COLORS, FAINT, INK, style, use_style

__all__ = [
    "COLORS",
    "FAINT",
    "INK",
    "figure_html",
    "figure_png",
    "show",
    "style",
    "use_style",
]
