"""The built site in _build/html: checked as files, and looked at in Chromium.

Every page is opened in one of three views (light, dark, as wide as a phone), with its folded blocks
unfolded, so that nothing hides from the tests; it is looked at in all three. In the last of them
axe goes through every chapter and one page of each other kind, and through the figures of all
pages, once they have drawn themselves. `make test-deep` opens each page in all three, and axe goes
through each.
"""

import ast
import gzip
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from zlib import crc32

import nbformat
import pytest
from answerable import HTML, NO_GUESSES, ROOT, VIEWS
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tools.run_notebooks import is_code, prove, run_imports, served
from website.build.chapters import Store, find_chapters
from website.build.check_site import check
from website.build.dependencies import is_file_beside
from website.build.export_notebooks import build_wheel
from website.build.site import Memory, Site
from website.build.site_checks.addresses import place
from website.build.site_checks.weight import LIMIT
from website.notebooks.code import is_glue, is_import
from website.notebooks.notebook import SOLUTION
from website.notebooks.targets import NAME
from website.pages.contents import places_of
from website.pages.meaning import cell_tree
from website.pages.moved import notebooks_in
from website.pages.settings import read_settings

SETTINGS = read_settings(ROOT)
PAGES = [f"{name}.html" for name in SETTINGS.documents] + ["search.html"]
CHAPTERS = [f"{page}.html" for page, place in places_of(ROOT).items() if not place.deeper]
ALIKE = re.compile(r"_depth_|/records_|/api_|/a(?=\d_)")  # many pages of one kind
FOR_AXE = {(kind[0] if (kind := ALIKE.search(page)) else page): page for page in PAGES}.values()

pytestmark = pytest.mark.site


@pytest.mark.deep  # `make book` has just checked it, with a memory
def test_the_site_check_finds_nothing(built):
    assert [str(finding) for finding in check(HTML, ROOT)] == []


def test_what_a_build_makes_is_not_committed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    assert [name for name in listed.stdout.split() if name.endswith((".ipynb", ".whl"))] == []


def test_the_package_beside_the_notebooks_is_that_of_this_build(built, tmp_path):
    build_wheel(ROOT, tmp_path)
    wheel = HTML / "notebooks" / SETTINGS.wheel
    assert wheel.read_bytes() == (tmp_path / SETTINGS.wheel).read_bytes()
    assert wheel.stat().st_size < 4e6


def test_every_link_of_a_notebook_leads_to_something_that_exists(built):
    site, dead = Site(HTML, ROOT, Memory(ROOT / "_build" / "site-facts.json")), []
    at_tag = re.compile(rf"{re.escape(SETTINGS.repository)}/(?:blob|raw)/{SETTINGS.commit}/(.+)")
    for path in notebooks_in(HTML / "notebooks"):
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for address in re.findall(r"\]\(([^)\s]+)\)", text):
            if address.startswith(SETTINGS.release_url):
                name, _, anchor = address.removeprefix(SETTINGS.release_url).partition("#")
                page = site.pages.get(name or "index.html")
                if page is None or place(anchor) not in page.anchors:
                    dead.append((path.name, address))
            elif (match := at_tag.match(address)) and not (ROOT / match[1]).is_file():
                dead.append((path.name, address))
    assert dead == []


def test_a_number_in_a_notebook_is_that_of_its_page(built):
    known = json.loads((ROOT / "_build" / NAME).read_text("utf8"))
    told = [(page, anchor, number) for page, anchor, _, number in known["labels"].values()]
    told, found = {*told, *map(tuple, known["equations"].values())}, set()
    for page in {page for page, _, number in told if number}:
        soup = BeautifulSoup((HTML / f"{page}.html").read_text("utf8"), "html.parser")
        for _, anchor, number in (one for one in told if one[0] == page and one[2]):
            shown = soup.find(id=anchor).select_one(".caption-number, .eqno").get_text()
            found.add(shown.strip().rstrip("#").strip() == number)
    assert found == {True}


def test_every_icon_of_a_page_is_drawn(built):
    """One that is not would be a filled square."""
    rules = (ROOT / "website/theme/static/icons.css").read_text("utf8")
    drawn = set(re.findall(r"^\.(fa-[a-z-]+) \{ --icon: var\((?=--icon)", rules, re.M))
    no_pictures = {"fa-solid", "fa-brands", "fa-lg"}
    icon = re.compile(r'<(?:i|span) class="(fa[^"]*)"')
    asked = {
        word
        for page in PAGES
        for classes in icon.findall((HTML / page).read_text("utf8"))
        for word in classes.split()
        if word.startswith("fa-")
    }
    assert {"fa-bars", "fa-magnifying-glass"} <= asked
    assert asked - no_pictures <= drawn


@pytest.fixture(scope="module")
def chapters(built):
    return find_chapters(ROOT, [])


def test_make_page_shows_what_the_book_has_run_and_runs_nothing(built):
    words = [sys.executable, "-m", "website.build.preview", "book/preview.md"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 chapters, all fresh: nothing to execute" in done.stdout
    page = (ROOT / "_build/preview/preview/html/preview.html").read_text("utf8")
    assert page.count('class="cell_output') > 3


def test_each_notebook_holds_the_very_statements_that_this_build_ran(chapters):
    """So `make test` need not run them all again: what they import, and a few of them, will do.

    A notebook has the imports in its first cell, no glued numbers, names of their own in the
    solutions, and a few calls of its own; all else stands there in the page's order."""
    store = Store(ROOT / "_build" / ".jupyter_cache")
    for chapter in chapters:
        assert store.is_fresh(chapter), chapter.name
        ran = [cell.source for cell in chapter.cells]
        path = HTML / "notebooks" / f"{chapter.path.stem}.ipynb"
        code = [cell for cell in nbformat.read(path, as_version=4).cells if is_code(cell)]
        assert code[0].source.startswith("#@title Setup")
        assert statements(code[1:]) == settings_apart(ran, code[0].source), chapter.name
        for cell in ran:  # a notebook has no folder of its own to read from
            constants = (n.value for n in ast.walk(cell_tree(cell)) if isinstance(n, ast.Constant))
            named = [value for value in constants if isinstance(value, str)]
            assert not any(is_file_beside(chapter.path.parent, text) for text in named)


OWN = ("predict(", "result_of(", "show_live(", "still_open(", "my_guess = ")


def statements(cells):
    """What cells of a notebook do, but for imports and what belongs to notebooks alone."""
    found = []
    for cell in cells:
        lines = [ast.unparse(one) for one in cell_tree(cell.source).body if not is_import(one)]
        if SOLUTION in cell.metadata.get("tags", []):
            lines = [re.sub(r"\b(solution_|Solution)", "", line) for line in lines]
        found += [without_my(line) for line in lines if not line.startswith(OWN)]
    return found


def settings_apart(sources, setup):
    """What a page's cells do, but for imports, glued numbers, and what its set-up does."""
    done = {ast.unparse(one) for one in cell_tree(setup).body}
    first, *others = (cell_tree(source).body for source in sources)
    kept = [one for one in first if ast.unparse(one) not in done]
    kept += [one for body in others for one in body]
    return [without_my(ast.unparse(one)) for one in kept if not is_import(one) and not is_glue(one)]


def without_my(line):
    """A solution's names and the exercise's are told apart by this alone."""
    return re.sub(r"\b(my_|My)(?=\w)", "", line)


def test_every_notebook_finds_what_it_imports_and_loads_in_the_package_beside_it(built, tmp_path):
    notebooks = {
        path.stem: nbformat.read(path, as_version=4) for path in notebooks_in(HTML / "notebooks")
    }
    with zipfile.ZipFile(HTML / "notebooks" / SETTINGS.wheel) as wheel:
        wheel.extractall(tmp_path / "package")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "package")}
    assert run_imports(notebooks, Path(sys.executable), tmp_path, env) is None


@pytest.mark.deep
def test_every_notebook_finds_what_it_imports_and_loads_where_only_its_first_cell_ran(built):
    assert prove(ROOT, names=[], kinds=["imports"]) == []


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_every_notebook_runs_where_only_its_first_cell_installed_anything(built):
    assert prove(ROOT, names=[], kinds=["ipynb"]) == []


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_every_script_runs_where_only_the_package_was_installed(built):
    assert prove(ROOT, names=[], kinds=["py"]) == []


UNFOLD = """() => {
    document.querySelectorAll('details').forEach(fold => { fold.open = true; });
    document.querySelectorAll('.toggle-hidden').forEach(
        fold => { fold.classList.remove('toggle-hidden'); });
}"""
# axe takes its time for each element: one word in each syntax colour is enough for it, and five of
# the formulas and of the rows that are alike: in themselves, and in all that they stand in. What
# KaTeX makes within a formula is a third of a page and KaTeX's own: five are left whole, the others
# keep their width and something at its end. Formulas and widths have been looked at by then.
THIN_OUT = """() => {
    const make = element => element.tagName + '.' + element.getAttribute('class');
    const within = element => element ? make(element) + ' < ' + within(element.parentElement) : '';
    const seen = {};
    const often = key => (seen[key] = (seen[key] || 0) + 1) > 5;
    const colours = new Set();
    const words = '.highlight pre span, dt.sig em, dt.sig span';
    document.querySelectorAll(words).forEach(word => {
        if (colours.has(word.className)) { word.replaceWith(...word.childNodes); }
        colours.add(word.className);
    });
    document.querySelectorAll(':not(.katex-display) > .katex').forEach(
        formula => { if (often(within(formula))) { formula.replaceWith('x'); } });
    const formulas = [...document.querySelectorAll('.katex')].slice(5);
    const widths = formulas.map(formula => formula.lastElementChild.scrollWidth);
    formulas.forEach((formula, at) => {
        const box = document.createElement('span');
        box.style.cssText = `display: inline-block; text-align: right; width: ${widths[at]}px`;
        box.textContent = 'x';
        formula.replaceChildren(box);
    });
    document.querySelectorAll('tbody > tr').forEach(row => {
        const holds = [...row.querySelectorAll('*')].map(make).join(' ');
        if (often(holds + ' in ' + within(row))) { row.remove(); }
    });
}"""
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map(element => element.outerHTML.slice(0, 120))"""
FORMULAS = """() => [...document.querySelectorAll('.math')]
    .filter(e => !e.querySelector('.katex-mathml math') || !e.querySelector('.katex-html'))
    .map(e => e.textContent.slice(0, 80))"""

# Every rule; what is in order axe need not list, which takes a third of its time.
OPTIONS = {"preload": False, "resultTypes": ["violations"]}
STILL = "*, ::before, ::after { transition: none !important; animation: none !important }"
# Nothing moves any more (STILL), so what is drawn once is as it stays. A headless browser sometimes
# draws no further frame of a page that has not changed: it is given ten seconds, not for ever.
DRAWN = """() => new Promise(done => {
    requestAnimationFrame(() => requestAnimationFrame(done));
    setTimeout(done, 10000);
})"""
PATIENCE = 5_000  # milliseconds
DARK = "() => document.documentElement.dataset.theme === 'dark'"
# Live figures and explorers draw themselves when the reader comes near.
FIGURES = "[data-live], .vitbook-explorer"
IS_DRAWN = """figure => figure.dataset.live ? figure.classList.contains("live-running")
    : Boolean(figure.shadowRoot && figure.shadowRoot.querySelector(".thumb"))"""
OPEN = """(figure, number) => {
    figure.setAttribute("data-axe", number);
    [figure, figure.shadowRoot].forEach(
        root => root && root.querySelectorAll("details").forEach(fold => { fold.open = true; }));
}"""


@pytest.fixture(scope="module")
def context(browser):
    context = browser.new_context(**VIEWS["light"])
    context.add_init_script(NO_GUESSES)
    yield context
    context.close()


WEIGHED = {}  # address: bytes; pages share most of what they load


class Visit:
    """One page opened in one view, with all that happened while it loaded."""

    def __init__(self, page, url: str, view: str) -> None:
        self.page, self.errors, self.requests, self.bytes = page, [], [], {}
        self.resized = 0.0
        self.look(view)  # at nothing yet
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("response", self._response)
        page.goto(url, wait_until="load")

    def unfold(self) -> None:
        self.page.add_style_tag(content=STILL)
        self.page.evaluate(UNFOLD)

    def draw(self) -> dict:
        """Let all figures draw themselves; axe's context of them."""
        self.page.emulate_media(reduced_motion="reduce")
        figures = self.page.locator(FIGURES)
        for number in range(figures.count()):
            figure = figures.nth(number)
            figure.scroll_into_view_if_needed()
            self.page.wait_for_function(IS_DRAWN, arg=figure.element_handle())
            figure.evaluate(OPEN, number)
        return {"include": [[f'[data-axe="{number}"]'] for number in range(figures.count())]}

    def look(self, view: str) -> None:
        """Go over to another way of looking, as when the day ends or the window is made narrow."""
        size, before = VIEWS[view]["viewport"], self.page.viewport_size
        self.page.emulate_media(color_scheme=VIEWS[view]["color_scheme"])
        self.page.set_viewport_size(size)
        self.page.evaluate(DRAWN)
        if size != before:
            self.resized = time.monotonic()

    def settle(self) -> None:
        """The theme lets Tab reach what scrolls 0.3 s after the window was made narrow."""
        self.page.wait_for_timeout(max(0, 500 + 1000 * (self.resized - time.monotonic())))

    def _console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _response(self, response):
        if response.status >= 400:
            self.errors.append(f"{response.status} {response.url}")
        elif response.url.startswith("http"):
            if response.url not in WEIGHED:
                body = response.body()
                WEIGHED[response.url] = min(len(body), len(gzip.compress(body, 6)))
            self.bytes[response.url] = WEIGHED[response.url]


def view_of(name):
    """The view in which a page is opened: a third of the pages each, whatever pages there are."""
    return sorted(VIEWS)[crc32(name.encode()) % len(VIEWS)]


def complaints(context, address, name, first, deep=True, views=tuple(VIEWS)):
    """What is wrong with a page that is opened in the `first` view: errors, requests to others,
    weight, and in each view sideways scrolling, formulas that are not set.

    Barriers are looked for in the last view, where axe goes through it, on the page as it comes and
    in its drawn figures; where it goes `deep` in all, and an arrival is tried in all.
    """
    url, at = f"{address}/{name}", views.index(first)
    rounds = [*views[at:], *views[:at]]
    for_axe = rounds[::-1] if deep else rounds[-1:]
    arrivals = rounds[1:] if deep else []
    found = [f"{view}: {what}" for view in arrivals for what in arrival(context, url, view)]
    page = context.new_page()
    visit = Visit(page, url, first)  # which is an arrival, too
    visit.unfold()
    found += [f"{view}: {what}" for view in rounds for what in misplaced(visit, view)]
    page.evaluate(THIN_OUT)
    if deep or name in FOR_AXE:
        found += [f"{view}: {what}" for view in for_axe for what in barriers(visit, view)]
    if (figures := visit.draw())["include"]:
        for view in for_axe:
            found += [f"{view}, drawn: {what}" for what in barriers(visit, view, figures)]
        found += [f"drawn: {what}" for what in too_wide(visit, "phone")]
    found += [f"error: {error}" for error in visit.errors]
    outside = (one for one in visit.requests if not one.startswith((address, "data:", "blob:")))
    found += [f"loads {one}" for one in outside]
    if sum(visit.bytes.values()) > LIMIT:
        largest = sorted(visit.bytes.items(), key=lambda item: -item[1])[:4]
        found.append(f"{sum(visit.bytes.values()) // 1000} kB, largest: {largest}")
    page.close()
    return found


def arrival(context, url, view):
    """What goes wrong when the page is opened in this view."""
    page = context.new_page()
    visit = Visit(page, url, view)
    page.wait_for_load_state("networkidle")
    yield from (f"error: {error}" for error in visit.errors)
    yield from light_in_the_dark(page, view)
    page.close()


def light_in_the_dark(page, view):
    """On a busy machine the theme takes a while to hear that it is dark."""
    if view == "dark":
        try:
            page.wait_for_function(DARK, timeout=PATIENCE)
        except PlaywrightTimeout:
            yield "not dark"


def misplaced(visit, view):
    """What one sees in this view."""
    yield from too_wide(visit, view)
    yield from (f"formula not set: {text}" for text in visit.page.evaluate(FORMULAS))
    yield from light_in_the_dark(visit.page, view)


def too_wide(visit, view):
    visit.look(view)
    scroll = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if scroll > 1:
        yield f"{scroll} px too wide, perhaps: {visit.page.evaluate(TOO_WIDE)}"


def barriers(visit, view, figures=None):
    """What axe says of the page, or of its figures."""
    visit.look(view)
    visit.settle()
    yield from light_in_the_dark(visit.page, view)
    results = Axe().run(visit.page, context=figures, options=OPTIONS)
    for rule in results.response["violations"]:
        yield f"axe: {rule['id']}: {[node['html'] for node in rule['nodes']]}"


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_a_page_in_the_browser(context, address, name):
    assert complaints(context, address, name, view_of(name), deep=False) == []


@pytest.mark.browser
@pytest.mark.deep
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_a_page_in_any_view(context, address, name):
    assert complaints(context, address, name, "light") == []


@pytest.mark.browser
def test_a_planted_barrier_is_seen_inside_figures_of_both_kinds(context, address):
    page = context.new_page()
    visit = Visit(page, f"{address}/preview.html", "light")
    figures = visit.draw()
    for one in (".vitbook-explorer .patch", "#live-cut .live-patch"):
        patch = page.locator(one).first
        label = patch.get_attribute("aria-label")
        patch.evaluate("patch => patch.removeAttribute('aria-label')")
        assert [*barriers(visit, "light", figures)], one
        patch.evaluate("(patch, label) => patch.setAttribute('aria-label', label)", label)
    assert [*barriers(visit, "light", figures)] == []
    page.close()


CLEAN = """<!DOCTYPE html><html lang="en" data-theme="dark"><head><title>A page</title>
<link rel="icon" href="data:,"></head><body><main class="bd-article"><h1>A page</h1><p>Words.</p>
</main></body></html>
"""
WIDTHS = "".join(
    "<div class='katex-display' style='width: 99px; overflow: auto'><span class='katex'>"
    f"<span style='display: inline-block; text-align: right; width: {width}px'>1</span>"
    "</span></div>"
    for width in (*7 * (50,), 300)
)
# what a page holds: words of the complaint
PLANTED = {
    "<script>nothing.here()</script>": "error: nothing is not defined",
    "<script>console.error('oh')</script>": "error: oh",
    '<img src="gone.png" alt="A cat">': "error: 404",
    '<img src="http://localhost:9/a.png" alt="A cat">': "loads http://loc",
    '<p style="width: 3000px">Wide.</p>': "px too wide",
    '<span class="math">x^2</span>': "formula not set: x^2",
    "<details><summary>S</summary><img id='folded' src='data:,'></details>": 'id="folded"',
    f"<table>{7 * '<tr><td>1</td></tr>'}<tr><td><img id='row' src='data:,'></td></tr></table>": (
        'id="row"'
    ),
    7 * "<p>Words.</p>" + "<p style='color: #eee; background: #fff'>Pale.</p>": "Pale.",
    WIDTHS: "scrollable-region-focusable",
    "<script src='heavy.js'></script>": "kB, largest: ",
}


@pytest.mark.browser
def test_a_clean_page_passes_and_planted_defects_are_seen_in_the_browser(
    context, tmp_path, monkeypatch
):
    (tmp_path / "heavy.js").write_bytes(b"//" + os.urandom(1_100_000).hex().encode())
    (tmp_path / "clean.html").write_text(CLEAN)
    (tmp_path / "page.html").write_text(
        CLEAN.replace("Words.</p>", "Words.</p>" + "".join(PLANTED))
    )
    (tmp_path / "light.html").write_text(CLEAN.replace(' data-theme="dark"', ""))
    with served(tmp_path) as address:
        clean, found = (
            complaints(context, address, f"{name}.html", "dark", views=["dark"])
            for name in ("clean", "page")
        )
        monkeypatch.setattr(sys.modules[__name__], "PATIENCE", 500)  # it never will be dark
        light = complaints(context, address, "light.html", "dark", views=["dark"])
    assert clean == []
    assert [words for words in PLANTED.values() if words not in " ".join(found)] == []
    assert any("not dark" in complaint for complaint in light)
