"""`from vitbook import ...`: every public name that a page imports, and no time for the rest."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vitbook
from website.pages.source import read_book

ROOT = Path(__file__).resolve().parents[2]
KIT = (
    "vitbook.book",
    "vitbook.plotting",
    "vitbook.command",
)  # the book's own; figures; the command


@pytest.mark.parametrize("name", vitbook.__all__)
def test_every_name_leads_to_the_thing_itself(name):
    thing = getattr(vitbook, name)
    module = sys.modules[f"vitbook.{vitbook._WHERE[name]}"]
    assert getattr(module, name) is thing
    assert name in dir(vitbook)


def test_importing_the_package_imports_no_torch():
    code = "import sys, vitbook; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def imported_by_pages() -> set[tuple[str, str]]:
    """(module, name) of what the pages of the book import from the package."""
    found = set()
    for chapter in read_book(ROOT).chapters:
        for cell in chapter.cells:
            for node in ast.walk(cell.tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vitbook."):
                    found |= {(node.module, alias.name) for alias in node.names}
    return found


def test_each_public_name_that_a_page_imports_can_be_had_from_the_package():
    kit = (*KIT, "vitbook.figures")  # of the book, and of one page alone
    pages = {pair for pair in imported_by_pages() if not pair[0].startswith(kit)}
    assert len(pages) > 50
    assert {name for _, name in pages} - set(vitbook.__all__) == set()
    assert not [pair for pair in pages if pair[1].startswith("_")]
