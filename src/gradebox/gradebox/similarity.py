"""Which answers are alike? A hint where to look, and no proof of anything.

An answer becomes a row of tokens: comments and layout are dropped, numbers and texts lose their
value, and what the student named becomes "name". From all runs of five tokens (shingles) those are
taken off that stand in the given stub, and those that half of the class has too: what is left is
compared by Jaccard's index, the shingles that both have among the shingles that either has.
"""

from __future__ import annotations

import ast
import csv
import io
import keyword
import math
import re
import tokenize
from collections import Counter, defaultdict
from itertools import combinations

from gradebox.assignment import Assignment
from gradebox.feedback import PAGE, clean
from gradebox.grades import Grade, harmless

WIDTH = 5  # tokens in a shingle
FEWEST = 12  # shingles that both together must have; two short answers are alike by chance
WORTH = 0.6  # pairs below are not listed
RARE = 50  # a shingle in more answers than this leads to no pair
SHOWN = 30  # pairs whose answers stand side by side

Shingles = frozenset[tuple[str, ...]]
Alike = dict[str, float]  # question -> how alike; under "all" for all of them
Pairs = dict[tuple[int, int], Alike]  # two students, by place


def tokens(source: str) -> list[str]:
    """An answer as tokens; what is no Python is taken word by word."""
    try:
        own = _own_names(ast.parse(source))
        read = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return re.findall(r"\w+|[^\w\s]", source.lower())
    found = []
    for one in read:
        if one.type == tokenize.NAME:
            found.append("name" if one.string in own else one.string)
        elif one.type == tokenize.NUMBER:
            found.append("0")
        elif one.type == tokenize.STRING:
            found.append("text")
        elif one.type == tokenize.OP:
            found.append(one.string)
    return found


def _own_names(tree: ast.Module) -> set[str]:
    """Names that the answer gives: variables, arguments, functions, classes."""
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _stored(node)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    own |= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    return own - set(keyword.kwlist)


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def shingles(source: str) -> Shingles:
    """All runs of tokens."""
    row = tokens(source)
    return frozenset(tuple(row[at : at + WIDTH]) for at in range(len(row) - WIDTH + 1))


def pairs(answers: list[dict[str, str]], stubs: dict[str, str]) -> Pairs:
    """Pairs of students (by place) -> question -> how alike; under "all" for all questions.

    Args:
        answers: For each student: question -> source.
        stubs: What was given: question -> source.
    """
    shared: dict[tuple[int, int], dict[str, tuple[int, int]]] = defaultdict(dict)
    for question in sorted({id for answer in answers for id in answer}):
        given = shingles(stubs.get(question, ""))
        sets = [shingles(answer.get(question, "")) - given for answer in answers]
        counted = Counter(one for answer in sets for one in answer)
        common = max(2, math.ceil(len(answers) / 2))
        sets = [frozenset(one for one in answer if counted[one] <= common) for answer in sets]
        for one, other in _candidates(sets):
            both, either = len(sets[one] & sets[other]), len(sets[one] | sets[other])
            shared[one, other][question] = (both, either)
    found: Pairs = {}
    for pair, questions in shared.items():
        both, either = (sum(one[i] for one in questions.values()) for i in (0, 1))
        if either >= FEWEST and both / either >= WORTH:
            found[pair] = {id: both / either for id, (both, either) in questions.items() if either}
            found[pair]["all"] = both / either
    return found


def _candidates(sets: list[Shingles]) -> set[tuple[int, int]]:
    """Pairs that share a rare shingle: in a large class not every pair is looked at."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, answer in enumerate(sets):
        for one in answer:
            holders[one].append(at)
    return {
        pair
        for places in holders.values()
        if len(places) <= RARE
        for pair in combinations(places, 2)
    }


def report(assignment: Assignment, grades: list[Grade]) -> tuple[str, bytes]:
    """The report as a page and as a table."""
    marked = [grade for grade in grades if grade.questions]
    answers = [{one.id: one.answer for one in grade.questions if one.answer} for grade in marked]
    stubs = {question.id: question.stub for question in assignment.questions}
    found = sorted(pairs(answers, stubs).items(), key=lambda item: (-item[1]["all"], item[0]))
    ids = [question.id for question in assignment.questions]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "student", "all", *ids])
    for (one, other), alike in found:
        names = [harmless(marked[at].person.id) for at in (one, other)]
        values = [f"{alike[id]:.2f}" if id in alike else "" for id in ("all", *ids)]
        writer.writerow([*names, *values])
    return _page(assignment, marked, answers, found, ids), text.getvalue().encode()


def _page(
    assignment: Assignment,
    marked: list[Grade],
    answers: list[dict[str, str]],
    found: list[tuple[tuple[int, int], Alike]],
    ids: list[str],
) -> str:
    lines = [
        f"<h1>Similar answers: {clean(assignment.name)}</h1>",
        "<p><strong>A hint where to look, and no proof.</strong> Short right answers are alike by "
        "nature; students may have learned from one page; and who copied from whom cannot be seen. "
        "Read both answers, and talk to the students, before you think anything of it.</p>",
        f"<p>Students compared: {len(marked)}. Pairs that share at least {WORTH:.0%} of what is "
        f"neither given nor common: {len(found)}.</p>",
    ]
    for (one, other), alike in found[:SHOWN]:
        who = [clean(marked[at].person.name or marked[at].person.id) for at in (one, other)]
        lines.append(f"<h2>{who[0]} and {who[1]}: {alike['all']:.0%}</h2>")
        for id in (id for id in ids if alike.get(id, 0) >= WORTH):
            lines.append(f"<details><summary>{clean(id)}: {alike[id]:.0%}</summary>")
            for at, name in zip((one, other), who, strict=True):
                lines.append(f"<p>{name}</p><pre>{clean(answers[at].get(id, ''))}</pre>")
            lines.append("</details>")
    if len(found) > SHOWN:
        lines.append(f"<p>{len(found) - SHOWN} more pairs stand in similarity.csv.</p>")
    return PAGE.format(title=f"Similar answers: {clean(assignment.name)}", body="\n".join(lines))
