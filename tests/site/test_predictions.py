"""What readers do with a prediction: choose, say how sure, commit, come back, take it back.

`answerable.py` has the pages. They stand below a path, /html/, as many a course's page does.
"""

import json
import re

import pytest
from answerable import CHAPTER, FRONT, FRONT_SHELL, HTML, KEY, SHELL, put_into, rendered
from axe_playwright_python.sync_playwright import Axe
from test_site import CHAPTERS, DARK, OPTIONS, STILL, VIEWS, served

pytestmark = [pytest.mark.site, pytest.mark.browser]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    if not (HTML / "index.html").is_file():
        pytest.fail("there is no site in _build/html: run make book first", pytrace=False)
    made = rendered(tmp_path_factory.mktemp("pages"))
    chapter, front = put_into(SHELL, made["part/heads"]), put_into(FRONT_SHELL, made["index"])
    return {CHAPTER: chapter, FRONT: front}


@pytest.fixture(scope="module")
def address():
    with served(HTML.parent) as address:
        yield f"{address}/html"


class Reader:
    """A browser window of its own, with what it keeps."""

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

    def check(self, number):
        return self.page.locator(".predict-check").nth(number - 1)

    def commit(self, box, sure=None):
        if sure:
            box.get_by_role("radio", name=sure).check()
        box.get_by_role("button", name="Commit").click()

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


@pytest.fixture
def reader(browser, address, pages):
    """reader(view, **context): a Reader who has opened nothing yet."""
    contexts = []

    def made(view="light", **options):
        context = browser.new_context(**{**VIEWS[view], "reduced_motion": "reduce", **options})
        contexts.append(context)
        for name, html in pages.items():
            context.route(f"**/html/{name}", answer_with(html))
        return Reader(context, address)

    yield made
    for context in contexts:
        context.close()


def test_a_choice_that_is_committed_opens_the_answer_and_says_what_was_said(reader):
    one = reader().open()
    box = one.box("view")
    assert not box.get_by_text("They share the width.").is_visible()
    box.get_by_role("radio", name="one half").check()
    one.commit(box, "very sure")
    assert " ".join(box.locator(".predict-verdict").inner_text().split()) == (
        "You said, very sure: one half It was: the same ✗ Wrong."
    )
    assert box.locator(".predict-was em").inner_text() == "same"
    assert box.get_by_text("They share the width.").is_visible()
    assert box.locator("summary").evaluate("e => e === document.activeElement")
    assert box.locator(".predict-verdict").get_attribute("role") == "status"
    assert not box.get_by_role("button", name="Commit").is_visible()
    assert one.errors == []


def test_the_right_choice_is_called_right(reader):
    one = reader().open()
    one.box("view").get_by_role("radio", name="the same").check()
    one.commit(one.box("view"), "certain")
    assert "✓ Right." in one.box("view").inner_text()
    assert one.kept()["answers"] == {"heads-view": {"said": "the *same*", "sure": 99, "mark": 1}}


def test_nothing_can_be_committed_without_an_answer_and_without_saying_how_sure(reader):
    one = reader().open()
    for name, words in (
        ("view", "Choose an answer first."),
        ("share", "Write a number first, such as 0.5."),
        ("words", "Write your prediction first; a few words will do."),
    ):
        box = one.box(name)
        one.commit(box, "certain")
        assert box.get_by_role("status").first.inner_text() == words
        assert box.locator(":focus").get_attribute("name") == "said"
    box = one.box("view")
    box.get_by_role("radio", name="twice").check()
    box.locator("form").evaluate("e => { e.sure.forEach(one => { one.checked = false; }); }")
    one.commit(box)
    assert box.get_by_role("status").first.inner_text() == "Say how sure you are."
    assert box.locator(":focus").get_attribute("name") == "sure"
    assert "answers" not in one.kept()


@pytest.mark.parametrize(
    ("number", "sign"),
    [("45", "✓ Right."), ("55", "✓ Right."), ("55.5", "✗ Wrong."), ("-50", "✗ Wrong.")],
)
def test_a_number_is_right_as_far_off_as_it_may_be(reader, number, sign):
    one = reader().open()
    box = one.box("share")
    box.get_by_role("spinbutton").fill(number)
    one.commit(box, "fairly sure")
    said = " ".join(box.locator(".predict-verdict").inner_text().split())
    assert said == f"You said, fairly sure: {number} % It was: 50 % (up to 5 % off is right) {sign}"


def test_an_answer_in_words_is_marked_by_the_reader(reader):
    one = reader().open()
    box = one.box("words")
    box.get_by_role("textbox").fill("Like <b>this</b>")
    one.commit(box, "a guess")
    assert "You guessed:\nLike <b>this</b>" in box.inner_text().replace("\n\n", "\n")
    assert one.kept()["answers"]["heads-words"] == {"said": "Like <b>this</b>", "sure": 50}
    assert any("Not yet marked by you: 1." in line for line in one.lines())
    box.get_by_role("radio", name="Partly").check()
    assert one.kept()["answers"]["heads-words"]["mark"] == 0.5
    assert "a guess ½ of 1 right" in one.lines()


def test_a_concept_check_is_committed_to_and_marked(reader):
    one = reader().open()
    box = one.check(2)
    one.commit(box, "fairly sure")
    assert one.page.get_by_text("So.", exact=True).is_visible()
    assert not one.page.get_by_text("Because.", exact=True).is_visible()
    assert "You were fairly sure." in box.inner_text()
    box.get_by_role("radio", name="Right").check()
    assert one.kept()["answers"] == {"part/heads#check-2": {"said": "", "sure": 70, "mark": 1}}


def test_whoever_only_looks_is_not_asked_and_not_counted(reader):
    one = reader().open()
    one.box("view").get_by_text("Show it without predicting").click()
    assert one.box("view").get_by_text("They share the width.").is_visible()
    assert not one.box("view").get_by_role("button", name="Commit").is_visible()
    assert "answers" not in one.kept()
    assert one.lines()[1] == "0 of 5 questions of this page answered."


def test_what_was_committed_is_there_again_and_can_be_taken_back(reader):
    one = reader().open()
    one.box("view").get_by_role("radio", name="twice").check()
    one.commit(one.box("view"), "a guess")
    one.open()
    box = one.box("view")
    assert "You guessed" in box.inner_text()
    assert box.get_by_text("They share the width.").is_visible()
    box.get_by_role("button", name="Take it back").click()
    assert box.locator(".predict-verdict").inner_text() == ""
    assert not box.get_by_text("They share the width.").is_visible()
    assert box.locator("input:checked").count() == 0
    assert box.locator(":focus").get_attribute("value") == "one half"
    assert one.open().kept()["answers"] == {}


def test_an_answer_to_choices_that_are_no_more_is_asked_for_anew(reader):
    said = {"said": "three times", "sure": 70, "mark": 0}
    one = reader().open().keep(answers={"heads-view": said})
    assert one.open().box("view").get_by_role("button", name="Commit").is_visible()
    assert one.errors == []


ANSWERS = [(90, 1)] * 6 + [(90, 0)] * 4 + [(50, 1), (50, 0.5), (99, 1), (99, None)]


def planted(pairs):
    found = {}
    for at, (sure, mark) in enumerate(pairs):
        found[f"c9-{at}"] = {"said": "", "sure": sure} | ({} if mark is None else {"mark": mark})
    return found


def test_the_box_counts_how_many_were_right_at_each_level(reader):
    one = reader().open().keep(answers=planted(ANSWERS)).open()
    assert one.page.locator(".progress-table tr").all_inner_texts() == [
        "a guess\t1½ of 2 right\t",
        "very sure: 90 %\t6 of 10 right\t",
        "certain: 99 %\t1 of 1 right\t",
    ]
    bars = one.page.locator(".progress-bar")
    drawn = bars.evaluate_all("all => all.map(e => e.style.getPropertyValue('--right'))")
    assert drawn == ["75%", "60%", "100%"]
    assert one.lines()[-2] == (
        "Guesses left out, you were 91 % sure on average and 64 % right. You are surer than right. "
        "Not yet marked by you: 1."
    )


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(70, 1)] * 9 + [(50, 0)], "you have 9."),
        ([(70, 1)] * 9 + [(70, 0)], "You know more than you think."),
        ([(70, 1)] * 7 + [(70, 0)] * 3, "You know what you know."),
        ([(70, 1)] * 5 + [(70, 0.5)] * 4 + [(70, 0)], "You know what you know."),
        ([(70, 1)] * 5 + [(70, 0)] * 5, "You are surer than right."),
        ([], "you have none."),
    ],
)
def test_the_box_says_what_the_answers_say_about_the_reader(reader, pairs, words):
    one = reader().open().keep(answers=planted(pairs)).open()
    assert one.lines()[-2].endswith(words)


def test_a_chapter_is_done_when_the_reader_says_so(reader):
    one = reader().open()
    one.page.get_by_role("button", name="I have read this chapter").click()
    button = one.page.get_by_role("button", name="Read to the end")
    assert button.get_attribute("aria-pressed") == "true"
    assert button.evaluate("e => e === document.activeElement")
    assert one.kept()["done"] == {"part/heads": True}
    button.click()
    assert one.kept()["done"] == {}


def test_forgetting_asks_first(reader):
    one = reader().open().keep(answers=planted(ANSWERS), done={"part/heads": True}).open()
    one.box("view").get_by_role("radio", name="twice").check()
    one.commit(one.box("view"), "a guess")
    one.page.once("dialog", lambda dialog: dialog.dismiss())
    one.page.get_by_role("button", name="Forget all").click()
    assert len(one.kept()["answers"]) == 15
    one.page.once("dialog", lambda dialog: dialog.accept())
    one.page.get_by_role("button", name="Forget all").click()
    assert (one.kept()["answers"], one.kept()["done"]) == ({}, {})
    assert one.box("view").get_by_role("button", name="Commit").is_visible()
    assert one.lines()[-2].endswith("you have none.")


def test_keys_alone_will_do(reader):
    one = reader().open()
    keys = one.page.keyboard
    one.box("view").get_by_role("radio", name="one half").focus()
    for key in ("ArrowDown", "Tab", "Space", "ArrowRight", "ArrowRight", "Tab", "Enter"):
        keys.press(key)
    assert one.kept()["answers"] == {"heads-view": {"said": "the *same*", "sure": 90, "mark": 1}}
    keys.press("Enter")  # the focus is on the fold: it closes
    assert not one.box("view").get_by_text("They share the width.").is_visible()
    for key in ("Tab", "Enter"):  # "Take it back"
        keys.press(key)
    assert one.kept()["answers"] == {}


def test_a_browser_that_keeps_nothing_says_so_and_works(reader):
    one = reader()
    refuse = "() => { throw new DOMException('no', 'SecurityError'); }"
    script = f"for (const name of ['getItem', 'setItem']) Storage.prototype[name] = {refuse};"
    one.page.add_init_script(script)
    one.open()
    one.box("view").get_by_role("radio", name="twice").check()
    one.commit(one.box("view"), "certain")
    assert "✗ Wrong." in one.box("view").inner_text()
    assert one.lines()[-1].startswith("This browser keeps nothing")


def test_what_somebody_else_left_in_its_place_is_written_over(reader):
    one = reader().open()
    one.page.evaluate(f"localStorage.setItem('{KEY}', '{{oh')")
    one.open().check(1).get_by_role("radio", name="certain").check()
    one.commit(one.check(1))
    assert one.kept()["answers"] == {"part/heads#check-1": {"said": "", "sure": 99}}
    assert one.errors == []


def test_without_a_script_each_question_is_a_fold(reader):
    one = reader(java_script_enabled=False).open()
    assert one.page.locator("form.predict-form, .predict-check").count() == 0
    assert not one.page.locator(".progress-box").is_visible()
    assert one.box("view").locator(".predict-choices li").count() == 3
    one.box("view").get_by_text("What happened").click()
    assert one.box("view").get_by_text("They share the width.").is_visible()


def answer_all(one):
    one.box("view").get_by_role("radio", name="twice").check()
    one.box("share").get_by_role("spinbutton").fill("50")
    one.box("words").get_by_role("textbox").fill("A stripe")
    for box in (one.box("view"), one.box("share"), one.box("words"), one.check(1), one.check(2)):
        one.commit(box, "very sure")
    for box in (one.box("words"), one.check(1)):
        box.get_by_role("radio", name="Right").check()


def barriers(one, view):
    if view == "dark":
        one.page.wait_for_function(DARK)
    one.page.add_style_tag(content=STILL)
    results = Axe().run(one.page, options=OPTIONS)
    return results.generate_report() if results.violations_count else ""


@pytest.mark.parametrize("view", VIEWS)
def test_there_is_no_barrier_before_and_after_and_on_the_front_page(reader, view):
    one = reader(view).open()
    one.commit(one.box("view"), "certain")  # with a complaint
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
    '.predict-form label, .predict-own label, .predict button, .predict-check button, '
    + '.predict summary, .progress-box :is(button, a)')]
    .map(e => [e.innerText, e.getBoundingClientRect()])
    .filter(([, box]) => box.height && box.height < 43.5)
    .map(([text, box]) => `${text}: ${box.height}`)"""


def test_a_finger_hits_everything(reader):
    one = reader("phone", has_touch=True, is_mobile=True).open()
    assert one.page.evaluate(SMALL) == []
    answer_all(one)
    assert one.page.evaluate(SMALL) == []


def test_paper_shows_question_choices_and_answer_and_nothing_to_press(reader):
    one = reader().open()
    one.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    one.page.emulate_media(media="print")
    said = one.box("view").inner_text()
    assert all(
        word in said for word in ("How many numbers", "one half", "twice", "share the width")
    )
    shown = one.page.locator(".predict-sure, .predict-form button, .predict-check, .progress-box")
    assert [one for one in shown.all() if one.is_visible()] == []


def test_nothing_is_sent_anywhere(reader):
    one = reader().open()
    answer_all(one)
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


def test_a_page_opened_as_a_file_keeps_its_answers_too(browser):
    name = HTML / CHAPTERS[1]
    page = browser.new_page()
    page.goto(name.as_uri(), wait_until="load")
    check = page.locator(".predict-check").first
    check.get_by_role("radio", name="certain").check()
    check.get_by_role("button", name="Commit").click()
    page.reload(wait_until="load")
    assert "You were certain." in check.inner_text()
    page.close()


def test_the_scripts_are_loaded_where_there_is_something_to_answer():
    asked = {}
    for path in HTML.rglob("*.html"):
        text = path.read_text("utf8")
        asks = re.search(r'data-predict="|id="concept-check"|class="[^"]*progress-box', text)
        scripts = re.findall(r'<script[^>]* src="[^"]*/predict/\w+\.js', text)
        asked[path.relative_to(HTML).as_posix()] = (asks is not None, len(scripts))
    assert {count for asks, count in asked.values() if asks} == {3}
    assert {count for asks, count in asked.values() if not asks} == {0}
