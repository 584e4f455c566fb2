"""The number of a chapter, as a word: "2", or "2b" for one that shares it; and numbers in prose."""

import re

PATTERN = r"\d+[a-z]?"
TITLE = re.compile(rf"{PATTERN}\. ")
# In prose: one with a fraction or a percentage.
NUMBER = re.compile(
    r"(?P<before>(?:[Ss]ections?|[Cc]hapters?|[Ff]igures?|[Tt]ables?|[Vv]ersions?|[Pp]arts?|arXiv:"
    r"|Python|PyTorch|CC BY|§)\s*)?"
    r"(?P<number>\d[\d,]*\.\d+(?:\s?%)?|\d[\d,]*\s?(?:%|percent\b|per cent\b))"
)
# Numbers that nothing computes: the level of an interval, the whole of something.
DEFINED = {"95 %", "100 %", "0 %", "50 %"}


def is_numbered(title: str) -> bool:
    """Does a title begin with a number, like "2b. What a map does not say"?"""
    return TITLE.match(title) is not None
