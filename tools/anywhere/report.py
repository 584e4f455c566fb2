"""What the runs of a page say together: what fell, how near each check is, which numbers move."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.anywhere.cells import cells_of

QUOTED = re.compile(r"\{glue:text\}`([a-z0-9_]+)(?::([^`]+))?`")


@dataclass(frozen=True)
class Near:
    """A comparison over all runs: its smallest distance from false, and the distances' range."""

    line: int
    source: str
    distance: float
    range: float

    @property
    def ratio(self) -> float:
        """Distance over range; a check is safe from 1 on. Equal numbers that never move are."""
        if self.distance < 0:
            return 0.0
        return self.distance / self.range if self.range else math.inf


def nearness(page: Path, runs: dict[str, dict[str, Any]]) -> list[Near]:
    """The comparisons of a page, the nearest first."""
    cells = {cell.number: cell for cell in cells_of(page)}
    places = {place for found in runs.values() for place in found.get("checks", {})}
    found = []
    for place in places:
        where, _, source = place.partition(" ")
        number, line, _ = map(int, where.split("."))
        if number not in cells:
            continue  # the page has changed since it was seen
        counted = [one["checks"][place] for one in runs.values() if place in one.get("checks", {})]
        finite = [one for one in counted if math.isfinite(one)]
        spread = max(finite) - min(finite) if finite else 0.0
        found.append(Near(cells[number].line + line - 1, source, min(counted), spread))
    return sorted(found, key=lambda one: (one.ratio, one.line))


def fallen(page: Path, runs: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each check that fell, with the runs in which it did, and each error."""
    cells = {cell.number: cell for cell in cells_of(page)}
    by: dict[str, list[str]] = {}
    for run, one in runs.items():
        for check in one.get("failed") or []:
            line = cells[check["cell"]].line + check["line"] - 1
            found = f" ({', '.join(check['found'])})" if check["found"] else ""
            by.setdefault(f"line {line}: {check['source']}", []).append(run + found)
        if one.get("error"):
            by.setdefault(one["error"], []).append(run)
    return [f"{what}\n      fell in {'; '.join(where)}" for what, where in by.items()]


def moving_numbers(page: Path, runs: dict[str, dict[str, Any]]) -> list[str]:
    """Numbers of the text that the runs print differently, with all that they print."""
    found: dict[str, None] = {}
    for name, spec in QUOTED.findall(page.read_text("utf8")):
        values = [one["glued"][name] for one in runs.values() if name in one.get("glued", {})]
        printed = [f"{value:{spec}}" if spec else str(value) for value in values]
        if len(set(printed)) > 1:
            ends = printed[values.index(min(values))], printed[values.index(max(values))]
            found[f"{name}: {printed[0]} ({' to '.join(ends)})"] = None
    return list(found)


def report(page: Path, name: str, runs: dict[str, dict[str, Any]], whole: bool) -> tuple[str, bool]:
    """The words on one page, and whether all is well: nothing fell, and each distance is at least
    the range.

    Args:
        page: its file.
        name: its name.
        runs: what was seen.
        whole: also the numbers that move, and the nearest checks although they are safe.
    """
    fell, near = fallen(page, runs), nearness(page, runs)
    close = [one for one in near if one.ratio < 1]
    moving = moving_numbers(page, runs)
    seconds = sum(one.get("seconds") or 0 for one in runs.values())
    nearest = f"{near[0].ratio:.2g}" if near else "none"
    lines = [
        f"{name}: {len(runs)} runs, {seconds:.0f} s, {len(near)} comparisons, {len(fell)} fell, "
        f"{len(close)} too near (nearest: {nearest}), {len(moving)} numbers move"
    ]
    lines += [f"   FELL {one}" for one in fell]
    for one in near[: max(len(close), 3 if whole else 0)]:
        word = "NEAR" if one.ratio < 1 else "near"
        lines.append(
            f"   {word} line {one.line}: {one.source}: distance {one.distance:.4g}, "
            f"range {one.range:.4g}, ratio {one.ratio:.2g}"
        )
    if whole:
        lines += [f"   moves {one}" for one in moving]
    return "\n".join(lines), not fell and not close
