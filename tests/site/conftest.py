"""The built site, and pages of it in Chromium."""

import pytest
from answerable import HTML, VIEWS

from tools.run_notebooks import served


@pytest.fixture(scope="session")
def built():
    if not (HTML / "index.html").is_file():
        pytest.fail("there is no site in _build/html: run make book first", pytrace=False)


@pytest.fixture(scope="session")
def address(built):
    with served(HTML) as address:
        yield address


@pytest.fixture
def open_page(new_page, built):
    """open_page(page, script, **context): a page by its name from the disk, or by its address."""

    def opened(page, script="", **options):
        opened = new_page(script, **{**VIEWS["light"], "reduced_motion": "reduce", **options})
        opened.goto(page if "://" in page else f"{HTML.as_uri()}/{page}", wait_until="load")
        return opened

    return opened
