"""Rules for what stands between the cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from website.notebooks.notebook import GATES
from website.pages.myst import Piece, pieces, substitute
from website.pages.number import is_numbered
from website.pages.source import Book, Chapter, Finding, Item
from website.syntax import DIRECTIVES, ROLES
from website.syntax.goals import LONGEST, length

ALLOWED_DIRECTIVES = (
    set(DIRECTIVES) | GATES | {"api", "changes", "include", "install"}
)  # on pages without cells

NUMBER = re.compile(
    r"(?P<before>(?:[Ss]ections?|[Cc]hapters?|[Ff]igures?|[Tt]ables?|[Vv]ersions?|[Pp]arts?|arXiv:"
    r"|Python|PyTorch|CC BY|§)\s*)?"
    r"(?P<number>\d[\d,]*\.\d+(?:\s?%)?|\d[\d,]*\s?(?:%|percent\b|per cent\b))"
)
OF_CHAPTER = re.compile(r"\b(?:[Cc]hapters?\s+\d+[a-z]?|(?:[Ee]xercises?|[Tt]ables?)\s+\d+\.\d+)\b")
# Numbers that nothing computes: the level of an interval, the whole of something.
DEFINED = {"95 %", "100 %", "0 %", "50 %"}
ALLOWED_ON_PAGE = re.compile(r"^%\s*typed numbers?:\s*(.+)$", re.MULTILINE)
CODE = ("assignments", "experiments", "src", "tests", "tools", "website")
SKELETON = ("Concept check", "Summary", "What to read next")


def known_syntax(book: Book) -> Iterator[Finding]:
    """Only directives and roles that the notebooks can show."""
    for chapter in book.chapters:
        for item in chapter.items:
            if item.kind == "directive" and item.text not in ALLOWED_DIRECTIVES:
                yield chapter.finding(item, f"the directive {{{item.text}}} is not in use here")
            if item.kind not in {"text", "heading"}:
                continue
            for piece in pieces(item.text):
                if piece.kind == "role" and piece.name not in ROLES:
                    at = _line(item, item.text, piece.start)
                    words = f"the role {{{piece.name}}} is not in use here"
                    yield Finding(chapter.page.path, at, words)


def typed_numbers(book: Book) -> Iterator[Finding]:
    """A decimal number or a percentage in prose comes from a cell, through glue.

    Numbers that no cell could compute are listed on the page that needs them, in a comment:
    ``% typed numbers: 28.4, 41.8 %``.
    """
    for chapter in book.chapters:
        texts = [item for item in chapter.items if item.kind in {"text", "heading"}]
        listed = [match[1] for item in texts for match in ALLOWED_ON_PAGE.finditer(item.text)]
        allowed = DEFINED | {number.strip() for line in listed for number in line.split(", ")}
        for item in texts:
            text = substitute(item.text, _blank)
            for match in NUMBER.finditer(text):
                number = re.sub(r"\s?%$", " %", match["number"])
                if not match["before"] and number not in allowed:
                    at = _line(item, text, match.start())
                    message = f"the number {number} is typed; glue it, or list it as typed"
                    yield Finding(chapter.page.path, at, message)


def typed_chapters(book: Book) -> Iterator[Finding]:
    """The number of a chapter comes from _toc.yml: {chapter}`looking`, and in titles by itself."""
    for chapter in book.chapters:
        for item in chapter.items:
            if item.level == 1 and is_numbered(item.text):
                yield chapter.finding(item, "the title's number is typed; _toc.yml gives it")
            if item.kind == "directive":
                continue
            text = item.text if item.kind == "cell" else substitute(item.text, _chapter_blank)
            for match in OF_CHAPTER.finditer(text):
                words = " ".join(match[0].split())
                message = f"the number of {words!r} is typed: {{chapter}}`page`"
                yield Finding(chapter.page.path, _line(item, text, match.start()), message)


def typed_in_code(book: Book) -> Iterator[Finding]:
    """Comments and docstrings, too, name a chapter by its page. What is quoted is an example."""
    for folder in CODE:
        for path in sorted((book.root / folder).rglob("*")):
            if path.suffix not in {".js", ".md", ".py"} or "vendor" in path.parts:
                continue
            for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in OF_CHAPTER.finditer(line):
                    before = line[: match.start()].replace('"' * 3, "")
                    if not re.search("[\"'`“\\[]", before):
                        message = f"the number of {match[0]!r} is typed: name the page"
                        yield Finding(path, at, message)


def skeleton(book: Book) -> Iterator[Finding]:
    """A chapter opens with its goals, needs and minutes, which are computed, and ends in the usual
    sections."""
    for chapter in book.numbered:
        goals = [
            item.directive
            for item in chapter.directives("admonition")
            if "goals" in item.directive.options.get("class", "")
        ]
        lines = [item.directive for item in chapter.directives("goals")]
        if len(goals) + len(lines) != 1:
            yield chapter.finding(None, "one line of {goals} belongs at the beginning")
        elif lines:
            characters = length(lines[0].argument, lines[0].body)
            if characters > LONGEST:
                words = f"the goals are {characters} characters long, at most {LONGEST}"
                yield chapter.finding(None, words)
        elif "{minutes}`this page`" not in goals[0].text:
            words = "the goals do not say how many minutes the chapter takes: {minutes}`this page`"
            yield chapter.finding(None, words)
        elif re.search(r"\d+\s+minutes", goals[0].text):
            yield chapter.finding(None, "the goals' minutes are typed; they are computed")
        sections = [item.text for item in chapter.items if item.level == 2]
        found = [name for name in sections if name in SKELETON]
        if found != list(SKELETON):
            yield chapter.finding(
                None, f"sections {', '.join(SKELETON)}: found {', '.join(found) or 'none'}"
            )


def concept_checks(book: Book) -> Iterator[Finding]:
    """Three questions, each with its answer folded."""
    for chapter in book.numbered:
        questions = list(_below(chapter, "Concept check"))
        folded = [q for q in questions if q.kind == "directive" and q.text == "dropdown"]
        if len(folded) != 3:
            yield chapter.finding(None, f"the concept check has {len(folded)} questions, not 3")
        for question in folded:
            if not question.directive.text.strip() or not question.directive.argument:
                yield chapter.finding(question, "a question or its answer is missing")


def _below(chapter: Chapter, heading: str) -> Iterator[Item]:
    inside = False
    for item in chapter.items:
        if item.kind == "heading" and item.level <= 2:
            inside = item.text == heading
        elif inside:
            yield item


def _blank(piece: Piece) -> str:
    """Keep the line count, lose the words."""
    return "\x00" + "\n" * piece.source.count("\n")


def _chapter_blank(piece: Piece) -> str:
    """Links keep their words: ``chapter 12 <page>`` is typed as well."""
    return piece.content if piece.kind == "role" and piece.name != "chapter" else _blank(piece)


def _line(item: Item, text: str, at: int) -> int:
    """The line of the place ``at`` in ``text``, which has as many lines as the item."""
    return item.line + text.count("\n", 0, at)
