"""What draws the figures of the book's pages: one module for each page, called like it.

They lie beside the pages, in ``book/figures``; in an installed package they lie here.
"""

from pathlib import Path

_beside_the_pages = Path(__file__).parents[3] / "book" / "figures"
if _beside_the_pages.is_dir():
    __path__.append(str(_beside_the_pages))
