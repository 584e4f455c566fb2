"""What readers do with a prediction: guess, look, say how sure, come back, take it back.

`answerable.py` has the pages. They stand below a path, /html/, as many a course's page does.
"""

import io
import json
import re

import numpy as np
import pytest
from answerable import CHAPTER, FRONT, FRONT_SHELL, HTML, KEY, SHELL, put_into, rendered
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from PIL import Image
from test_site import CHAPTERS, DARK, OPTIONS, STILL, VIEWS, served

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture(scope="module")
def pages(built, tmp_path_factory):
    made = rendered(tmp_path_factory.mktemp("pages"))
    chapter, front = put_into(SHELL, made["part/heads"]), put_into(FRONT_SHELL, made["index"])
    return {CHAPTER: chapter, FRONT: front}


@pytest.fixture(scope="module")
def address():
    with served(HTML.parent) as address:
        yield f"{address}/html"


SEEN = "e => e.checkVisibility({ visibilityProperty: true })"


class Reader:
    """A page, and what its browser keeps."""

    def __init__(self, context, address):
        self.context, self.address = context, address
        self.page = context.new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append((request.method, request.url)))

    def open(self, name=CHAPTER):
        self.page.goto(f"{self.address}/{name}", wait_until="load")
        return self

    def box(self, name):
        return self.page.locator(f"#predict-heads-{name}")

    def guess(self, name, answer, look="Look"):
        """Answer the box, and look: with "Look", of a number "Keep 50 %", or with one of the words
        for how sure."""
        box = self.box(name)
        if name == "share" and look == "Look":
            look = f"Keep {answer} %"
        if name == "view":
            box.get_by_role("radio", name=answer).check()
        elif name == "share":
            box.get_by_role("slider").fill(answer)
        else:
            box.get_by_role("textbox").fill(answer)
        if look:
            box.get_by_role("button", name=look, exact=True).click()
        return " ".join(box.locator(".ask-said p").inner_text().split()) if look else ""

    def keep(self, **state):
        """Plant what earlier visits left."""
        self.page.evaluate(
            "([key, value]) => localStorage.setItem(key, value)", [KEY, json.dumps(state)]
        )
        return self

    def kept(self):
        return json.loads(self.page.evaluate(f"localStorage.getItem('{KEY}')") or "{}")

    def lines(self):
        """The box at the end, line by line."""
        text = self.page.locator(".progress-box").inner_text()
        return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def answer_with(html):
    return lambda route: route.fulfill(body=html, content_type="text/html")


@pytest.fixture(scope="module")
def contexts(browser, pages):
    """contexts(view, **context): the browser of each kind, whose cache all its readers share."""
    made = {}

    def of(view, **options):
        name = view, *sorted(options)
        if name not in made:
            made[name] = browser.new_context(reduced_motion="reduce", **VIEWS[view] | options)
            for page, html in pages.items():
                made[name].route(f"**/html/{page}*", answer_with(html))
        return made[name]

    yield of
    for context in made.values():
        context.close()


@pytest.fixture
def reader(contexts, address):
    """reader(view, **context): a Reader who has opened nothing yet, and whose browser has kept
    nothing."""
    readers = []

    def made(view="light", **options):
        readers.append(Reader(contexts(view, **options), address))
        return readers[-1]

    yield made
    for one in readers:
        if one.page.url.startswith(address):
            one.page.evaluate("localStorage.clear()")
        one.page.close()


def test_looking_opens_the_answer_and_the_rest_and_says_what_was_said(reader):
    one = reader().open()
    box = one.box("view")
    answer, rest = box.get_by_text("They share the width."), one.page.get_by_text("tells it: 48")
    assert not answer.is_visible()
    assert not rest.evaluate(SEEN)
    assert not box.get_by_role("button", name="Look", exact=True).is_visible()  # nothing is chosen
    said = one.guess("view", "one half", "fairly")
    assert said == "You said one half, fairly sure. Right is the same."
    assert box.locator(".ask-said em").inner_text() == "same"
    assert answer.is_visible()
    assert rest.evaluate(SEEN)
    assert box.locator(".ask-said").evaluate("e => e === document.activeElement")
    assert box.locator(".ask-said").get_attribute("role") == "status"
    assert not box.get_by_role("button", name="Look", exact=True).is_visible()
    assert one.errors == []


def test_what_is_said_of_a_choice_of_a_number_and_of_words(reader):
    one = reader().open()
    assert one.guess("view", "the same") == "You said the same. That is right."
    assert one.kept()["answers"] == {"heads-view": {"said": "the *same*", "mark": 1}}
    ring = one.box("share").get_by_role("slider")
    assert ring.get_attribute("aria-valuetext") == "no guess yet"  # its first place is none
    ring.press("Enter")
    assert not one.box("share").get_by_role("button", name=re.compile("Look|Keep")).is_visible()
    for number, words in (
        ("50", "That is right."),
        ("45", "It is 50 %: your guess is 5 % too low, near enough."),
        ("56", "It is 50 %: your guess is 6 % too high."),
    ):
        assert one.guess("share", number) == f"You said {number} %. {words}"
        one.box("share").get_by_role("button", name="take it back").click()
    said = one.guess("words", "Like <b>this</b>", "a guess")  # only the reader can compare
    assert said == "You said “Like <b>this</b>”, a guess."
    assert one.kept()["answers"]["heads-words"] == {"said": "Like <b>this</b>", "sure": 50}


ANSWERED = [("view", "one half"), ("view", "the same"), ("words", "So")]
ANSWERED += [("share", number) for number in ("1", "50", "99")]


@pytest.mark.parametrize("view", ["light", "phone"])
def test_the_button_of_a_number_names_what_it_keeps_and_keeps_its_width(reader, view):
    one = reader(view).open()
    ring, button = (one.box("share").locator(of) for of in (".ask-track input", ".predict-button"))
    assert button.text_content() == "Look"  # there is nothing to keep
    widths = set()
    for key, words in (
        ("ArrowRight", "Keep 1 %"),
        ("ArrowRight", "Keep 2 %"),
        ("End", "Keep 100 %"),
        ("ArrowLeft", "Keep 99 %"),
    ):
        ring.press(key)
        assert button.inner_text() == words
        assert one.box("share").get_by_role("button", name=words, exact=True).is_visible()
        assert ring.get_attribute("aria-valuetext") == words.removeprefix("Keep ")
        widths.add(round(button.bounding_box()["width"]))
    assert len(widths) == 1
    button.click()
    assert one.kept()["answers"]["heads-share"]["said"] == "99"
    one.box("share").get_by_role("button", name="take it back").click()
    assert button.text_content() == "Look"


@pytest.mark.parametrize("view", ["light", "phone"])
def test_a_prediction_keeps_its_height(reader, view):
    one = reader(view).open()
    for name, answer in ANSWERED:
        box = one.box(name)
        heights = [box.bounding_box()["height"]]
        one.guess(name, answer, look="")
        heights.append(box.bounding_box()["height"])
        box.get_by_role("button", name="fairly").click()
        heights.append(box.bounding_box()["height"])
        assert max(heights) - min(heights) < 1, (answer, heights)
        box.get_by_role("button", name="take it back").click()


def test_whoever_skips_one_is_not_counted_and_sees_the_next_one_closed(reader):
    one = reader().open()
    one.box("view").get_by_role("button", name="skip, and look").click()
    assert one.box("view").get_by_text("They share the width.").is_visible()
    assert one.box("view").locator(".ask-said").inner_text() == "The answer: the same."
    assert one.page.get_by_text("tells it: 48").evaluate(SEEN)
    assert not one.box("share").get_by_text("Half of them.").is_visible()
    assert "answers" not in one.kept()
    assert one.lines()[0] == "0 of 3 predictions of this page made."
    one.page.get_by_text("1. Why?").click()  # a fold without buttons
    assert one.page.get_by_text("Because.", exact=True).is_visible()
    assert one.page.locator("#concept-check :is(button, input)").count() == 0


def test_reading_without_guessing_is_offered_once_and_remembered(reader):
    one = reader().open()
    assert one.page.get_by_role("button", name="read without guessing").count() == 1
    one.box("view").get_by_role("button", name="read without guessing").click()
    one.open()
    for words in ("They share the width.", "Half of them.", "Like a diagonal."):
        assert one.page.get_by_text(words).is_visible()
    assert one.page.get_by_text("tells it: 48").evaluate(SEEN)
    one.box("view").get_by_role("button", name="ask me first").click()
    assert not one.page.get_by_text("Half of them.").is_visible()


@pytest.mark.parametrize(
    ("place", "is_seen"),
    [
        ("#how-they-are-cut", False),
        ("#behind-it", True),
        ("?found#how-they-are-cut", True),
        ("?found#how-much-is-lost", False),
    ],
)
def test_a_link_or_a_hit_of_the_search_opens_what_it_leads_to(reader, place, is_seen):
    one = reader().open(CHAPTER + place)
    assert one.page.get_by_text("Only who has guessed").evaluate(SEEN) == is_seen
    assert one.box("view").get_by_text("They share the width.").is_visible() == is_seen
    assert not one.box("words").get_by_text("Like a diagonal.").is_visible()
    one.page.evaluate("location.hash = 'behind-it'")
    one.page.wait_for_function(f"({SEEN})(document.querySelector('#behind-it p'))")
    top = one.page.locator("#behind-it").bounding_box()["y"]
    assert -1 < top < 200


def test_what_was_said_is_there_again_and_can_be_taken_back(reader):
    one = reader().open()
    one.guess("view", "twice", "a guess")
    one.open()
    box = one.box("view")
    assert "You said twice, a guess." in box.inner_text()
    assert box.get_by_text("They share the width.").is_visible()
    box.get_by_role("button", name="take it back").click()
    assert not box.get_by_text("They share the width.").is_visible()
    assert not one.page.get_by_text("tells it: 48").evaluate(SEEN)
    assert box.locator("input:checked").count() == 0
    assert box.locator(":focus").get_attribute("value") == "one half"
    assert one.open().kept()["answers"] == {}


ANSWERS = [(90, 1)] * 6 + [(90, 0)] * 4 + [(50, 1), (50, 0.5), (99, 1), (99, None)]


def planted(pairs):
    found = {}
    for at, (sure, mark) in enumerate(pairs):
        found[f"c9-{at}"] = {"said": "", "sure": sure} | ({} if mark is None else {"mark": mark})
    return found


def test_the_front_page_counts_how_many_were_right_at_each_level(reader):
    one = reader().open(FRONT).keep(answers=planted(ANSWERS)).open(FRONT)
    assert one.page.locator(".progress-table tr").all_inner_texts() == [
        "a guess\t1½ of 2 right\t",
        "very sure: 90 %\t6 of 10 right\t",
        "certain: 99 %\t1 of 1 right\t",
    ]
    bars = one.page.locator(".progress-bar")
    drawn = bars.evaluate_all("all => all.map(e => e.style.getPropertyValue('--right'))")
    assert drawn == ["75%", "60%", "100%"]
    assert one.lines()[-2] == (
        "Guesses left out, you were 91 % sure on average and 64 % right. You are surer than right."
    )


JUDGED = [
    ([(70, 1)] * 9 + [(50, 0)], "you have 9."),
    ([(70, 1)] * 9 + [(70, 0)], "You know more than you think."),
    ([(70, 1)] * 7 + [(70, 0)] * 3, "You know what you know."),
    ([(70, 1)] * 5 + [(70, 0.5)] * 4 + [(70, 0)], "You know what you know."),
    ([(70, 1)] * 5 + [(70, 0)] * 5, "You are surer than right."),
    ([], "you have none."),
]


def test_the_front_page_says_what_the_answers_say_about_the_reader(reader):
    one = reader().open(FRONT)
    for pairs, words in JUDGED:
        one.keep(answers=planted(pairs), done={"part/heads": True}).open(FRONT)
        assert one.lines()[-2].endswith(words)


def test_forgetting_asks_first(reader):
    one = reader().open().keep(answers=planted(ANSWERS), done={"part/heads": True}).open()
    one.guess("view", "twice", "a guess")
    one.page.once("dialog", lambda dialog: dialog.dismiss())
    one.page.get_by_role("button", name="Forget all").click()
    assert len(one.kept()["answers"]) == 15
    one.page.once("dialog", lambda dialog: dialog.accept())
    one.page.get_by_role("button", name="Forget all").click()
    assert not {"answers", "done"} & {*one.kept()}
    assert one.box("view").get_by_role("radio", name="twice").is_visible()


def test_keys_alone_will_do(reader):
    one = reader().open()
    keys = one.page.keyboard
    one.box("view").get_by_role("radio", name="one half").focus()
    for key in ("ArrowDown", "Tab", "Tab", "Tab", "Enter"):  # Look, a guess, fairly
        keys.press(key)
    assert one.kept()["answers"] == {"heads-view": {"said": "the *same*", "sure": 70, "mark": 1}}
    for key in ("Tab", "Enter"):  # "take it back"
        keys.press(key)
    assert one.kept()["answers"] == {}


def test_a_browser_that_keeps_nothing_says_so_and_works(reader):
    one = reader()
    refuse = "() => { throw new DOMException('no', 'SecurityError'); }"
    script = f"for (const name of ['getItem', 'setItem']) Storage.prototype[name] = {refuse};"
    one.page.add_init_script(script)
    one.open()
    assert one.guess("view", "twice").endswith("Right is the same.")
    assert one.lines()[-1].startswith("This browser keeps nothing")


def test_what_does_not_fit_any_more_is_asked_for_anew_and_written_over(reader):
    said = {"said": "three times", "sure": 70, "mark": 0}
    one = reader().open().keep(answers={"heads-view": said}).open()
    assert one.box("view").get_by_role("radio", name="twice").is_visible()
    one.page.evaluate(f"localStorage.setItem('{KEY}', '{{oh')")
    one.open().guess("view", "twice", "certain")
    assert one.kept()["answers"] == {"heads-view": {"said": "twice", "sure": 99, "mark": 0}}
    assert one.errors == []


def test_without_a_script_all_is_open(reader):
    one = reader(java_script_enabled=False).open()
    assert one.page.locator("form").filter(has=one.page.get_by_role("radio")).count() == 0
    assert not one.page.locator(".progress-box").is_visible()
    assert one.box("view").locator(".predict-choices li").count() == 3
    for words in ("They share the width.", "What follows tells it", "Only who has guessed"):
        assert one.page.get_by_text(words).is_visible()
        assert one.page.get_by_text(words).bounding_box()["height"] > 10
    assert not one.page.locator(".ask-more").first.is_visible()


def answer_all(one):
    one.guess("view", "twice", "fairly")
    one.guess("share", "50", "certain")
    one.guess("words", "A stripe", "a guess")


def barriers(one, view):
    if view == "dark":
        one.page.wait_for_function(DARK)
    one.page.add_style_tag(content=STILL)
    results = Axe().run(one.page, context=".bd-article", options=OPTIONS)
    return results.generate_report() if results.violations_count else ""


@pytest.mark.parametrize("view", ["dark", "phone"])  # the widths differ, and the colours
def test_there_is_no_barrier_before_and_after_and_on_the_front_page(reader, view):
    one = reader(view).open()
    one.box("view").get_by_role("radio", name="twice").check()
    assert barriers(one, view) == ""
    answer_all(one)
    assert barriers(one, view) == ""
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1
    one.page.get_by_role("button", name="I have read this chapter").click()
    one.open(FRONT)
    assert one.page.locator(".progress-box").is_visible()
    assert barriers(one, view) == ""
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1


SMALL = """() => [...document.querySelectorAll(
    '.predict :is(label, button, input[type=range]), .progress-box button, .progress-chapters a')]
    .filter(e => e.checkVisibility({ visibilityProperty: true }))
    .map(e => [e.innerText, e.getBoundingClientRect()])
    .filter(([, box]) => box.height && box.height < 43.5)
    .map(([text, box]) => `${text}: ${box.height}`)"""


def test_a_finger_hits_everything_and_nothing_is_sent_anywhere(reader):
    one = reader("phone", has_touch=True, is_mobile=True).open()
    assert one.page.evaluate(SMALL) == []
    answer_all(one)
    assert one.page.evaluate(SMALL) == []
    assert {method for method, _ in one.requests} == {"GET"}
    assert [url for _, url in one.requests if not url.startswith((one.address, "data:"))] == []


def test_what_was_kept_under_old_names_goes_by_the_new_ones_once(reader):
    said = {"said": "", "sure": 70, "mark": 1}
    old = {"c5-one-query": said, "attention/05_qk_merge#check-2": said, "front-map": said}
    now = {"qk-merge-one-query": said, "attention/qk_merge#check-2": said, "front-map": said}
    last = {"page": "vit/12_looking", "title": "Looking", "anchor": "sec-c12-rows", "section": "So"}
    one = reader().open(FRONT).keep(answers=old, done={"00_preview": True}, last=last).open(FRONT)
    kept = one.kept()
    assert kept["answers"] == now
    assert kept["done"] == {"preview": True}
    assert kept["last"] == {**last, "page": "vit/looking", "anchor": "sec-looking-rows"}
    assert one.open(FRONT).kept() == kept


def test_a_page_opened_as_a_file_keeps_its_answers_too(open_page):
    page = open_page(CHAPTERS[1])
    box = page.locator(".predict").first
    box.get_by_role("radio").first.check()
    box.get_by_role("button", name="certain").click()
    page.wait_for_timeout(500)  # from a disk, a page loaded again at once may find nothing yet
    page.reload(wait_until="load")
    assert ", certain." in box.locator(".ask-said").inner_text()


AXES_OF = "attention/scaled_dot_product.html", "#predict-scaled-dot-product-typical-gradient"


def seen_of(page, theme):
    """Are the axes alone seen, is the plot?"""
    box = page.locator(AXES_OF[1])
    parts = [box.locator(name) for name in (".figure-axes img", f"img.only-{theme}")]
    parts[1].scroll_into_view_if_needed()
    return [part.evaluate(SEEN) for part in parts]


@pytest.mark.parametrize("view", VIEWS)
def test_a_plot_that_waits_for_a_guess_is_its_own_axes_until_then(open_page, view):
    theme = "dark" if view == "dark" else "light"
    page = open_page(AXES_OF[0], **VIEWS[view])
    assert seen_of(page, theme) == [True, False]
    box = page.locator(AXES_OF[1])
    axes, plot = box.locator(".figure-axes"), box.locator(f"img.only-{theme}")
    page.wait_for_function("e => e.complete", arg=axes.locator("img").element_handle())
    for side, length in plot.bounding_box().items():
        assert abs(length - axes.locator("img").bounding_box()[side]) < 1, side
    page.add_style_tag(content=".figure-axes::after { content: none !important }")
    pixels = np.asarray(Image.open(io.BytesIO(axes.screenshot())).convert("RGB"), dtype=int)
    assert np.ptp(pixels[-40:].mean(2)) > 150  # words below, in an ink that reads on the ground
    assert np.ptp(pixels, axis=2).max() < 40  # no colour of the plot
    page.emulate_media(media="print")
    assert seen_of(page, "light") == [False, True]
    page.emulate_media(media="screen")
    box.get_by_role("button", name="skip, and look").click()
    assert seen_of(page, theme) == [False, True]


WAITS = """boxes => boxes.filter(box => box.offsetHeight > 0).map(box => [
    [box, '::before'], [box.querySelector('.figure-axes'), '::after'],
    [box.querySelector('caption'), '::after'],
].filter(([e, part]) => e && getComputedStyle(e, part).content === '"your guess first"').length)"""


@pytest.mark.parametrize("chapter", ["attention/qk_merge.html", "attention/many_heads.html"])
def test_each_output_that_waits_for_a_guess_says_so_once(open_page, chapter):
    outputs = open_page(chapter).locator(".predict:not(.is-open) > .ask-output")
    said = outputs.evaluate_all(WAITS)
    assert set(said) == {1}


def test_without_a_script_no_plot_waits(open_page):
    page = open_page(AXES_OF[0], java_script_enabled=False)
    assert seen_of(page, "light") == [False, True]


def test_axes_alone_stand_in_predictions_only_and_cover_their_plots(built):
    found = 0
    for path in HTML.rglob("*.html"):
        text = path.read_text("utf8")
        if "figure-axes" not in text:
            continue
        for axes in BeautifulSoup(text, "html.parser").select(".figure-axes"):
            assert axes.find_parent(class_="ask-output"), path
            sizes = [(int(one["width"]), int(one["height"])) for one in axes.parent.select("img")]
            assert np.ptp(sizes, axis=0).max() <= 1, path
            found += 1
    assert found > 15


# What a reader sees of a page while a prediction asks, but for the prediction itself: the texts
# with a digit, and whether each stands in its section. The summary is for those who have read all.
NEAR_AND_FAR = r"""(group) => {
    const rows = [], article = document.querySelector(".bd-article");
    const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    for (let text; (text = walk.nextNode());) {
        const at = text.parentElement;
        if (!/\d/.test(text.data)) continue;
        if (at.closest("#summary, pre, .katex-mathml, .visually-hidden")) continue;
        if (group.contains(at) && !at.closest(".ask-output")) continue;
        if (!at.checkVisibility({ visibilityProperty: true })) continue;
        rows.push([text.data, group.parentElement.closest("section").contains(at)]);
    }
    return rows;
}"""
GLUED = ".predict-explained .pasted-text"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Looked at one by one: what the chapter shows before it asks, none of it the answer, ...
KNOWN = {
    "preview-three-methods-order": {"98.9", "359"},  # the ViT's accuracy, the number of images
    "block-warm-up": {"0.004", "3"},  # a rate, the number of starts
    "hybrids-fixed": {"94"},  # the table that answers the prediction before it
    # ... and other quantities of the same value.
    "positions-two-shuffles": {"0.4", "0.6"},
    "training-rate-cliff": {"96.7"},
    "weight-sharing-five-against-one": {"100"},
    "what-attention-buys-half-right": {"13"},
}


def told_before(page):
    """Prediction -> the numbers glued into its answer that are seen while it asks."""
    found = {}
    for group in page.locator(".predict[data-predict]").all():
        glued = NUMBER.findall(" ".join(group.locator(GLUED).all_text_contents()))
        for text, near in group.evaluate(NEAR_AND_FAR):
            for number in set(NUMBER.findall(text)) & set(glued):
                if near or len(number) > 2:  # 8 stands on every page
                    found.setdefault(group.get_attribute("data-predict"), set()).add(number)
        group.locator("button", has_text="skip, and look").click()
    return found


def test_no_number_of_an_answer_is_seen_before_it_is_open(open_page):
    found, asked, page = {}, 0, open_page("index.html")
    for path in sorted(HTML.rglob("*.html")):
        if 'data-predict="' in path.read_text("utf8") and path.name != "index.html":
            page.goto(path.as_uri(), wait_until="load")
            asked += page.locator(GLUED).count()
            found |= told_before(page)
    assert asked > 50
    assert found == KNOWN
