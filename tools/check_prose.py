"""Check the sources of the book against its rules; one line for each finding.

    python -m tools.check_prose                   every page of _toc.yml
    python -m tools.check_prose weighted          only pages whose name holds these words, and
                                                  which of their limits are near

The rules are in tools/book_rules/; tests/book/test_book.py shows that each can fail.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.book_rules import code, contents, draws, exercises, forms, kit, prose
from website.pages.myst import PageError
from website.pages.source import Book, Finding, read_book

ROOT = Path(__file__).resolve().parents[1]
RULES = [
    contents.front_page,
    contents.moved,
    prose.known_syntax,
    prose.typed_numbers,
    prose.typed_chapters,
    prose.typed_in_code,
    prose.skeleton,
    prose.concept_checks,
    exercises.exercises,
    exercises.claims,
    draws.draws,
    forms.predictions,
    forms.in_depth,
    kit.limits,
    kit.line_length,
    kit.kit,
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
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    options = parser.parse_args(arguments)
    try:
        book = read_book(options.root)
        every = check(book)
    except PageError as error:
        print(str(error).replace(f"{options.root}/", ""), file=sys.stderr)
        return 1
    found = [
        finding
        for finding in every
        if not options.words or any(word in str(finding.path) for word in options.words)
    ]
    told = [one for one in kit.near(book) if any(word in str(one.path) for word in options.words)]
    for finding in sorted(found + told, key=lambda one: (str(one.path), one.line)):
        print(str(finding).replace(f"{options.root}/", ""), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
