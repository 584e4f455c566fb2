"""Report a mistake: from a sentence on the page to the form, with a mouse and with a finger."""

from urllib.parse import parse_qs, urlsplit

import pytest
from test_site import HTML, served

CHAPTER = "vit/training.html"
READERS = {
    "mouse": {"viewport": {"width": 1280, "height": 900}},
    "finger": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
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
@pytest.mark.parametrize("reader", READERS)
def test_the_form_that_opens_has_section_and_sentence(browser, reader):
    opened = []

    def answer(route):
        opened.append(route.request.url)
        route.fulfill(body="a form", content_type="text/html")

    with served(HTML) as address:
        context = browser.new_context(**READERS[reader])
        context.route("https://github.com/**", answer)
        page = context.new_page()
        page.goto(f"{address}/{CHAPTER}", wait_until="load")
        section, sentence = page.evaluate(MARK)
        link = page.locator(".report-link")
        page.wait_for_function("document.querySelector('.report-marked').textContent")
        assert sentence[:40] in link.inner_text()
        link.scroll_into_view_if_needed()
        assert link.bounding_box()["height"] >= (24 if reader == "mouse" else 44)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if reader == "finger":  # a first tap beside the link unmarks the sentence
            page.locator("footer .copyright").tap()
            page.evaluate("document.getSelection().removeAllRanges()")
            link.tap()
        else:
            link.click()
        page.wait_for_url("https://github.com/**")
        context.close()
    filled = parse_qs(urlsplit(opened[0]).query)
    assert filled["sentence"] == [sentence]
    assert filled["section"][0].endswith(f" (#{section})")
    assert filled["page"] == [CHAPTER]
