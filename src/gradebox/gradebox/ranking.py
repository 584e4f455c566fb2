"""Who learns sooner than whom, as far as paired intervals show it; all else is a tie."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from gradebox.grades import harmless
from vitbook.book.intervals import student_interval
from vitbook.comparison.verdict import in_short
from vitbook.files import write_atomically

SURE = 0.95  # that no pair of the whole table is set apart by chance


@dataclass(frozen=True)
class Entry:
    """One entry: the time to learn for each seed, or what it is out for.

    Args:
        name: The student, or a yardstick in brackets.
        times: For each seed the share of the budget that was spent until half of the answers were
            right; 1 where they were not; none, where the entry is out.
        width, parameters, updates, rate: With what it was trained.
        at_edge: Whether the search for the rate ended at the edge of what it tried.
        said: Why it is out.
    """

    name: str
    times: list[float] = field(default_factory=list)
    width: int | None = None
    parameters: int | None = None
    updates: int | None = None
    rate: float | None = None
    at_edge: bool = False
    said: str = ""


def ranked(entries: Sequence[Entry], yardsticks: Sequence[str]) -> list[dict]:
    """A row for each entry, the soonest first, those that are out last.

    The rank is one more than the number of students that are shown to be better: the interval of
    the logarithms of the ratios, paired by seed, lies on one side of zero. Its level is such that
    in a class without any differences 19 of 20 tables would set nobody apart. Who shares a rank is
    marked with "=". Yardsticks have no rank.
    """
    own = [f"({name})" for name in yardsticks]
    inside = [one for one in entries if one.times]
    pairs = max(1, len(inside) * (len(inside) - 1) // 2)

    def against(one: Entry, other: Entry) -> str:
        gaps = [math.log(b / a) for a, b in zip(one.times, other.times, strict=True)]
        return in_short(student_interval(gaps, 1 - (1 - SURE) / pairs))

    students = [one for one in inside if one.name not in own]
    ranks = {
        one.name: 1 + sum(against(other, one) == "better" for other in students if other is not one)
        for one in students
    }
    measure = {one.name: one for one in inside if one.name in own}
    rows = []
    for one in sorted(inside, key=lambda one: (median(one.times), sum(one.times))):
        rank = ranks.get(one.name)
        shared = rank is not None and list(ranks.values()).count(rank) > 1
        row: dict[str, Any] = {
            "entrant": one.name,
            "rank": f"{rank or ''}{'=' * shared}",
        }
        row |= {"learned": f"{sum(time < 1 for time in one.times)} of {len(one.times)}"}
        row |= {"half right after, % of the budget": f"{100 * median(one.times):.1f}"}
        row |= {
            f"against {name[1:-1]}": against(one, measure[name])
            if name in measure and name != one.name
            else ""
            for name in own
        }
        row |= {"width": one.width, "parameters": one.parameters, "updates": one.updates}
        row |= {"rate": one.rate, "rate at edge": "yes" if one.at_edge else "", "said": ""}
        rows.append(row)
    out = sorted((one for one in entries if not one.times), key=lambda one: one.name)
    return rows + [{"entrant": one.name, "rank": "", "said": one.said} for one in out]


def write_csv(path: Path, rows: Sequence[dict]) -> None:
    """The table; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    columns = dict.fromkeys(key for row in rows for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: harmless(str(value)) for key, value in row.items()} for row in rows)
    write_atomically(path, text.getvalue().encode("utf-8", "replace"))


def in_lines(rows: Sequence[dict]) -> list[str]:
    """The table in short, for a terminal."""
    return [
        f"{row['rank']:>4}  {row['entrant'][:30]:30}  "
        + (
            row["said"]
            or f"half right after {row['half right after, % of the budget']} % of the budget; "
            f"learned in {row['learned']}"
        )
        for row in rows
    ]
