"""Shared by tests: small image files in the real formats, and one Chromium for the whole session.

`VITBOOK_REQUIRE_BROWSER=1` turns "no browser, skipped" into a failure, and
`VITBOOK_REQUIRE_SANDBOX=1` "no sandbox, skipped"; `make test` sets both.
`--part` divides the tests into those that look at the built site and all others.
`VITBOOK_CHROMIUM=/path/to/chromium` names the program, if it is not found by itself.
"""

import os
import signal
import sys

import pytest

from tools.browser import FLAGS, driver_complaint, find_chromium
from tools.sandbox import in_chroot

os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks a hub for weights

# A shell ignores Ctrl-C in what it starts in the background, and processes inherit that: the tests
# that stop a process with Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    words = "only the tests with the marker site, or only those without it"
    parser.addoption("--part", choices=["site", "without-book"], help=words)


def pytest_ignore_collect(collection_path, config):
    """A file in which no test looks at the site is not even imported for that part."""
    if config.getoption("part") == "site" and collection_path.suffix == ".py":
        return "mark.site" not in collection_path.read_text("utf8") or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if part := config.getoption("part"):
        wanted = {True: [], False: []}
        for item in items:
            looks = item.get_closest_marker("site") is not None
            wanted[looks == (part == "site")].append(item)
        items[:] = wanted[True]
        config.hook.pytest_deselected(items=wanted[False])


def pytest_collection_finish():
    """For a GPU that is not there, torch.manual_seed would keep the stack trace of each call, three
    times: that takes longer than many a test."""
    if "torch" in sys.modules:
        import torch

        for device in (torch.cuda, torch.xpu, torch.mtia):
            if not device.is_available():
                device.manual_seed_all = lambda seed: None


@pytest.fixture
def small_image_files(tmp_path):
    """MNIST, Fashion-MNIST and CIFAR-10 with noise instead of images; VITBOOK_DATA leads there."""
    from experiments.machinery.generated import generated_sets

    with generated_sets(tmp_path / "small data") as folder:
        yield folder


@pytest.fixture(scope="session")
def browser():
    """A running Chromium (playwright's sync API); skips with the reason where there is none."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        _no_browser(f"playwright is not installed ({error})")
    if complaint := driver_complaint():
        _no_browser(complaint)
    program = find_chromium()
    if program is None:
        _no_browser("no Chromium was found; install it or set VITBOOK_CHROMIUM")
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Error as error:
            _no_browser(f"{program} does not start: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """new_page(script, **context): a page in a context of its own, whose scripts must not fail."""
    contexts, errors = [], []

    def opened(script="", **options):
        contexts.append(browser.new_context(**options))
        if script:
            contexts[-1].add_init_script(script)
        page = contexts[-1].new_page()
        page.errors = errors
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def _no_browser(reason: str):
    if os.environ.get("VITBOOK_REQUIRE_BROWSER") == "1":
        pytest.fail(f"a browser is required: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def no_sandbox():
    """Called with a reason it fails where a sandbox is required, but for a chroot: it skips."""

    def missing(reason: str):
        if os.environ.get("VITBOOK_REQUIRE_SANDBOX") == "1" and not in_chroot():
            pytest.fail(f"a sandbox is required: {reason}", pytrace=False)
        pytest.skip(f"no sandbox{' in a chroot' if in_chroot() else ''}: {reason}")

    return missing
