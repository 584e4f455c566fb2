"""What changed since a release: the reader of the change log, and the page that is made from it."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from small_book import Book

from tools.release import number, releases
from website.pages.changelog import Release, read_changes
from website.theme.changes import PAGE, anchor

ROOT = Path(__file__).resolve().parents[2]
LOG = """# Changes

What a reader notices.

## Unreleased

- Newest, `code`, **bold**.

### Errata

- [Chapter 1](book/one.md) said so. It is 0.04 more.

## 0.2.0 (2026-02-28)

- Second.

## 0.1.0 (2026-01-31)

- First.
"""


def test_a_release_says_what_is_new_and_what_was_wrong(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    errata = "- [Chapter 1](book/one.md) said so. It is 0.04 more."
    assert read_changes(tmp_path) == [
        Release("", "", "- Newest, `code`, **bold**.", errata),
        Release("0.2.0", "2026-02-28", "- Second.", ""),
        Release("0.1.0", "2026-01-31", "- First.", ""),
    ]


BAD = [
    ("## Unreleased", "## Soon", "begin with '## Unreleased'"),
    ("## 0.2.0 (2026-02-28)", "## 0.2.0, in spring", "not '0.2.0, in spring'"),
    ("### Errata", "### Mistakes", "the only part of a release is '### Errata'"),
]


@pytest.mark.parametrize(("line", "instead", "words"), BAD, ids=[row[1] for row in BAD])
def test_a_heading_that_is_none_of_the_log_fails_with_what_would_be_right(
    tmp_path, line, instead, words
):
    (tmp_path / "CHANGELOG.md").write_text(LOG.replace(line, instead))
    with pytest.raises(ValueError, match=r"CHANGELOG\.md") as failed:
        read_changes(tmp_path)
    assert words in str(failed.value)


def test_the_change_log_has_every_release_the_newest_first():
    found = [release.version for release in read_changes(ROOT)[1:]]
    assert found == sorted(found, key=number, reverse=True)
    assert set(releases(ROOT)) <= set(found)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("book"), ["website.theme.changes"])
    book.page("index", "```{toctree}\none\n```\n\n```{changes}\n```\n")
    book.page("one", "First.\n")
    (book.folder / "CHANGELOG.md").write_text(LOG)
    book.build()
    return book


def shown(book):
    return BeautifulSoup((book.folder / "out" / "index.html").read_text("utf8"), "html.parser")


def test_from_ones_own_release_one_reads_to_the_end_and_errata_lead_to_their_pages(book):
    page = shown(book)
    assert book.warnings == ""
    titles = [title.text.rstrip("¶") for title in page.select(".body :is(h2, h3)")]
    assert titles == ["Since 0.1.0", "What is new", "Since 0.2.0", "Errata", "What is new"]
    links = {link.text: link["href"] for link in page.select("section > p a[href^='#']")}
    assert links == {"0.1.0": f"#{anchor('0.1.0')}", "0.2.0": f"#{anchor('0.2.0')}"}
    first, second = (page.find(id=anchor(version)).text for version in links)
    assert "Second." in first
    assert "Newest, code, bold." in second
    assert "First." not in first + second
    errata = page.find(id="errata-0-2-0")
    assert "It is 0.04 more." in errata.text
    assert errata.select_one("li a")["href"] == "one.html"


def test_the_page_follows_the_change_log(book):
    log = book.folder / "CHANGELOG.md"
    log.write_text(LOG.replace("## Unreleased\n", "## Unreleased\n\n## 0.3.0 (2026-03-31)\n"))
    book.build()
    last = shown(book).find(id=anchor("0.3.0"))
    assert "0.3.0 is the newest release" in last.text
    assert "Release 0.3.0 came on 2026-03-31." in shown(book).find(id=anchor("0.2.0")).text
    log.write_text(LOG.replace("## Unreleased", "## Soon"))
    book.build()
    assert "CHANGELOG.md has to begin with" in book.warnings


def test_the_page_stands_where_the_foot_of_all_pages_leads():
    assert "```{changes}" in (ROOT / "book" / f"{PAGE}.md").read_text("utf8")
    assert f"file: {PAGE}\n" in (ROOT / "_toc.yml").read_text("utf8")
