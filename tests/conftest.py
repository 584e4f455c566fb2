"""Shared by the tests that look at pages: one Chromium for the whole session.

`VITBOOK_REQUIRE_BROWSER=1` turns "no browser, skipped" into a failure; CI sets it.
`VITBOOK_CHROMIUM=/path/to/chromium` names the program, if it is not found by itself.
"""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",  # containers have no user namespaces for Chromium's own sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """A running Chromium (playwright's sync API); skips with the reason where there is none."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        _no_browser(f"playwright is not installed ({error})")
    program = os.environ.get("VITBOOK_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    with sync_playwright() as playwright:
        try:  # without a program: the Chromium that `playwright install chromium` brings
            chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Error as error:
            _no_browser(
                f"Chromium does not start ({str(error).splitlines()[0]}); "
                "install chromium or set VITBOOK_CHROMIUM"
            )
        yield chromium
        chromium.close()


def _no_browser(reason: str):
    if os.environ.get("VITBOOK_REQUIRE_BROWSER") == "1":
        pytest.fail(f"a browser is required: {reason}", pytrace=False)
    pytest.skip(reason)
