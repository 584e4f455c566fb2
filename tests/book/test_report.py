"""The foot of every page, which reports a mistake, and the forms in which reports arrive."""

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from website.theme import report
from website.theme.page import Page

ROOT = Path(__file__).resolve().parents[2]
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"

GITHUB = "https://github.com/somebody/book"
# What an address could break on: quotes, ampersands, hashes, signs of four bytes.
SENTENCE = 'A "map" & <b>not</b> a #cause? 100 % of + and = \\ñ 𝔸.'
# The addresses that GitHub answers are shorter than 8 KiB.
LONGEST = 8000


def foot(repository, page="vit/patches"):
    options = {"repository_url": repository} if repository is not None else {}
    config = SimpleNamespace(html_theme_options=options, release="0.1.0")
    context = {"theme_extra_footer": "Text: CC BY.", "title": "8. <code>P</code> &amp; N"}
    app = SimpleNamespace(config=config)
    report.add_foot(Page(app, page, context, doctree=None))
    return BeautifulSoup(context["theme_extra_footer"], "html.parser")


def filled(address):
    """The query of an address, each name once."""
    return {name: "".join(values) for name, values in parse_qs(urlsplit(address).query).items()}


def form(path):
    return yaml.safe_load(path.read_text("utf8"))


def ids(path):
    return [element["id"] for element in form(path)["body"] if "id" in element]


@pytest.mark.parametrize("repository", [GITHUB, f"{GITHUB}/"])
def test_without_a_script_the_foot_links_to_a_form_that_knows_page_and_release(repository):
    link = foot(repository).select_one("a.report-link")
    assert link.text == "Report a mistake"
    assert link["href"].startswith(f"{GITHUB}/issues/new?")
    page = {"page": "vit/patches.html", "release": "0.1.0"}
    assert filled(link["href"]) == {"template": "reader.yml", "title": "Mistake: 8. P & N", **page}
    assert set(page) < set(ids(FORMS / "reader.yml"))


@pytest.mark.parametrize("repository", [None, "", "https://git.example.org/a/book"])
def test_where_there_is_no_repository_on_github_the_foot_has_a_text_to_be_copied(repository):
    made = foot(repository)
    assert made.select(".report a") == []
    assert made.select_one("summary").text == "Report a mistake"
    assert made.select_one("pre").text == "Page: vit/patches.html\nRelease: 0.1.0\n"


@pytest.fixture
def opened(new_page):
    """A page with a foot, its scripts running; from a disk, as a reader without a server has it."""

    def opened(repository):
        page = new_page()
        page.set_content(
            f"""<article class="bd-article"><section id="top"><h1>Top</h1>
            <section id="what-d-does"><h2>What <b>d</b> does<a class="headerlink">#</a></h2>
            <p id="sentence"></p><p id="long">{"𝔸" * 5000}</p>
            <p id="formula">It is <span class="katex"><span class="katex-mathml"><math><semantics>
            <mi>d</mi><annotation>\\sqrt d</annotation></semantics></math></span><span
            class="katex-html" aria-hidden="true"><i>shown</i></span></span>.</p>
            </section></section></article>
            <footer><p id="elsewhere">Elsewhere</p>{foot(repository)}</footer>"""
        )
        page.evaluate("text => document.querySelector('#sentence').textContent = text", SENTENCE)
        page.add_script_tag(path=ROOT / "website/theme/static" / "report.js")
        return page

    return opened


def mark(page, what):
    page.evaluate(
        "what => document.getSelection().selectAllChildren(document.querySelector(what))", what
    )
    page.wait_for_timeout(200)


SAID = {"#sentence": SENTENCE, "#long": "𝔸" * 399 + "…", "#formula": "It is $\\sqrt d$."}


@pytest.mark.browser
def test_what_is_marked_arrives_whole_and_in_an_address_that_github_answers(opened):
    page = opened(GITHUB)
    link = page.locator(".report-link")
    plain = link.get_attribute("href")
    for what, said in SAID.items():
        mark(page, "#elsewhere")  # not of the article
        assert link.get_attribute("href") == plain
        mark(page, what)
        address = link.get_attribute("href")
        assert len(address) < LONGEST
        section = {"section": "What d does (#what-d-does)", "sentence": said}
        assert filled(address) == {**filled(plain), **section}
        assert set(section) < set(ids(FORMS / "reader.yml"))
        page.evaluate("document.getSelection().removeAllRanges()")
        page.wait_for_timeout(200)
        assert link.get_attribute("href") == address
        page.get_by_role("button", name="Leave the sentence out").click()
        assert link.get_attribute("href") == plain
    page.evaluate(  # a part of a formula is told as the whole
        """() => {
            const [shown, end] = ["#formula i", "#formula"].map(one => document.querySelector(one));
            document.getSelection().setBaseAndExtent(shown.firstChild, 2, end.lastChild, 1);
        }"""
    )
    page.wait_for_timeout(200)
    assert filled(link.get_attribute("href"))["sentence"] == "$\\sqrt d$."
    page.evaluate("document.querySelector('#sentence').textContent = 'half \\ud835'")
    mark(page, "#sentence")  # half a sign breaks nothing
    assert quote("half") in link.get_attribute("href")


@pytest.mark.browser
@pytest.mark.parametrize("allowed", [True, False])
def test_without_a_repository_the_button_copies_the_same_lines_or_marks_them(opened, allowed):
    page = opened(None)
    page.evaluate(
        """allowed => Object.defineProperty(navigator, "clipboard", {value: allowed
            ? {writeText: async (text) => { window.copied = text; }} : undefined})""",
        allowed,
    )
    mark(page, "#sentence")
    page.locator(".report summary").click()
    page.locator(".report-copy").click()
    lines = [
        "Page: vit/patches.html",
        "Release: 0.1.0",
        "Section: What d does (#what-d-does)",
        f"Sentence: {SENTENCE}\n",
    ]
    got = page.evaluate("window.copied") if allowed else page.evaluate("`${getSelection()}\\n`")
    assert got == "\n".join(lines)
    said = "Copied" if allowed else "Marked: copy it now"
    assert page.locator(".report-copy").text_content() == said
