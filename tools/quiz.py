"""The practice bank: the book's predictions and concept checks as a quiz for Moodle and for Canvas.

    python -m tools.quiz       _build/quiz/practice.moodle.xml and practice.qti.zip (make quiz)

For practice only: every answer stands in the book. Questions and answers are taken from the built
pages, so their numbers are those of the build. A prediction with choices becomes a question with
choices, one with a number a numerical question; the rest is answered in words and shows the book's
answer afterwards.
"""

import html
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree as Xml

from bs4 import BeautifulSoup, Tag

from website.build.site import Page, Site
from website.pages.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[1]
KEPT = {"p", "em", "strong", "code", "pre", "ul", "ol", "li", "a", "sub", "sup", "br", "table"}
KEPT |= {"thead", "tbody", "tr", "th", "td"}
NAME = "Practice: answers are public"


@dataclass(frozen=True)
class Item:
    """One question. With ``choices`` one of them is the answer; with ``number``, a number is."""

    id: str
    page: str  # its title
    question: str  # HTML
    explanation: str  # HTML
    choices: tuple[str, ...] = ()
    answer: str = ""
    number: str = ""
    within: str = "0"


def items(site: Site, settings: Settings) -> Iterator[Item]:
    """Every question of the book that can be asked without its page."""
    for page in site.pages.values():
        address = urljoin(settings.release_url, page.name)
        for group in page.soup.select("div.predict[data-predict]"):
            yield from _prediction(page, group, address)
        for number, folded in enumerate(page.soup.select("section#concept-check > details"), 1):
            if folded.find("img") is None:
                stem = Path(page.name).stem
                title = clean(folded.select_one(".sd-summary-text"), address)
                answer = clean(folded.select_one(".sd-summary-content"), address)
                yield Item(f"{stem}-check-{number}", page.title, f"<p>{title}</p>", answer)


def _prediction(page: Page, group: Tag, address: str) -> Iterator[Item]:
    if group.select_one("img:not(.ask-output img)") is not None:
        return
    asked = [
        clean(part, address, outer=True)
        for part in group.find_all(True, recursive=False)
        if not {"predict-title", "ask-both", "ask-output"} & {*(part.get("class") or [])}
    ]
    answer = group.select_one(".predict-explained")
    yield Item(
        id=str(group["data-predict"]),
        page=page.title,
        question="".join(asked),
        explanation=clean(answer, address),
        choices=tuple(json.loads(str(group.get("data-choices", "[]")))),
        answer=str(group.get("data-answer", "")),
        number=str(group.get("data-number", "")),
        within=str(group.get("data-within", "0")),
    )


def clean(tag: Tag, address: str, *, outer: bool = False) -> str:
    """Plain HTML: no pictures, scripts or classes, links lead to the book."""
    copy = BeautifulSoup(str(tag), "html.parser")
    for element in copy.find_all(["svg", "script", "style", "button", "figure"]):
        element.decompose()
    for element in copy.find_all(class_="headerlink"):
        element.decompose()
    for element in copy.find_all(True):
        if element.name not in KEPT:
            element.unwrap()
            continue
        link = urljoin(address, str(element["href"])) if element.get("href") else None
        element.attrs = {"href": link} if link else {}
    root = copy if outer or tag.name not in KEPT else copy.find(True)
    text = root.decode_contents()
    return text if "<pre" in text else " ".join(text.split())


def moodle(found: list[Item]) -> bytes:
    """A Moodle XML file (Question bank, Import)."""
    quiz = Xml.Element("quiz")
    category = Xml.SubElement(quiz, "question", type="category")
    _text(Xml.SubElement(category, "category"), f"$course$/top/{NAME}")
    for item in found:
        kind = "multichoice" if item.choices else "numerical" if item.number else "essay"
        question = Xml.SubElement(quiz, "question", type=kind)
        _text(Xml.SubElement(question, "name"), f"{item.page}: {item.id}")
        _text(Xml.SubElement(question, "questiontext", format="html"), item.question)
        _text(Xml.SubElement(question, "generalfeedback", format="html"), item.explanation)
        Xml.SubElement(question, "defaultgrade").text = "1"
        if item.choices:
            Xml.SubElement(question, "single").text = "true"
            for choice in item.choices:
                fraction = "100" if choice == item.answer else "0"
                answer = Xml.SubElement(question, "answer", fraction=fraction, format="html")
                Xml.SubElement(answer, "text").text = html.escape(choice)
        elif item.number:
            answer = Xml.SubElement(question, "answer", fraction="100")
            Xml.SubElement(answer, "text").text = item.number
            Xml.SubElement(answer, "tolerance").text = item.within
    return Xml.tostring(quiz, encoding="utf-8", xml_declaration=True)


def _text(element: Xml.Element, text: str) -> None:
    Xml.SubElement(element, "text").text = text


def qti(found: list[Item]) -> bytes:
    """An assessment in QTI 1.2, as Canvas imports it: Settings, Import course content."""
    root = Xml.Element("questestinterop", xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2")
    assessment = Xml.SubElement(root, "assessment", ident="vitbook-practice", title=NAME)
    section = Xml.SubElement(assessment, "section", ident="root_section")
    for item in found:
        kind = "multiple_choice" if item.choices else "numerical" if item.number else "essay"
        entry = Xml.SubElement(section, "item", ident=item.id, title=f"{item.page}: {item.id}")
        fields = Xml.SubElement(Xml.SubElement(entry, "itemmetadata"), "qtimetadata")
        for label, value in (("question_type", f"{kind}_question"), ("points_possible", "1")):
            field = Xml.SubElement(fields, "qtimetadatafield")
            Xml.SubElement(field, "fieldlabel").text = label
            Xml.SubElement(field, "fieldentry").text = value
        shown = Xml.SubElement(entry, "presentation")
        _material(shown, item.question)
        _responses(entry, shown, item)
        feedback = Xml.SubElement(entry, "itemfeedback", ident="general_fb")
        _material(Xml.SubElement(feedback, "flow_mat"), item.explanation)
    return Xml.tostring(root, encoding="utf-8", xml_declaration=True)


def _responses(entry: Xml.Element, shown: Xml.Element, item: Item) -> None:
    """What can be answered, and which answer is right."""
    cardinality = {"ident": "response1", "rcardinality": "Single"}
    if item.choices:
        labels = Xml.SubElement(Xml.SubElement(shown, "response_lid", cardinality), "render_choice")
        for number, choice in enumerate(item.choices):
            label = Xml.SubElement(labels, "response_label", ident=str(number))
            _material(label, html.escape(choice))
    else:
        Xml.SubElement(Xml.SubElement(shown, "response_str", cardinality), "render_fib")
    processing = Xml.SubElement(entry, "resprocessing")
    Xml.SubElement(
        Xml.SubElement(processing, "outcomes"),
        "decvar",
        {"maxvalue": "100", "minvalue": "0", "varname": "SCORE", "vartype": "Decimal"},
    )
    always = Xml.SubElement(processing, "respcondition", {"continue": "Yes"})
    Xml.SubElement(Xml.SubElement(always, "conditionvar"), "other")
    Xml.SubElement(always, "displayfeedback", feedbacktype="Response", linkrefid="general_fb")
    if not (item.choices or item.number):
        return
    right = Xml.SubElement(processing, "respcondition", {"continue": "No"})
    condition = Xml.SubElement(right, "conditionvar")
    if item.choices:
        equal = Xml.SubElement(condition, "varequal", respident="response1")
        equal.text = str(item.choices.index(item.answer))
    else:  # as Canvas writes an exact answer with a margin
        middle, within = float(item.number), float(item.within)
        either = Xml.SubElement(condition, "or")
        Xml.SubElement(either, "varequal", respident="response1").text = f"{middle:.12g}"
        between = Xml.SubElement(either, "and")
        for edge, value in (("vargte", middle - within), ("varlte", middle + within)):
            Xml.SubElement(between, edge, respident="response1").text = f"{value:.12g}"
    Xml.SubElement(right, "setvar", action="Set", varname="SCORE").text = "100"


def _material(parent: Xml.Element, text: str) -> None:
    Xml.SubElement(Xml.SubElement(parent, "material"), "mattext", texttype="text/html").text = text


MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<manifest identifier="vitbook" xmlns="http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1">
  <metadata><schema>IMS Content</schema><schemaversion>1.1.3</schemaversion></metadata>
  <organizations/>
  <resources>
    <resource identifier="practice" type="imsqti_xmlv1p2"><file href="practice.xml"/></resource>
  </resources>
</manifest>
"""


def write(settings: Settings, site: Site, folder: Path) -> tuple[list[Item], list[Path]]:
    """Write both files. Raises ValueError where the site has no questions."""
    found = list(items(site, settings))
    if not found:
        raise ValueError(f"{site.html} has no questions: run make book first")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "practice.moodle.xml", folder / "practice.qti.zip"]
    paths[0].write_bytes(moodle(found))
    with zipfile.ZipFile(paths[1], "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (("imsmanifest.xml", MANIFEST.encode()), ("practice.xml", qti(found))):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return found, paths


def main() -> int:
    try:
        site = Site(ROOT / "_build" / "html", ROOT)
        found, paths = write(read_settings(ROOT), site, ROOT / "_build" / "quiz")
    except ValueError as error:
        print(f"make quiz: {error}", file=sys.stderr)
        return 1
    closed = sum(bool(item.choices or item.number) for item in found)
    print(f"{len(found)} questions, {closed} of them marked by the system; all answers are public.")
    print("\n".join(f"  {path}" for path in paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
