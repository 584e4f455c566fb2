"""The number of a chapter, as a word: "2", or "2b" for one that shares it."""

import re

PATTERN = r"\d+[a-z]?"
TITLE = re.compile(rf"{PATTERN}\. ")


def is_numbered(title: str) -> bool:
    """Does a title begin with a number, like "2b. What a map does not say"?"""
    return TITLE.match(title) is not None
