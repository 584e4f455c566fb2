"""A rule for what is told of trainings: how many draws stand behind "each", "at least", "never"."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from website.pages.myst import Piece, substitute
from website.pages.source import Book, Chapter, Finding, Item

# A cell trains, or reads what was trained.
TRAINS = re.compile(r"\b(?:train\w*|fit|learn|practise|\w+_and_learn|load_record)\(|optim\.")
TOLD_LATER = {"Summary", "Concept check"}  # sections without cells, of a page that trains
# Words about all trainings: "each seed", "87 % at least", "is never learned".
TRAINED = r"(?:seeds?|trainings?|runs?|models?|starts?|networks?|ViTs?|CNNs?|Mixers?)"
EACH = re.compile(rf"(?<!for )\b(?:each|every)\s(?:[\w-]+\s)?{TRAINED}\b", re.IGNORECASE)
BOUND = re.compile(r"\b(?:at least|at most|up to)\b", re.IGNORECASE)
SIZE = re.compile(r"%|\bpoints?\b|\btimes\b(?! as long)")
OUTCOME = r"(?:learn|solve|reach|fail|los|hit|right|guess|better|worse)\w*"
EVER = re.compile(
    rf"\b(?:always|never)\s(?:\w+\s)?{OUTCOME}|\b{OUTCOME}\s(?:always|never)\b", re.IGNORECASE
)
# The number of draws: "five seeds", "in these three", "NUMBER of NUMBER".
FEW = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|forty)"
COUNT = rf"(?:\d[\d,]*|{FEW}|NUMBER)"
DRAWS = re.compile(
    rf"\b{COUNT}(?:\s[\w-]+){{0,2}}\s{TRAINED}\b|\b(?:these|those|all|of|of the)\s{FEW}\b"
    rf"|\b{COUNT}\sof\s{COUNT}\b",
    re.IGNORECASE,
)
KNOWN = Path("tools/book_rules/draws.toml")  # sentences that may stand, each with its reason


def draws(book: Book) -> Iterator[Finding]:
    """What is said of each training, or as a bound, names how many trainings were looked at.

    Looked at are the sections whose cells train or read a record: their prose, cards, captions and
    alt texts, and the page's summary and answers. The number stands in the sentence, or beside it
    in the paragraph, card or caption. Other sentences are listed, with the reason, in KNOWN.
    """
    path = book.root / KNOWN
    known = tomllib.loads(path.read_text())["sentence"] if path.is_file() else []
    found = set()
    for chapter in book.chapters:
        listed = [one["begins"] for one in known if one["page"] == chapter.name]
        for line, sentence in _unnumbered(chapter):
            begins = next((words for words in listed if sentence.startswith(words)), None)
            if begins is None:
                message = f"how many trainings? {sentence!r} (or list it in {KNOWN})"
                yield Finding(chapter.page.path, line, message)
            else:
                found.add((chapter.name, begins))
    for one in known:
        if (one["page"], one["begins"]) not in found:
            yield Finding(path, 1, f"listed, and no longer there: {one['begins']!r}")


def _unnumbered(chapter: Chapter) -> Iterator[tuple[int, str]]:
    """Sentences with words about all trainings, and no number of trainings beside them."""
    if chapter.belongs_to is None and chapter.name != "index":
        return
    for item in _beside_trainings(chapter):
        for line, card in _cards(item):
            if DRAWS.search(card):
                continue
            for sentence in re.split(r"(?<=[.?!])\s+|\+\+\+", card):
                if _about_all(sentence):
                    yield line, " ".join(sentence.split())


def _about_all(sentence: str) -> bool:
    return bool(
        EACH.search(sentence)
        or (BOUND.search(sentence) and SIZE.search(sentence))
        or EVER.search(sentence)
    )


def _beside_trainings(chapter: Chapter) -> Iterator[Item]:
    """The texts and cells of sections that train, exercises left out."""
    items = [item for item in chapter.items if not item.gate]
    sections: list[list[Item]] = [[]]
    for item in items:
        if item.kind == "heading":
            sections.append([])
        sections[-1].append(item)
    page_trains = any(_trains(item) for item in items)
    for section in sections:
        later = bool(section) and section[0].text in TOLD_LATER
        if any(_trains(item) for item in section) or (later and page_trains):
            yield from (item for item in section if item.kind in {"text", "cell"})


def _trains(item: Item) -> bool:
    return item.kind == "cell" and bool(TRAINS.search(item.text))


def _cards(item: Item) -> Iterator[tuple[int, str]]:
    """Paragraphs and bullets of a text; captions and alt texts of a cell. A glued number is one."""
    if item.kind == "text":
        line = item.line
        for part in re.split(r"(\n\s*\n|\n(?=- ))", substitute(item.text, _plain)):
            if part.strip():
                yield line, part.strip().removeprefix("- ")
            line += part.count("\n")
        return
    for node in ast.walk(item.tree):
        if isinstance(node, ast.keyword) and node.arg in {"caption", "alt"}:
            at = item.directive.body_line + node.value.lineno - 1
            yield at, _said(node.value)


def _plain(piece: Piece) -> str | None:
    if piece.kind == "dropped":
        return None  # the line between question and answer, which are one card
    lines = "\n" * piece.source.count("\n")
    return ("NUMBER" if piece.name == "glue:text" else piece.words or " ") + lines


def _said(node: ast.expr) -> str:
    """What a caption says, NUMBER for what it computes."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_said(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _said(node.left) + _said(node.right)
    return "NUMBER"
