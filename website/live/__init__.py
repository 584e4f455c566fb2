"""Live figures: of each, side by side, its scripts, its style, and what makes its data.

``NAME.js`` is the figure, ``NAME.css`` its style where it has one, and ``name.data()`` what the
script reads: written from the records while the pages are (website/syntax/live.py), and never
committed. ``kit.js`` and ``live.css`` are what all figures share, ``pack`` what the data do.
"""
