"""Where the boxes stand that tell readers how their predictions went, and who loads the scripts."""

import pytest
from small_book import CHAPTERS, Book

EXTENSIONS = ("sphinx_design", "website.syntax.progress")
ASKED = "```{predict} places-half\nHow much?\n+++\nAs before.\n```\n"


@pytest.fixture
def book(tmp_path):
    book = Book(tmp_path, EXTENSIONS, CHAPTERS)
    toctree = "```{toctree}\nready\npart/sharing\npart/places\n```\n\n"
    book.page("index", toctree + "```{progress}\n```\n")
    book.page("ready", "Words.\n")
    book.page("part/places", f"{ASKED}\n## Summary\n\n- So.\n\n## What to read next\n\nMuch.\n")
    check = "## Concept check\n\n```{dropdown} 1. Why?\nSo.\n```\n"
    book.page("part/sharing", check + "\n## More\n\nMore.\n")
    return book.build()


def test_the_box_stands_after_the_summary_or_after_all_else_where_something_is_asked(book):
    box = book.html("part/places").select_one("section#summary > .progress-box")
    assert box["data-page"] == "part/places"
    assert box.has_attr("hidden")
    page = book.html("part/sharing")
    assert page.section.find_all(recursive=False)[-1] == page.select_one(".progress-box")
    for name, boxes in (("index", 1), ("ready", 0), ("part/places", 1), ("part/sharing", 1)):
        page = book.html(name)
        assert len(page.select(".progress-box")) == boxes, name
        assert len(page.select(".progress-box[data-page]")) == boxes - (name == "index"), name
        scripts = [one["src"] for one in page.select("script[src]") if "/predict/" in one["src"]]
        assert len(scripts) == 3 * boxes, name
        assert len(page.select("link[href*='predict/predict.css']")) == boxes, name
