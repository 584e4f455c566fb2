"""Rules for exercises, claims and predictions: what is told is checked, what is asked has an id."""

import ast
import re
from collections.abc import Iterator

from website.pages.cells import asserts
from website.pages.meaning import called_name
from website.pages.source import Book, Chapter, Finding, Item

LABEL_LINE = re.compile(
    r"^\*Difficulty [1-3] of 3, (about )?\d+ minutes, [^*]*(phone|Colab|paper)[^*]*\*"
)


def exercises(book: Book) -> Iterator[Finding]:
    """Each has difficulty, minutes, a check and a folded solution."""
    for chapter in book.chapters:
        started = chapter.directives("exercise-start")
        solutions = {s.directive.argument: s for s in chapter.directives("solution-start")}
        for start in started:
            yield from _exercise(chapter, start)
            label = start.directive.options.get("label", "")
            solution = solutions.pop(label, None)
            if not label or solution is None:
                yield chapter.finding(start, "this exercise has no solution")
            else:
                yield from _solution(chapter, solution)
        for solution in solutions.values():
            yield chapter.finding(solution, "this solution belongs to no exercise")


def _exercise(chapter: Chapter, start: Item) -> Iterator[Finding]:
    inside = list(_until(chapter, start, "exercise-end"))
    first = next((item.text.strip() for item in inside if item.kind == "text"), "")
    if not LABEL_LINE.match(first):
        yield chapter.finding(
            start,
            "an exercise begins with *Difficulty n of 3, m minutes, Colab (a phone will do).*",
        )
    if not _checks(inside):
        yield chapter.finding(start, "no cell of this exercise calls a check_ function")


def _solution(chapter: Chapter, start: Item) -> Iterator[Finding]:
    inside = list(_until(chapter, start, "solution-end"))
    if "dropdown" not in start.directive.options.get("class", ""):
        yield chapter.finding(start, "the solution is not folded (:class: dropdown)")
    if not _checks(inside):
        yield chapter.finding(start, "the solution does not call the check")


def _until(chapter: Chapter, start: Item, end: str) -> Iterator[Item]:
    """The items between a gate and its end."""
    at = chapter.items.index(start)
    for item in chapter.items[at + 1 :]:
        if item.kind == "directive" and item.text == end:
            return
        yield item


def _checks(items: list[Item]) -> set[str]:
    calls = (node for item in items if item.kind == "cell" for node in ast.walk(item.tree))
    names = (called_name(node) for node in calls if isinstance(node, ast.Call))
    return {name for name in names if name.startswith("check_")}


def claims(book: Book) -> Iterator[Finding]:
    """The cell after a claim settles it: an assertion, before the next claim or heading. A
    chapter's says what holds, and what would refute it."""
    for chapter in book.chapters:
        for item in chapter.directives("claim"):
            after = chapter.items[chapter.items.index(item) + 1 :]
            ends = (one for one in after if one.kind in {"cell", "heading"} or one.text == "claim")
            nearest = next(ends, None)
            if nearest is None or nearest.kind != "cell" or not asserts(nearest.tree):
                name = item.directive.argument
                yield chapter.finding(item, f"no assertion settles the claim {name}")
            for option in ("truth", "refuted-by"):
                if chapter.number and not item.directive.options.get(option):
                    yield chapter.finding(item, f"this claim lacks :{option}:")


def predictions(book: Book) -> Iterator[Finding]:
    """What a browser keeps of an answer is called by the prediction's id, on all pages."""
    seen: dict[str, str] = {}
    for chapter in book.chapters:
        for item in chapter.directives("predict"):
            name = item.directive.argument
            if name in seen:
                words = f"the prediction {name} is made already in {seen[name]}"
                yield chapter.finding(item, words)
            seen[name] = chapter.name
