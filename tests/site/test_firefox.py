"""The scripts of the built site in Firefox: `make test-deep`, where there is one.

`VITBOOK_REQUIRE_FIREFOX=1` turns "no Firefox, skipped" into a failure. On Debian: sudo apt install
firefox-esr.
"""

import os

import pytest
from answerable import HTML
from firefox import Firefox, find_firefox
from test_site import served

CHAPTER = "vit/17_hybrids.html"  # the first of its predictions has choices
PAGES = ["index.html", "00_preview.html", CHAPTER, "appendix/claims.html", "search.html?q=softmax"]

pytestmark = [pytest.mark.site, pytest.mark.deep]


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    if not (HTML / "index.html").is_file():
        pytest.fail("there is no site in _build/html: run make book first", pytrace=False)
    program = find_firefox()
    if program is None:
        no_firefox("none was found; on Debian: sudo apt install firefox-esr")
    try:
        with Firefox(program, tmp_path_factory.mktemp("firefox")) as firefox:
            yield firefox
    except OSError as error:
        no_firefox(f"{program} does not start: {error}")


def no_firefox(reason):
    if os.environ.get("VITBOOK_REQUIRE_FIREFOX") == "1":
        pytest.fail(f"a Firefox is required: {reason}", pytrace=False)
    pytest.skip(f"no Firefox: {reason}")


@pytest.fixture(scope="module")
def address():
    with served(HTML.parent) as address:
        yield f"{address}/html"


ANSWER = """
const box = document.querySelector(".predict[data-choices]");
box.querySelector("[name=said]").click();
box.querySelector("[name=sure][value='90']").click();
box.querySelector(".predict-commit").click();
return [box.querySelector(".predict-verdict").textContent, box.querySelector("details").open,
    document.activeElement.textContent];
"""
VERDICT = 'return document.querySelector(".predict[data-choices] .predict-verdict").textContent'
LINK = 'return document.querySelector(".progress-on a").href'


def test_firefox_commits_keeps_and_leads_back(firefox, address):
    firefox.open(f"{address}/{CHAPTER}")
    said, is_open, focus = firefox.run(ANSWER)
    assert said.startswith("You said, very sure: ")
    assert said.endswith(("✓ Right.", "✗ Wrong."))
    assert (is_open, focus) == (True, "What happened")
    firefox.open(f"{address}/index.html")
    assert firefox.run(LINK).startswith(f"{address}/{CHAPTER}")
    firefox.open(f"{address}/{CHAPTER}")
    assert firefox.run(VERDICT) == said


def test_firefox_keeps_what_was_answered_on_a_page_opened_as_a_file(firefox):
    firefox.open((HTML / CHAPTER).as_uri())
    said = firefox.run(ANSWER)[0]
    firefox.open((HTML / CHAPTER).as_uri())
    assert firefox.run(VERDICT) == said


@pytest.mark.parametrize("name", PAGES)
def test_no_script_fails_in_firefox(firefox, address, name):
    before = firefox.errors(address)
    firefox.open(f"{address}/{name}")
    firefox.run("return new Promise(done => setTimeout(done, 2000))")
    assert firefox.errors(address)[len(before) :] == []


def test_a_script_that_fails_in_firefox_is_seen(firefox, address):
    firefox.open(f"{address}/index.html")
    planted = "document.head.append(Object.assign(document.createElement('script'), "
    firefox.run(planted + "{textContent: 'nothing.here()'})); return 1")
    assert any("nothing is not defined" in one for one in firefox.errors(address))
