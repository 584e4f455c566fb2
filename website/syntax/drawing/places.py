"""Where the drawings have a chapter: what its page says in front.

    map: the whole model, looked into | all | model | look inside

are the words beside the strip "you are here", the parts of the strip that are coloured (some of
``WHOLE``, or ``all``), the row of links on the first page, and what the link says. In a row the
chapters stand as in ``_toc.yml``. Those of ``DRAWN`` have links at parts of the drawing instead:
their lines end with the parts.
"""

from dataclasses import dataclass

# Rows of links, from above: about attention alone, the whole model, what takes attention's place
ROWS = ("attention", "model", "relatives", "yours")
WHOLE = ("image", "linear", "token", "positions", "norm", "attention", "mlp", "head")
DRAWN = ("preview", "patches", "classifier", "positions", "block", "weight_sharing")


@dataclass(frozen=True)
class Place:
    """Where a chapter is: parts of the strip, the words for them, and its link in a row."""

    parts: tuple[str, ...]
    words: str
    row: str = ""
    label: str = ""


def read_place(chapter: str, line: object) -> Place:
    """Read what the page of a chapter says in front.

    Raises:
        ValueError: It does not say where the drawings have the chapter.
    """
    drawn = chapter in DRAWN
    match [one.strip() for one in str(line or "").split("|")]:
        case [words, of, *link] if len(link) == (0 if drawn else 2) and all((words, *link)):
            parts = WHOLE if of == "all" else tuple(of.split())
            if parts and {*parts} <= {*WHOLE} and (drawn or link[0] in ROWS):
                return Place(parts, words, *link)
    form = "words | parts" if drawn else "words | parts | row | what its link says"
    rows = "" if drawn else f", the row one of {', '.join(ROWS)}"
    raise ValueError(
        f"the drawings of {chapter} need a line in its front matter, map: {form}; "
        f"parts are all, or some of {', '.join(WHOLE)}{rows}: {line!r}"
    )


def in_row(places: dict[str, Place], row: str) -> list[tuple[str, str]]:
    """The chapters of a row, in the book's order, and what their links say."""
    return [(chapter, place.label) for chapter, place in places.items() if place.row == row]
