"""The page of a live figure, for the tests of each of them."""

import pytest


@pytest.fixture(scope="module")
def address(request, tmp_path_factory):
    """Where the module's PAGE is, built with the book's own scripts."""
    from test_live_frame import LiveBook

    book = LiveBook(tmp_path_factory.mktemp("live"))
    book.page("part/two", request.module.PAGE)
    assert book.build().warnings == ""
    return book.address()


@pytest.fixture
def page(new_page, address):
    """The page on a phone, with its figure running."""
    page = new_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    page.locator(".live-running").wait_for()
    return page
