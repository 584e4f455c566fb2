"""Check the sources of the book against its rules; one line for each finding.

    python -m tools.check_prose                   every page of _toc.yml
    python -m tools.check_prose weighted          only pages whose name holds these words

The rules are in tools/book_rules/; tests/book/test_book.py shows that each can fail.
"""

import argparse
import sys
from pathlib import Path

from tools.book_rules import code, contents, draws, exercises, length, prose
from website.pages.myst import PageError
from website.pages.source import Book, Finding, read_book

ROOT = Path(__file__).resolve().parents[1]
RULES = [
    contents.moved,
    contents.in_depth,
    prose.goals,
    prose.typed_numbers,
    prose.typed_chapters,
    exercises.exercises,
    exercises.claims,
    exercises.predictions,
    draws.draws,
    length.minutes,
    length.line_length,
    code.imports,
    code.named_records,
    code.first_cell,
    code.figures,
    code.introduced_once,
    code.redefined,
]


def check(book: Book) -> list[Finding]:
    """All findings of all rules."""
    return [finding for rule in RULES for finding in rule(book)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="pages, by a part of their name; default: all")
    options = parser.parse_args(arguments)
    try:
        found = check(read_book(ROOT))
    except PageError as error:
        print(str(error).replace(f"{ROOT}/", ""), file=sys.stderr)
        return 1
    words = options.words or [""]
    found = [one for one in found if any(word in str(one.path) for word in words)]
    for finding in sorted(found, key=lambda one: (str(one.path), one.line)):
        print(str(finding).replace(f"{ROOT}/", ""), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
