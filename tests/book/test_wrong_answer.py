"""The book shows what a check says to a wrong answer, and not only to right ones."""

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest

from website.pages.contents import places_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "book" / f"{page}.md" for page in places_of(ROOT)]
CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)```", re.DOTALL)


def wrong_answers(text: str) -> list[str]:
    """The cells that show a check's message, each behind the cell that imports the check."""
    cells = CELL.findall(text)
    pairs = pairwise(cells)
    return [stub + "\n" + cell for stub, cell in pairs if "except CheckFailed as" in cell]


SHOWN = [(page.stem, code) for page in PAGES for code in wrong_answers(page.read_text("utf-8"))]


def test_a_wrong_answer_is_shown_at_least_once_in_the_book():
    assert SHOWN


@pytest.mark.parametrize("code", [code for _, code in SHOWN], ids=[page for page, _ in SHOWN])
def test_a_wrong_answer_that_is_shown_gets_a_question(code):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    first, *message = said.getvalue().strip().splitlines()
    message = " ".join(message)
    assert first.startswith("not answered yet")
    assert not message.startswith("ok:")
    assert message.endswith("?")
