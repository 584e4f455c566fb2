"""A table of results: one number bold, intervals grey, and what was not run in words."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any

from vitbook.book.intervals import Interval
from vitbook.plotting.caption import caption_html

Cell = str | float | Interval | None


@dataclass(frozen=True, repr=False)
class Table:
    """What ``show_table`` displays. Arguments and errors as there."""

    rows: Sequence[Sequence[Cell]]
    header: Sequence[str]
    caption: str
    best: str | None = None
    of: str | None = None
    formats: Mapping[str, str] | None = None
    missing: str = "not run"

    def __post_init__(self) -> None:
        if not self.rows or any(len(row) != len(self.header) for row in self.rows):
            wanted = f"{len(self.header)} cells, as the header has"
            raise ValueError(f"rows must be one or more, of {wanted}")
        if not self.caption.strip():
            raise ValueError("caption is empty; say in a sentence what the numbers are")
        if self.best is not None and self._bold() is None:
            names = ", ".join(repr(str(row[0])) for row in self.rows)
            raise ValueError(
                f"best must be 'max', 'min' or the name of a row ({names}) with a number in the "
                f"column of={self.of!r}, one of {list(self.header)}; got {self.best!r}"
            )
        unknown = set(self.formats or {}) - set(self.header)
        if unknown:
            raise ValueError(f"formats names columns that the header lacks: {sorted(unknown)}")

    def _repr_html_(self) -> str:
        wordy = [self._has_words(column) for column in range(len(self.header))]
        titles = "".join(
            f'<th scope="col" role="columnheader"{_class(words)}>{caption_html(title)}</th>'
            for title, words in zip(self.header, wordy, strict=True)
        )
        body = "".join(f'<tr role="row">{self._row(i, wordy)}</tr>' for i in range(len(self.rows)))
        return (
            '<div class="vitbook-table"><table class="vitbook-table" role="table">'
            f"<caption>{caption_html(self.caption)}</caption>"
            f'<thead role="rowgroup"><tr role="row">{titles}</tr></thead>'
            f'<tbody role="rowgroup">{body}</tbody></table></div>'
        )

    def __repr__(self) -> str:
        """The table for a terminal; what is bold in HTML has a star."""
        lines = [list(self.header)]
        for i, row in enumerate(self.rows):
            stars = ["*" if (i, column) == self._bold() else "" for column in range(len(row))]
            texts = [" ".join(self._text(cell, c)).strip() for c, cell in enumerate(row)]
            lines.append([text + star for text, star in zip(texts, stars, strict=True)])
        widths = [max(map(len, column)) for column in zip_longest(*lines)]
        joined = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([self.caption, "", *joined])

    def _row(self, i: int, wordy: list[bool]) -> str:
        name, *cells = self.rows[i]
        first = caption_html(" ".join(self._text(name, 0)).strip())
        parts = [f'<th scope="row" role="rowheader"{_class(wordy[0])}>{first}</th>']
        for column, cell in enumerate(cells, start=1):
            number, interval = self._text(cell, column)
            shown = caption_html(number)
            if (i, column) == self._bold():
                shown = f"<strong>{shown}</strong>"
            if cell is None:
                shown = f"<em>{shown}</em>"
            if self._has_intervals(column):  # an empty one keeps the numbers below each other
                shown += f" <small>{interval}</small>"
            title = html.escape(self.header[column].replace("$", ""))
            start = f'<td role="cell" data-of="{title}"{_class(wordy[column])}>'
            parts.append(f"{start}<span>{shown}</span></td>")
        return "".join(parts)

    def _text(self, cell: Cell, column: int) -> tuple[str, str]:
        """What stands in a cell, and the interval behind it."""
        if cell is None:
            return self.missing, ""
        if isinstance(cell, str):
            return cell, ""
        whole = isinstance(cell, Integral)
        spec = (self.formats or {}).get(self.header[column], "," if whole else ".1f")
        if isinstance(cell, Interval):
            mean, low, high = (_number(value, spec) for value in cell)
            return mean, f"{low} to {high}"
        return _number(cell, spec), ""

    def _has_words(self, column: int) -> bool:
        return all(isinstance(row[column], str) for row in self.rows)

    def _has_intervals(self, column: int) -> bool:
        return any(isinstance(row[column], Interval) for row in self.rows)

    def _bold(self) -> tuple[int, int] | None:
        """Row and column of the one bold number."""
        if self.best is None or (self.of is not None and self.of not in self.header):
            return None
        column = len(self.header) - 1 if self.of is None else list(self.header).index(self.of)
        values = {i: _value(row[column]) for i, row in enumerate(self.rows)}
        known = {i: value for i, value in values.items() if value is not None}
        named = [i for i in known if self.rows[i][0] == self.best]
        if named:
            return named[0], column
        if not known or self.best not in {"max", "min"}:
            return None
        chosen = {"max": max, "min": min}[self.best](known, key=known.__getitem__)
        return chosen, column


def show_table(
    rows: Sequence[Sequence[Cell]],
    *,
    header: Sequence[str],
    caption: str,
    best: str | None = None,
    of: str | None = None,
    formats: Mapping[str, str] | None = None,
    missing: str = "not run",
) -> None:
    """Display a table: HTML in the book, JupyterLab and Colab, text everywhere else.

    Args:
        rows: lists of cells. The first cell of each names the row; the others are words, numbers,
            an ``Interval`` (the mean, and behind it in grey from where to where), or None.
        header: a title for each column.
        caption: what the numbers are, of what and how many. Titles, words and caption may hold
            simple maths between dollar signs: ``$W_Q$``.
        best: which number is bold: "max", "min", or the name of a row; None for no one.
        of: the column that ``best`` speaks of, by its title; the last one by default.
        formats: title of a column -> how its numbers are written, ``{"gain": "+.2f"}``; by default
            whole numbers with commas, others with one decimal.
        missing: what is written for None.

    Raises:
        ValueError: the rows do not fit the header, the caption is empty, or ``best``, ``of`` or
            ``formats`` speak of nothing in the table.
    """
    from IPython.display import display

    display(Table(rows, header, caption, best, of, formats, missing))


def _value(cell: Any) -> float | None:
    if isinstance(cell, Interval):
        return cell.mean
    return float(cell) if isinstance(cell, Real) else None


def _number(value: float, spec: str) -> str:
    """With a real minus sign and a real infinity."""
    return format(value, spec).replace("-", "−").replace("inf", "∞")


def _class(words: bool) -> str:
    return ' class="words"' if words else ""
