"""Report a mistake: from a sentence on the page to the form, with a mouse and with a finger."""

from urllib.parse import parse_qs, urlsplit

import pytest
from answerable import VIEWS

CHAPTER = "vit/training.html"
# the first sentence of a section in the middle of the page, marked as a reader marks it
MARK = """() => {
    const section = [...document.querySelectorAll(".bd-article section section[id]")]
        .find(one => one.querySelector(":scope > p"));
    const words = section.querySelector(":scope > p");
    words.scrollIntoView();
    const text = document.createTreeWalker(words, NodeFilter.SHOW_TEXT).nextNode();
    document.getSelection().setBaseAndExtent(text, 0, text, text.length);
    return [section.id, text.data.replace(/\\s+/g, " ").trim()];
}"""

pytestmark = pytest.mark.site


@pytest.mark.browser
@pytest.mark.parametrize("finger", [False, True], ids=["mouse", "finger"])
def test_the_form_that_opens_has_section_and_sentence(open_page, finger):
    view = VIEWS["phone"] | {"has_touch": True, "is_mobile": True} if finger else {}
    page, opened = open_page(CHAPTER, **view), []

    def answer(route):
        opened.append(route.request.url)
        route.fulfill(body="a form", content_type="text/html")

    page.route("https://github.com/**", answer)
    section, sentence = page.evaluate(MARK)
    link = page.locator(".report-link")
    page.wait_for_function("document.querySelector('.report-marked').textContent")
    assert sentence[:40] in link.inner_text()
    if finger:  # a first tap beside the link unmarks the sentence
        page.locator("footer .copyright").tap()
        page.evaluate("document.getSelection().removeAllRanges()")
        link.tap()
    else:
        link.click()
    page.wait_for_url("https://github.com/**")
    filled = parse_qs(urlsplit(opened[0]).query)
    assert filled["sentence"] == [sentence]
    assert filled["section"][0].endswith(f" (#{section})")
    assert filled["page"] == [CHAPTER]
