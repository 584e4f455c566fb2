"""The site check: each defect is planted in a clean little site, and must be caught by name."""

import os
import sys
from pathlib import Path

import pytest

from website.build.check_site import OF_A_PAGE, check, check_pages, defects, report
from website.build.site import LOOKS, Memory, Site
from website.build.site_checks.weight import compressed, weights

REPOSITORY = "https://github.com/somebody/book"
PAGE = "chapters/01_first.html"
CHAPTER = """<!DOCTYPE html>
<html lang="en"><head><title>1. First</title>
<link rel="stylesheet" href="../_static/style.css">
<link rel="canonical" href="https://somebody.github.io/book/chapters/01_first.html">
<script src="../_static/page.js"></script></head>
<body>
<a href="https://colab.research.google.com/github/somebody/book/blob/gh-pages/v1.0.0/notebooks/01_first.ipynb">Colab</a>
<a href="../notebooks/01_first.ipynb" download>Notebook</a>
<a href="https://github.com/somebody/book/blob/v1.0.0/src/part.py">Source</a>
<main><h1 id="first">1. First<a class="headerlink" href="#first">#</a></h1>
<p id="prose">The mean is <span class="pasted-text">0.25</span>, so 100 % of it, $5, at 12:30.</p>
<img src="../_images/plan.png" alt="A plan of two rooms">
<p>Math: <span class="math">\\({{x}}_{i}\\)</span>, code: <code>{cite}`x` {{ y }} %s</code>.</p>
<details><summary>Code</summary><p>1</p></details>
<div class="cell">
<div class="cell_output"><figure><img src="data:image/png;base64,AA==" alt="Bars at 1 and 2">
<figcaption>Two bars.</figcaption></figure></div></div>
<div class="cell"><div class="cell_input"><pre>show(f"{x:.2f}")</pre></div>
<div class="cell_output"><img src="../_images/line.png" alt="A line that rises to 2"></div></div>
<p><a href="../index.html#claims">All claims</a> <a href="https://example.org/far">elsewhere</a></p>
</main></body></html>
"""
INDEX = """<!DOCTYPE html>
<html lang="en"><head><title>Front</title></head><body><h1>Front</h1>
<p id="claims"><a href="chapters/01_first.html#first">1. First</a></p></body></html>
"""
FILES = {
    PAGE: CHAPTER,
    "index.html": INDEX,
    "_static/style.css": "p { color: black; background: url(dot.png); } @import 'more.css';",
    "_static/more.css": "",
    "_static/dot.png": "dot",
    "_static/page.js": "'use strict';",
    "_images/plan.png": "plan",
    "_images/line.png": "line",
    "notebooks/01_first.ipynb": "{}",
}


def write(root):
    """A clean site in `html`, and the repository it was built from."""
    html = root / "_build" / "html"
    for name, text in FILES.items():
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        (html / name).write_text(text)
    (root / "_config.yml").write_text(f"title: x\nrepository:\n  url: {REPOSITORY}\n")
    (root / "_toc.yml").write_text("root: index\n")
    (root / "pyproject.toml").write_text('[project]\nversion = "1.0.0"\n')
    (root / "src").mkdir()
    (root / "src/part.py").write_text("")
    return html


@pytest.fixture
def site(tmp_path):
    return write(tmp_path)


def edit(site, old, new):
    """In the chapter."""
    (site / PAGE).write_text(CHAPTER.replace(old, new, 1))


def findings(html):
    return [str(finding) for finding in check(html, html.parents[1])]


def remembered(site):
    """What a check finds that keeps its memory between runs, and how many facts it knew."""
    memory = Memory(site.parent / "facts.json")
    found = [str(finding) for finding in check_pages(Site(site, site.parents[1], memory))]
    memory.save()
    return found, len(memory.known.keys() & memory.used.keys())


def test_a_clean_site_passes_and_an_empty_folder_is_none(site, tmp_path, capsys):
    [finding] = check(tmp_path / "empty", tmp_path)
    assert "build the book first" in str(finding)
    assert findings(site) == []
    assert not report(Site(site, site.parents[1]))
    assert "2 pages, nothing to complain" in capsys.readouterr().out


FOLD = "<details><summary>Code</summary><p>1</p></details>"
LINKED_FOLD = FOLD.replace("Code", '<a href="#first">Code</a>')
# what stands in a file, what comes in its place, words of the finding
REPLACED = [
    (' alt="A plan of two rooms"', "", "no alt text"),
    ("A plan of two rooms", "../_images/plan.png", "file name"),
    ("<figcaption>", "<svg></svg><figcaption>", "aria-label"),
    (FOLD, LINKED_FOLD, "in the way of opening"),
    ("<summary>C", '<summary aria-label="Toggle">C', "a spoken name"),
    (FOLD, "<details><summary>Code</summary></details>", "this fold is empty"),
    ("<figure>", "not answered yet: f<figure>", "cannot be answered"),
    ("../_static/page.js", "https://cdn.net/a.js", "from another site"),
    ("../_static/style.css", "https://cdn.net/a.css", "another site"),
    ('src="../_images/plan.png"', 'srcset="//cdn.net/a.png 2x"', "another"),
    ('rel="canonical"', 'rel="preconnect"', "another site"),
    ("<main>", '<iframe src="https://v.net"></iframe><main>', "another site"),
    ("<p>M", '<p style="background:url(//c.net/a)">M', "another site"),
    ("<main>", "<style>@import 'https://c.net/';</style><main>", "anoth"),
    ("url(dot.png)", "url(https://f.net/a.woff)", "url()"),
    ("../index.html#claims", "../missing.html", "broken link to ../missing.html"),
    ("#claims", "#nowhere", "id of ../index.html#nowhere"),
    ('href="#first"', 'href="#second"', "id of #second"),
    ("style.css", "gone.css", "which does not exist"),
    ("../notebooks/01_first", "../notebooks/02_next", "broken link"),
    ("0/notebooks/01_first.ipynb", "0/01_first.md", "Colab link"),
    ("gh-pages/v1.0.0", "main", "the Colab link is not"),
    ("v1.0.0/notebooks/01_first", "v1.0.0/notebooks/9", "9.ipynb does not exist"),
    ("colab.research.google.com", "example.org", "no Colab link"),
    ("src/part.py", "src/gone.py", "no src/gone.py"),
    ("The mean", "```{note} The mean", "a MyST fence"),
    ("The mean", "{note} The mean", "a MyST directive or role"),
    ("The mean", "{glue:text}`x`", "a glue role"),
    ("The mean", ":label: ex-1", "a directive option"),
    ("The mean is", "(sec-a)=\n", "a MyST target"),
    ("The mean", "$$ x $$", "raw block math"),
    ("<main>", "<pre>```{exercise-end}</pre><main>", "plain code"),
    ('id="prose"', 'class="system-message"', "make sense"),
    ('class="math"', 'class="xref"', "leads nowhere"),
    ("The mean", "{{ mean }}", "a Jinja placeholder"),
    ("https://example.org/far", "https://{{ host }}/", "left in href"),
    ("The mean", "%(mean)s", "a % placeholder"),
    ("Two bars", "Two bars of {x:.2f}", "an unfilled f-string"),
    ("Bars at 1 and 2", "Bars at {low} and 2", "unfilled f-string is left in alt"),
    ("The mean", "TODO the mean", "a note to the authors"),
    ("<figcaption>", "<pre>Traceback (most recent call last)</pre>", "error or warn"),
    ("<figcaption>", '<div class="output stderr">hm</div>', "error or warning"),
    ("The mean", "Saved to /home/ann/x.pt. The mean", "a path of the machine"),
    ("0.25", "nan", "no number"),
    ('id="prose"', 'id="first"', "used 2 times"),
    ('<img src="../_images/line.png" alt="A line that rises to 2">', "", "1 figures"),
]  # fmt: skip


@pytest.fixture(scope="module")
def memory_of_clean(tmp_path_factory):
    """What is remembered of the clean site, and what is found and known at its second check."""
    html = write(tmp_path_factory.mktemp("clean"))
    assert remembered(html) == ([], 0)
    assert remembered(html) == ([], 2)
    return (html.parent / "facts.json").read_text()


@pytest.mark.parametrize(("old", "new", "words"), REPLACED)
def test_a_planted_defect_is_found_each_time(site, memory_of_clean, old, new, words):
    """By a check that starts from nothing, and by one that remembers the page without it."""
    (site.parent / "facts.json").write_text(memory_of_clean)
    file = next(name for name, text in FILES.items() if old in text)
    (site / file).write_text(FILES[file].replace(old, new, 1))
    found = findings(site)
    caught = [line for line in found if words in line]
    assert caught, found
    assert file == "_static/style.css" or caught[0].startswith((f"{file}: ", "index.html: "))
    assert remembered(site)[0] == found
    assert remembered(site)[0] == found


@pytest.mark.parametrize("name", ["__pycache__/a.pyc", ".ipynb_checkpoints/a", "page.orig"])
def test_a_stray_file_is_caught(site, name):
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_text("")
    assert any("does not belong" in line for line in findings(site))


def test_a_heavy_page_is_caught_with_its_largest_parts(site):
    (site / "_images" / "plan.png").write_bytes(os.urandom(1_100_000))
    (caught,) = (line for line in findings(site) if "compressed" in line)
    assert caught.startswith(PAGE)
    assert "plan.png 1100 kB" in caught


def test_the_weight_counts_pictures_of_style_sheets_and_of_one_theme_but_no_font(site):
    """No font that is only declared."""

    def weigh():
        compressed.cache_clear()
        return weights(Site(site, site.parents[1]))[PAGE]

    before = weigh()
    names = ("dot.png", "a.woff2", "a.ttf", "light.png", "dark.png")
    for name in names:
        (site / "_static" / name).write_bytes(os.urandom(10_000))
    sheet = site / "_static" / "style.css"
    sheet.write_text(sheet.read_text() + "@font-face { src: url(a.woff2), url(a.ttf); }")
    assert 10_000 <= weigh() - before <= 10_500
    image = '<img class="only-{0}" alt="A hall" src="../_static/{0}.png">'
    edit(site, "</main>", f"{image.format('light')}{image.format('dark')}</main>")
    assert 20_000 <= weigh() - before <= 20_700


def test_the_report_is_one_line_for_each_finding(site, capsys):
    edit(site, "A plan of two rooms", "")
    assert report(Site(site, site.parents[1]))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f'{PAGE}: <img src="../_images/plan.png">: no alt text')


def test_pages_that_stayed_are_not_read_again(site, memory_of_clean):
    (site.parent / "facts.json").write_text(memory_of_clean)
    pages = Site(site, site.parents[1], Memory(site.parent / "facts.json"))
    assert check_pages(pages) == []
    assert not any("soup" in vars(page) for page in pages.pages.values())


def test_a_changed_rule_looks_at_every_page_again(site, tmp_path):
    rule = tmp_path / "rule.py"
    rule.write_text("old")
    memory = Memory(tmp_path / "facts.json", code=[rule])
    check_pages(Site(site, site.parents[1], memory))
    memory.save()
    content = (site / PAGE).read_bytes()
    assert Memory(tmp_path / "facts.json", code=[rule]).of(PAGE, content) != {}
    rule.write_text("new")
    assert Memory(tmp_path / "facts.json", code=[rule]).of(PAGE, content) == {}


def test_the_memory_knows_all_code_that_looks_at_a_page():
    rules = {sys.modules[one.__module__].__file__ for one in [*OF_A_PAGE, defects, Site]}
    assert {Path(name) for name in rules} <= set(LOOKS)


def test_a_memory_that_was_half_written_is_none(site):
    (site.parent / "facts.json").write_text('{"a": ')
    assert remembered(site) == ([], 0)


def test_a_file_that_goes_is_missed_by_pages_that_stayed(site):
    remembered(site)
    (site / "_images" / "plan.png").unlink()
    (site / "notebooks" / "01_first.ipynb").unlink()
    (site.parents[1] / "src" / "part.py").unlink()
    found, known = remembered(site)
    assert known == 2
    for words in ("loads ../_images/plan.png, which", "01_first.ipynb does not", "no src/part.py"):
        assert any(words in line for line in found), found
