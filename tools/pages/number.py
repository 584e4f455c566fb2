"""The number of a chapter: 2, or 2b for one that stands behind 2 and before 3."""

from __future__ import annotations

import re

PATTERN = r"(\d+)([a-z]?)"  # a number, and its letter
TITLE = re.compile(rf"{PATTERN}\. ")


class Lettered(float):
    """A number with a letter, written 2b. It sorts behind 2 and before 3."""

    def __new__(cls, number: int, letter: str) -> Lettered:
        made = super().__new__(cls, number + (ord(letter) - ord("a")) / 26)
        made.parts = number, letter
        return made

    parts: tuple[int, str]

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]
        return self.parts  # Sphinx keeps numbers of exercises in a file

    def __str__(self) -> str:
        number, letter = self.parts
        return f"{number}{letter}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


Number = int | Lettered


def read_number(words: str) -> Number | None:
    """2 of "2", 2b of "2b", and None of anything else."""
    match = re.fullmatch(PATTERN, words)
    return match and number_of(match)


def number_of(match: re.Match) -> Number:
    """The number in the first two groups of what PATTERN has found."""
    return Lettered(int(match[1]), match[2]) if match[2] else int(match[1])


def titled(title: str) -> Number | None:
    """The number that a title begins with, like "2b. What a map does not say"."""
    match = TITLE.match(title)
    return match and number_of(match)
