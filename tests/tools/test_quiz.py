"""The practice bank, from a small site: what is asked, what is right, what both systems read."""

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tools.quiz import items, moodle, qti, write
from website.build.site import Site
from website.pages.settings import read_settings

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = read_settings(ROOT)
PAGE = """<html><body><h1>4. Heads<a class="headerlink">#</a></h1>
<div class="predict" data-predict="c4-two" data-answer="the same"
  data-choices='["one < half", "the same"]'>
<p class="predict-title">Predict, then run</p><p>How many <em>numbers</em> \\(h\\)?</p>
<div class="ask-both"><div class="ask-asked">
<ul class="predict-choices"><li><p>one half</p></li><li><p>the same</p></li></ul></div>
<div class="predict-explained"><p>See
<a class="reference" href="../notation.html#h">notation</a>.</p></div></div>
<div class="ask-output"><img src="shown.png"></div></div>
<div class="predict" data-predict="c4-number" data-number="0.5" data-within="0.1">
<p class="predict-title">x</p><p>How large?</p>
<div class="ask-both"><div class="predict-explained"><p>Half.</p></div></div></div>
<div class="predict" data-predict="c4-picture"><p>What is shown?</p><img src="a.png">
<div class="ask-both"><div class="predict-explained"><p>A.</p></div></div></div>
<section id="concept-check"><h2>Concept check</h2>
<details><summary><span class="sd-summary-text">1. Why &lt; two?</span><svg></svg></summary>
<div class="sd-summary-content"><p>Because.</p></div></details></section></body></html>"""


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "html" / "attention" / "04_heads.html"
    path.parent.mkdir(parents=True)
    path.write_text(PAGE)
    return Site(tmp_path / "html", ROOT)


def test_questions_are_taken_from_the_pages_but_for_those_that_need_a_picture(site):
    choice, number, words = items(site, SETTINGS)
    assert (choice.choices, choice.answer) == (("one < half", "the same"), "the same")
    assert choice.question == "<p>How many <em>numbers</em> \\(h\\)?</p>"
    link = f"{SETTINGS.release_url}notation.html#h"
    assert choice.explanation == f'<p>See <a href="{link}">notation</a>.</p>'
    assert (number.number, number.within) == ("0.5", "0.1")
    assert (words.question, words.explanation) == ("<p>1. Why &lt; two?</p>", "<p>Because.</p>")
    assert words.page == "4. Heads"


def test_both_systems_get_the_right_answer(site):
    found = list(items(site, SETTINGS))
    quiz = Xml.fromstring(moodle(found))
    kinds = [question.get("type") for question in quiz]
    assert kinds == ["category", "multichoice", "numerical", "essay"]
    right = [a.findtext("text") for a in quiz.iter("answer") if a.get("fraction") == "100"]
    assert right == ["the same", "0.5"]
    assert quiz[1].findtext("answer/text") == "one &lt; half"  # choices are HTML there
    assert quiz[2].findtext("answer/tolerance") == "0.1"
    for question in quiz[1:]:  # without a name, Moodle's import fails
        assert question.findtext("name/text")
        assert question.find("questiontext").get("format") == "html"
    space = {"q": "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"}
    choice, number, words = Xml.fromstring(qti(found)).findall(".//q:item", space)
    assert choice.findtext(".//q:varequal", namespaces=space) == "1"
    mattext = ".//q:response_label//q:mattext"
    assert choice.findtext(mattext, namespaces=space) == "one &lt; half"
    edges = [number.findtext(f".//q:{edge}", namespaces=space) for edge in ("vargte", "varlte")]
    assert edges == ["0.4", "0.6"]
    assert words.find(".//q:setvar", space) is None


# What may stand inside what, and in which order: the DTD of IMS QTI 1.2, as far as we use it.
DTD = {
    "questestinterop": "assessment",
    "assessment": "qtimetadata* section+",
    "section": "item*",
    "item": "itemmetadata? presentation? resprocessing* itemfeedback*",
    "itemmetadata": "qtimetadata*",
    "qtimetadata": "qtimetadatafield+",
    "qtimetadatafield": "fieldlabel fieldentry",
    "presentation": "(material|response_lid|response_str)+",
    "response_lid": "render_choice",
    "response_str": "render_fib",
    "render_choice": "response_label*",
    "render_fib": "response_label*",
    "response_label": "material*",
    "material": "mattext+",
    "resprocessing": "outcomes respcondition+",
    "outcomes": "decvar+",
    "respcondition": "conditionvar setvar* displayfeedback*",
    "conditionvar": "(and|or|other|varequal|varlte|vargte)+",
    "or": "(and|or|other|varequal|varlte|vargte)+",
    "and": "(and|or|other|varequal|varlte|vargte)+",
    "itemfeedback": "(flow_mat|material)+",
    "flow_mat": "material+",
}


def test_canvas_gets_only_what_the_format_allows_in_its_order(site):
    for element in Xml.fromstring(qti(list(items(site, SETTINGS)))).iter():
        name, inside = plain(element), "".join(f"{plain(child)}," for child in element)
        model = re.sub(r"\w+", r"(\g<0>,)", DTD.get(name, "")).replace(" ", "")
        assert re.fullmatch(model, inside), (name, inside)


def plain(element):
    return element.tag.rpartition("}")[2]


def test_both_files_are_written_and_a_site_without_questions_is_refused(site, tmp_path):
    _, (xml, archive) = write(SETTINGS, site, tmp_path / "quiz")
    Xml.fromstring(xml.read_bytes())
    with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
        assert set(opened.namelist()) == {"imsmanifest.xml", "practice.xml"}
        for name in opened.namelist():
            Xml.fromstring(opened.read(name))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="run make book first"):
        write(SETTINGS, Site(tmp_path / "empty", ROOT), tmp_path / "quiz")
