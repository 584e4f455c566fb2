"""How long the pages are: words, visible code, figures, and the minutes that they take.

Read: what stands outside the exercises, at 140 words and 8 lines of visible code a minute, and
besides half a minute for a figure, one for a claim or a prediction, one and a half for a table and
two for a live figure.
Words that are folded in a box count as well: folding makes no page shorter. Code that is folded
(website/pages/cells.py) proves and does not teach: it takes no time. Do: the minutes that the
exercises name. Both are shown to the nearest five, reading between five and ten to the minute.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from website.pages.cells import TABLE, parts, settles, shows_table
from website.pages.docstrings import parted
from website.pages.include import included
from website.pages.myst import PageError, Piece, substitute
from website.pages.source import Chapter, Item, read_chapter

WORDS_A_MINUTE = 140
LINES_A_MINUTE = 8
MINUTES = {"figures": 0.5, "tables": 1.5, "claims": 1, "predictions": 1, "lives": 2}
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
RULER = re.compile(r"^\|(?: *:?-+:? *\|)+ *$", re.MULTILINE)  # the second line of a table
WORD = re.compile(r"\w[\w'’.,-]*")
NAMED = re.compile(r"^\*Difficulty[^*]*?(\d+) minutes", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """What stands on one page."""

    words: int
    code: int  # visible lines that are not blank
    figures: int
    tables: int
    claims: int
    predictions: int
    exercises: int
    exercise_minutes: int
    lives: int = 0  # live figures

    @property
    def minutes(self) -> float:
        """Minutes of reading, as they are counted."""
        words, code = self.words / WORDS_A_MINUTE, self.code / LINES_A_MINUTE
        return words + code + sum(getattr(self, what) * each for what, each in MINUTES.items())

    @property
    def read(self) -> int:
        """Minutes of reading, as they are shown."""
        minutes = self.minutes
        return math.ceil(minutes) if 5 < minutes < 10 else _fives(minutes)

    @property
    def do(self) -> int:
        """Minutes of exercises."""
        return _fives(self.exercise_minutes)

    def __str__(self) -> str:
        return f"Read {self.read} minutes" + (f", do {self.do} minutes" if self.do else "")


def _fives(minutes: float) -> int:
    """To the nearest five; what takes any time at all takes five."""
    return max(5, 5 * round(minutes / 5)) if minutes else 0


def count(chapter: Chapter, part: Sequence[Item] | None = None) -> Counts:
    """Count one page, or some of its items. Exercises and solutions take the minutes that they
    name, and no others."""
    there = chapter.items if part is None else part
    items = [item for item in there if not item.gate]
    cells = [item for item in items if item.kind == "cell"]
    asked = [item.text for item in there if item.gate == "exercise"]
    kinds = [item.text for item in there if item.kind == "directive"]
    return Counts(
        words=sum(_words(item) for item in items),
        code=sum(_lines(chapter, item) for item in items),
        figures=sum(len(re.findall(r"\bshow\(", cell.text)) for cell in cells)
        + len([item for item in items if item.text == "figure"]),
        tables=sum(_tables(item) for item in items),
        claims=kinds.count("claim"),
        predictions=kinds.count("predict"),
        lives=kinds.count("live"),
        exercises=kinds.count("exercise-start"),
        exercise_minutes=sum(int(found) for text in asked for found in NAMED.findall(text)),
    )


def sections(chapter: Chapter) -> list[tuple[float, int]]:
    """The minutes of reading that are shown, shared out, and those of exercises: before the first
    section, and for each."""
    cuts = [
        at for at, item in enumerate(chapter.items) if item.kind == "heading" and item.level == 2
    ]
    ends = [*cuts, len(chapter.items)]
    parts = [chapter.items[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    counted = [count(chapter, part) for part in parts]
    share = count(chapter).read / (sum(one.minutes for one in counted) or 1)
    return [(share * one.minutes, one.do) for one in counted]


def _words(item: Item) -> int:
    """A formula, a glued number and a citation are a word each."""
    if item.kind == "directive":
        said = item.directive.options.get("says", "") if item.text == "claim" else ""
        return len(said.split())
    if item.kind not in {"text", "heading"}:
        return 0
    return len(WORD.findall(substitute(item.text, _plain)))


def _plain(piece: Piece) -> str:
    if piece.kind == "role" and piece.name != "chapter" and piece.content.endswith(">"):
        return piece.words  # "chapter 5" is a word, as a citation is
    return "word" if piece.kind in {"role", "code", "math", "block"} else " "


def _tables(item: Item) -> int:
    """Tables that a cell shows or that are written out; lists of the whole book are not read."""
    if item.kind == "cell":
        return len(re.findall(rf"\b{TABLE}\(", item.text))
    if item.kind == "directive":
        return int(item.text == "list-table")
    return len(RULER.findall(item.text)) if item.kind == "text" else 0


def seen_code(chapter: Chapter, cell: Item) -> str:
    """What the page shows of a cell's code without a click; exercises show all of it."""
    if HIDDEN & cell.directive.tags:
        return ""
    if cell.gate:
        return cell.text
    hidden = shows_table(cell.text) or (settles(cell.text) and _follows_claim(chapter, cell))
    return "" if hidden else parts(cell.text).shown


def _follows_claim(chapter: Chapter, cell: Item) -> bool:
    """Is there nothing between a claim and the cell?"""
    before = chapter.items[: chapter.items.index(cell)]
    claims = [item for item in before if item.text == "claim" and item.kind == "directive"]
    if not claims:
        return False
    end = claims[-1].directive.body_line + len(claims[-1].directive.body)
    return all(item.line <= end for item in before)


def _lines(chapter: Chapter, item: Item) -> int:
    if item.kind == "cell":
        return _not_blank(seen_code(chapter, item))
    if item.kind != "directive" or item.text not in {"literalinclude", "code-block"}:
        return 0
    if item.text == "code-block":
        return _not_blank(item.directive.text)
    try:
        code, options = included(item.directive)
        return _not_blank(parted(code)[0] if "pyobject" in options else code)
    except (KeyError, ValueError, OSError) as error:
        raise PageError(chapter.page.path, item.line, f"{{{item.text}}}: {error}") from error


def _not_blank(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())


@lru_cache
def count_file(path: Path) -> Counts:
    """Count the page in one file."""
    return count(read_chapter(path.stem, path))


def hours(paths: list[Path]) -> str:
    """Reading and exercises of several pages together, to the nearest half hour."""
    counted = [count_file(path) for path in paths]
    return f"{max(1, round(sum(one.read + one.do for one in counted) / 30)) / 2:g}"
