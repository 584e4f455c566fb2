"""The scripts of the built site in Firefox: `make test-deep`, where there is one.

`VITBOOK_REQUIRE_FIREFOX=1` turns "no Firefox, skipped" into a failure. On Debian: sudo apt install
firefox-esr.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from answerable import HTML
from bs4 import BeautifulSoup
from firefox import Firefox, find_firefox
from test_site import served

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "book"), str(TESTS / "live")]
import test_figures_in_hand as in_hand  # noqa: E402
import test_live_draw as draw  # noqa: E402
import test_live_frame as frame  # noqa: E402
from page import write_page  # noqa: E402

from vitbook.data import matching_pairs  # noqa: E402

CHAPTER = "vit/hybrids.html"  # the first of its predictions has choices
PAGES = ["index.html", "preview.html", CHAPTER, "appendix/claims.html", "search.html?q=softmax"]

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
box.querySelector(".ask-sure [value='70']").click();
const rest = box.parentElement.querySelector(".ask-rest");
return [box.querySelector(".ask-said").textContent, rest.offsetHeight > 99 && !rest.hidden,
    document.activeElement.className];
"""
VERDICT = 'return document.querySelector(".predict[data-choices] .ask-said").textContent'
LINK = 'return document.querySelector(".back-on").href'


def test_firefox_commits_keeps_and_leads_back(firefox, address):
    firefox.open(f"{address}/{CHAPTER}")
    said, is_open, focus = firefox.run(ANSWER)
    assert said.startswith("You said ")
    assert ", fairly sure. " in said
    assert (is_open, focus) == (True, "ask-said")
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


# --- live figures ---


class Page:
    """What the tests ask of a page in Chromium, asked of Firefox."""

    def __init__(self, firefox, address):
        self.firefox = firefox
        firefox.open(address)

    def evaluate(self, expression, given=None):
        """What a function, or an expression, gives in the page."""
        return self.firefox.run(
            f"const globalThis = window, asked = ({expression});"
            f"return typeof asked === 'function' ? asked({json.dumps(given)}) : asked"
        )

    def start(self, name):
        """Bring a figure into view and wait until it has drawn itself."""
        self.evaluate(START, name)
        return self


START = """name => new Promise((done, failed) => {
    const figure = document.getElementById("live-" + name), begin = performance.now();
    (function look() {
        figure.scrollIntoView();
        if (figure.classList.contains("live-running")) done();
        else if (performance.now() - begin > 30000) failed(new Error(name + " does not run"));
        else setTimeout(look, 50);
    })();
})"""
NET = draw.NET.replace("#live-draw", "#live-NAME")


def live_figures():
    """(page, figure) of the built site."""
    for path in sorted(HTML.rglob("*.html")):
        if "data-live" in (text := path.read_text("utf8")):
            soup = BeautifulSoup(text, "html.parser")
            for one in soup.select("[data-live]"):
                yield path.relative_to(HTML).as_posix(), one["data-live"]


def test_every_live_figure_draws_itself_in_firefox(firefox, address):
    before, found = firefox.errors(address), list(live_figures())
    assert len(found) >= 6
    for page, name in found:
        Page(firefox, f"{address}/{page}").start(name)
    assert firefox.errors(address)[len(before) :] == []


@pytest.mark.parametrize(("page", "name"), [("preview", "cut"), ("vit/looking_depth_draw", "draw")])
def test_the_models_in_the_pages_compute_what_the_package_computes(firefox, page, name):
    opened = Page(firefox, (HTML / f"{page}.html").as_uri()).start(name)
    opened.evaluate(NET.replace("NAME", name))
    if name == "cut":
        net, images = frame.recorded(), matching_pairs(50, seed=7).images
    else:
        net = draw.stored()[0]
        images = draw.pixels([one for one in draw.drawings() if one.label.isdecimal()][::5])
    assert len(images) >= 50
    frame.agree(frame.in_page(opened, images), frame.in_python(net, images))


@pytest.mark.parametrize(
    "agrees",
    [
        in_hand.test_the_softmax_is_that_of_python,
        in_hand.test_turned_and_added_scores_are_those_of_python,
        in_hand.test_the_likeness_of_patches_is_that_of_the_tables,
    ],
)
def test_the_other_figures_say_pythons_numbers(firefox, tmp_path, agrees):
    address = write_page(tmp_path).as_uri()
    agrees(lambda name: Page(firefox, f"{address}#live-{name}").start(name))
