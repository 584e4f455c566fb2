"""The live figures of the book's pages that run in a notebook, too (``vitbook.book.live``).

They lie in ``website/live``; in an installed package those that pyproject.toml names lie here.
"""

from pathlib import Path

_of_the_website = Path(__file__).parents[3] / "website" / "live"
if _of_the_website.is_dir():
    __path__.append(str(_of_the_website))
