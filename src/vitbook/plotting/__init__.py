"""Arrays in, figure out. Nothing here sees a model.

``show(fig, alt=..., caption=...)`` displays a figure; the other ``show_...`` functions return one.
Arrays may be NumPy arrays, tensors or nested lists.
"""

from vitbook.plotting.animation import animation_html, show_animation
from vitbook.plotting.attention import show_attention, show_rollout
from vitbook.plotting.colormaps import ATTENTION, SIGNED
from vitbook.plotting.curves import label_ends
from vitbook.plotting.display import figure_html, figure_png, show
from vitbook.plotting.images import show_images, show_patches
from vitbook.plotting.style import COLORS, FAINT, INK, MODEL_COLORS, style, use_style
from vitbook.plotting.tensors import ROLE_COLORS, draw_tensor

__all__ = [
    "ATTENTION",
    "COLORS",
    "FAINT",
    "INK",
    "MODEL_COLORS",
    "ROLE_COLORS",
    "SIGNED",
    "animation_html",
    "draw_tensor",
    "figure_html",
    "figure_png",
    "label_ends",
    "show",
    "show_animation",
    "show_attention",
    "show_images",
    "show_patches",
    "show_rollout",
    "style",
    "use_style",
]
