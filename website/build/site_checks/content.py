"""What stands on a page: alt texts, remnants of the source, errors in outputs, ids."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from bs4 import Tag

from website.build.site import Finding, Page, Site, shorten

REMNANTS = {
    "a MyST fence": re.compile(r"```|^\s*:::+", re.MULTILINE),
    "a MyST directive or role": re.compile(r"\{[a-z][\w:.-]*\}(?=`|\s|$)"),
    "a glue role": re.compile(r"\{glue"),
    "a MyST target": re.compile(r"^\s*\([\w-]+\)=\s*$", re.MULTILINE),
    "a directive option": re.compile(
        r"^\s*:(label|class|alt|name|width|pyobject|says|verdict|tags|header-rows):", re.MULTILINE
    ),
    "raw block math": re.compile(r"\$\$"),
}
PLACEHOLDERS = {
    "a Jinja placeholder": re.compile(r"\{\{|\}\}|\{%|%\}"),
    "a % placeholder": re.compile(r"(?<![\w%])%(\(\w+\))?[sdifgr](?![\w%])"),
    "an unfilled f-string": re.compile(r"\{[A-Za-z_][\w.\[\]'\"]*(![rsa])?(:[^{}\s]*)?\}"),
    "a note to the authors": re.compile(r"\b(TODO|FIXME|TBD|XXX)\b"),
}
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|work|Users|private|mnt)/\w")
ERRORS = re.compile(r"Traceback \(most recent call last\)")  # a cell may print a caught error
STRAY = {"__pycache__", ".ipynb_checkpoints", ".doctrees", ".DS_Store", ".git", ".venv"}
STRAY_ENDINGS = (".pyc", ".pickle", ".orig", ".rej", ".swp", "~")
FIGURES = "div.cell_output figure, div.cell_output img"


def alt_texts(page: Page) -> Iterator[Finding]:
    """Every picture says what it shows; one that is hidden from a reader's ear need not."""
    for image in page.soup.find_all("img"):
        if image.find_parent(attrs={"aria-hidden": "true"}):
            continue
        alt, source = (image.get("alt") or "").strip(), image.get("src") or ""
        name = PurePosixPath(source.partition("?")[0])
        if not alt:
            yield page.finding(image, "no alt text")
        elif alt in {source, name.name, name.stem} or re.search(
            r"\.(png|svg|jpe?g|gif|webp)$", alt
        ):
            yield page.finding(image, "the alt text is a file name")
    for drawing in page.soup.select(".cell_output svg"):
        hidden = drawing.get("aria-hidden") == "true" or drawing.find_parent(
            attrs={"aria-hidden": "true"}
        )
        named = drawing.get("aria-label") or drawing.get("aria-labelledby") or drawing.find("title")
        if not hidden and not named:
            yield page.finding(drawing, "a drawing without a name (aria-label)")


def remnants(page: Page) -> Iterator[Finding]:
    """Nothing of the source's syntax is left in the text."""
    for parent, text in page.texts(skip=("pre", "code", "kbd")):
        for what, pattern in (REMNANTS | PLACEHOLDERS).items():
            found = pattern.search(text)
            if found and not in_formula(parent):
                yield page.finding(
                    parent, f"{what} is left: {shorten(text[found.start() :].strip())!r}"
                )
    for block in page.soup.find_all("pre"):
        if re.search(r"(```|:::)\{", block.get_text()) and not block.find_parent(
            class_="cell_output"
        ):
            yield page.finding(block, "a directive that was read as plain code")
    for element in page.soup.select(".problematic, .system-message"):
        yield page.finding(element, "Sphinx could not make sense of this")
    for element in page.soup.select(".xref"):
        if not element.find_parent("a"):
            yield page.finding(element, "a reference that leads nowhere")
    yield from _attributes(page)


def in_formula(element: Tag) -> bool:
    """Is this text part of a formula? Its braces are signs, not placeholders."""
    return "math" in element.get("class", []) or bool(element.find_parent(class_="math"))


def _attributes(page: Page) -> Iterator[Finding]:
    for element in page.soup.find_all(True):
        for name in ("alt", "title", "aria-label", "href", "src", "content"):
            value = element.get(name)
            if not value or value.startswith("data:"):
                continue
            for what, pattern in PLACEHOLDERS.items():
                if pattern.search(value):
                    yield page.finding(element, f"{what} is left in {name}: {shorten(value)!r}")


def outputs(page: Page) -> Iterator[Finding]:
    """No error, no warning, no path of the building machine, no empty number."""
    for output in page.soup.select(".cell_output"):
        text = output.get_text()
        if output.select(".stderr, .traceback") or ERRORS.search(text):
            yield page.finding(output, "an error or warning in an output")
    for parent, text in page.texts():
        if MACHINE_PATH.search(text):
            yield page.finding(parent, "a path of the machine that built the site")
    for number in page.soup.select(".pasted-text"):
        if number.get_text().strip().strip("'").lower() in {"nan", "inf", "-inf", "none", ""}:
            yield page.finding(number, "a glued value that is no number")


def folds(page: Page) -> Iterator[Finding]:
    """A fold opens where it is clicked, is called what it shows, and holds something."""
    for summary in page.soup.find_all("summary"):
        if summary.find("a"):
            yield page.finding(summary, "a link lies in the way of opening this fold")
        if summary.get("aria-label"):
            yield page.finding(summary, "a spoken name that is not the one to be seen")
        if not summary.find_next_siblings():
            yield page.finding(summary, "this fold is empty")
    for output in page.soup.select(".cell_output"):
        if output.get_text().strip().startswith("not answered yet"):
            yield page.finding(output, "the site cannot be answered; only a notebook can")


def ids(page: Page) -> Iterator[Finding]:
    """An id names one element."""
    counted = Counter(element["id"] for element in page.soup.find_all(id=True))
    for name, count in counted.items():
        if count > 1:
            yield page.finding(f'id="{name}"', f"used {count} times")


def figures(page: Page) -> Iterator[Finding]:
    """A chapter has at least two figures that needed its run, unless its run broke."""
    outermost = [tag for tag in page.soup.select(FIGURES) if not tag.find_parent("figure")]
    if page.is_chapter and len(outermost) < 2 and not broke(page):
        yield page.finding("chapter", f"{len(outermost)} figures from its cells, 2 are due")


def broke(page: Page) -> bool:
    """Did a cell of this page break in this build, so that figures and numbers may be missing?"""
    return page.soup.select_one(".not-held-broken") is not None


def stray_files(site: Site) -> Iterator[Finding]:
    """Nothing is published that is no part of the site."""
    for path in sorted(site.html.rglob("*")):
        name = path.relative_to(site.html)
        if path.name in STRAY or (path.is_file() and path.name.endswith(STRAY_ENDINGS)):
            yield Finding(name.as_posix(), "file", "does not belong into a site")
