"""A large explorer of a page is a file that comes when the reader comes near; a small one stays."""

import shutil

import pytest
import torch
from small_book import Book

from vitbook.explorer import attention_explorer


def explorer(side):
    generator = torch.Generator().manual_seed(side)
    maps = torch.rand(1, 1, 4, side**2, side**2, generator=generator).softmax(-1)
    pixels = torch.rand(1, 3, 2 * side, 2 * side, generator=generator)
    return attention_explorer(pixels, maps, side, num_prefix=0)


def raw(figure):
    return f"```{{raw}} html\n{figure._repr_html_()}\n```\n"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("explorers"), extensions=("website.syntax.cells.explorer",))
    book.page("index", "```{toctree}\npart/two\n```\n\n" + raw(explorer(4)))
    book.page("part/two", "Words.\n\n" * 120 + raw(explorer(14)))
    return book.build()


def files(book):
    return list((book.folder / "out" / "_static" / "explorer").iterdir())


def test_only_a_large_one_is_a_file_with_its_hash_in_its_name(book):
    assert book.warnings == ""
    (file,) = files(book)
    assert explorer(14).data["packed"] in file.read_text("utf8")
    assert f'data-key="{file.stem}"' in explorer(14)._repr_html_()
    page = book.html("part/two").select_one(".vitbook-explorer")
    assert len(str(page)) < 40_000
    assert f"../_static/explorer/{file.name}" in page.select_one("script").text
    assert page.select_one("table") is not None  # for readers without scripts
    assert explorer(4).data["packed"] in str(book.html("index"))


@pytest.mark.browser
def test_it_comes_near_the_screen_or_says_that_it_does_not(new_page, book, tmp_path):
    shutil.copytree(book.folder / "out", tmp_path / "site")
    page = new_page(viewport={"width": 1000, "height": 800})
    page.goto((tmp_path / "site" / "part" / "two.html").as_uri(), wait_until="load")
    figure = page.locator(".vitbook-explorer")
    page.wait_for_timeout(300)
    assert not figure.evaluate("figure => Boolean(figure.shadowRoot)")
    figure.scroll_into_view_if_needed()
    page.locator(".vitbook-explorer .card").wait_for()
    assert page.locator(".vitbook-explorer .patch").count() == 14 * 14
    shutil.rmtree(tmp_path / "site" / "_static" / "explorer")
    page.reload()
    figure.scroll_into_view_if_needed()
    page.get_by_text("The maps of this figure did not come.").wait_for()
