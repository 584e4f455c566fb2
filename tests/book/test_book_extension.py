"""The book's Sphinx extensions: claims and their table, and what the site adds to the theme."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools import check_site
from tools.execute import execute
from tools.export_notebooks import export
from tools.render import Trees
from tools.settings import read_settings
from tools.site import Site

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = str(ROOT / "book" / "_ext")
if EXTENSIONS not in sys.path:
    sys.path.append(EXTENSIONS)
import vitbook_claims  # noqa: E402

TITLES = {
    "index": "Front",
    "one": "1. First",
    "part/two": "2. Second",
    "ready": "Ready?",
    "part/places": "Places",
    "part/maps": "Maps",
    "part/sharing": "Sharing",
    "part/places_depth_where": "In depth: where places go",
}
INDEX = "```{toctree}\npart/two\none\n```\n\n```{claims-table}\n```\n"


def claim(id_, verdict="false", says='"it is so"', body="It is not."):
    return f"```{{claim}} {id_}\n:says: {says}\n:verdict: {verdict}\n{body}\n```\n"


class Book:
    """A few pages and what Sphinx makes of them; building again is incremental."""

    settings: dict = {}  # noqa: RUF012

    def __init__(self, folder, extensions=("vitbook_claims",)):
        self.folder, self.extensions = folder, extensions
        self.warnings = ""

    def page(self, name, text):
        path = self.folder / "src" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {TITLES[name]}\n\n{text}", "utf8")

    def build(self):
        warnings = io.StringIO()
        with patch_docutils(None), docutils_namespace():
            app = Sphinx(
                srcdir=self.folder / "src",
                confdir=None,
                outdir=self.folder / "out",
                doctreedir=self.folder / "trees",
                buildername="html",
                confoverrides={
                    "extensions": ["myst_parser", *self.extensions],
                    "html_theme": "basic",
                    "myst_enable_extensions": ["dollarmath"],
                    **self.settings,
                },
                status=None,
                warning=warnings,
            )
            app.build()
        self.warnings = warnings.getvalue()
        return self

    def html(self, name):
        return BeautifulSoup(
            (self.folder / "out" / f"{name}.html").read_text("utf8"), "html.parser"
        )

    def rows(self, name="index"):
        """The table as (claim, verdict, link text, link address)."""
        rows = self.html(name).select("table.claims-table tbody tr")
        cells = [row.find_all("td") for row in rows]
        return [
            (said.text.strip(), verdict.text.strip(), link.text.strip(), link.a["href"])
            for said, verdict, link in cells
        ]


@pytest.fixture
def book(tmp_path):
    book = Book(tmp_path)
    book.page("index", INDEX)
    book.page("one", claim("late-claim", "true with conditions", "$QK^T$ is symmetric"))
    book.page("part/two", claim("bmm-same-kernel") + "\n" + claim("second-claim", "open"))
    return book


def test_a_claim_shows_its_words_and_its_verdict_and_can_be_linked_to(book):
    box = book.build().html("part/two").find(id="claim-bmm-same-kernel")
    assert book.warnings == ""
    assert box.select_one(".claim-says").text == "“it is so”"
    assert box.select_one(".verdict").text == "✗ False"
    assert box.select_one(".verdict [aria-hidden=true]").text == "✗"
    assert "It is not." in box.select_one(".claim-body").text
    assert {"claim", "claim-false"} <= set(box["class"])


def test_the_table_lists_every_claim_of_the_book_in_reading_order(book):
    assert book.build().rows() == [
        ("“it is so”", "✗ False", "2. Second", "part/two.html#claim-bmm-same-kernel"),
        ("“it is so”", "? Open", "2. Second", "part/two.html#claim-second-claim"),
        (
            "“\\(QK^T\\) is symmetric”",
            "◐ True, with conditions",
            "1. First",
            "one.html#claim-late-claim",
        ),
    ]


def test_the_table_can_choose_claims_and_its_links_work_from_a_folder(book):
    chosen = "\n```{claims-table}\n:only: late-claim only-here\n```\n"
    book.page("part/two", claim("left-out") + claim("only-here") + chosen)
    rows = book.build().rows("part/two")
    assert [row[3] for row in rows] == ["#claim-only-here", "../one.html#claim-late-claim"]
    book.page("part/two", claim("only-here") + "\n```{claims-table}\n```\n")
    assert book.build().rows("part/two")[1][3] == "../one.html#claim-late-claim"


def test_a_chosen_claim_that_nobody_makes_is_a_warning(book):
    book.page("part/two", "\n```{claims-table}\n:only: nobody-says-so\n```\n")
    assert "no claim has the id 'nobody-says-so'" in book.build().warnings


def test_an_edited_page_renews_the_table_on_another_page(book):
    book.build()
    book.page("one", claim("late-claim", "true", "$QK^T$ is symmetric"))
    assert book.build().rows()[2][1] == "✓ True"
    book.page("one", "Nothing is claimed any more.")
    assert [row[3] for row in book.build().rows()] == [
        "part/two.html#claim-bmm-same-kernel",
        "part/two.html#claim-second-claim",
    ]
    assert book.warnings == ""


def test_no_claims_leave_no_table(book):
    book.page("one", "Nothing.")
    book.page("part/two", "Nothing.")
    assert book.build().rows() == []
    assert book.html("index").find("table") is None


WRONG = [
    ("unknown verdict", claim("a", "nearly"), "verdict 'nearly' is not one of: true, true with"),
    ("no verdict", "```{claim} a\n:says: it\nBody.\n```\n", "verdict '' is not one of"),
    ("no words", "```{claim} a\n:verdict: true\nBody.\n```\n", "option 'says' is missing"),
    ("no body", claim("a", body=""), "the body is missing"),
    ("odd id", claim("Not_Kebab"), "use lower-case words joined by hyphens"),
    ("a tab from YAML", claim("a", says='"$K^\\top$"'), "put 'says' in single quotes"),
    ("the id of another page", claim("bmm-same-kernel"), "'bmm-same-kernel' is used twice"),
    ("the same id twice", claim("b") + "\n" + claim("b"), "'b' is used twice; first in one"),
]


@pytest.mark.parametrize(("text", "words"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG])
def test_a_wrong_claim_is_a_warning_with_its_place(book, text, words):
    book.page("one", text)
    line = next(line for line in book.build().warnings.splitlines() if words in line)
    assert re.search(r"one\.md:\d+: WARNING", line)


def test_single_quotes_keep_backslashes(book):
    book.page("one", claim("a", says="'\"$K^\\top$ is a transpose\"'"))
    assert book.build().rows()[2][0] == "“\\(K^\\top\\) is a transpose”"
    assert book.warnings == ""


def test_claims_of_parallel_readers_are_merged():
    def env(entries, tables):
        return SimpleNamespace(vitbook_claims=entries, vitbook_claims_tables=set(tables))

    def entry(docname):
        return vitbook_claims.Entry("x", docname, 1, "true", [])

    main = env([entry("one")], [])
    other = env([entry("two"), entry("stale")], ["two", "stale"])
    vitbook_claims.merge(None, main, ["two"], other)
    assert [entry.docname for entry in main.vitbook_claims] == ["one", "two"]
    assert main.vitbook_claims_tables == {"two"}


def exercise(label):
    return (
        f"```{{exercise-start}} Do it\n:label: {label}\n```\nNow.\n\n```{{exercise-end}}\n```\n\n"
        f"```{{solution-start}} {label}\n:label: sol-{label}\n```\n"
        "So.\n\n```{solution-end}\n```\n"
    )


CHAPTERS = """root: index
parts:
- chapters:
  - file: ready
- caption: I Part
  chapters:
  - file: part/places
    sections:
    - file: part/places_depth_where
  - file: part/sharing
"""


@pytest.fixture
def numbered(tmp_path):
    """A book with exercises on a page without a number and in chapters 1 and 2."""
    book = Book(tmp_path, ("sphinx_exercise", "vitbook_numbers"))
    (tmp_path / "_toc.yml").write_text(CHAPTERS)
    book.page("index", "```{toctree}\nready\npart/places\npart/sharing\n```\n")
    book.page("ready", f"{exercise('ex-r1')}\n{exercise('ex-r2')}")
    book.page("part/places", f"{exercise('ex-a')}\n{exercise('ex-b')}")
    book.page("part/sharing", exercise("ex-c"))
    return book


def test_exercises_are_numbered_by_chapter(numbered):
    numbered.build()
    titles = {
        name: [title.text for title in numbered.html(name).select(".exercise .caption-number")]
        for name in ("ready", "part/places", "part/sharing")
    }
    assert numbered.warnings == ""
    assert titles == {
        "ready": ["Exercise 1 ", "Exercise 2 "],
        "part/places": ["Exercise 1.1 ", "Exercise 1.2 "],
        "part/sharing": ["Exercise 2.1 "],
    }


def test_a_chapter_that_shares_the_number_before_it_is_numbered_by_its_letter(numbered):
    numbered.page("part/maps", exercise("ex-d"))
    toctree = "```{toctree}\nready\npart/places\npart/maps\npart/sharing\n```\n"
    numbered.page("index", toctree)
    toc = numbered.folder / "_toc.yml"
    lettered = "meta: {lettered: [part/maps]}\nroot: index"
    middle = "  - file: part/maps\n  - file: part/sharing"
    text = toc.read_text().replace("root: index", lettered)
    toc.write_text(text.replace("  - file: part/sharing", middle))
    numbered.page(
        "ready",
        "{chapter}`Chapter {number}, {name} <maps>` has {ref}`ex-d`, "
        "{chapter}`places` {ref}`ex-a`.\n",
    )
    for _ in range(2):  # the second build takes the numbers from the first one's file
        words = numbered.build().html("ready").select_one(".body p").text
        assert numbered.warnings == ""
        assert words == "Chapter 1b, Maps has Exercise 1b.1, chapter 1 Exercise 1.1."
        assert numbered.html("part/maps").h1.text.startswith("1b. Maps")


def test_references_to_exercises_and_solutions_show_the_same_numbers(numbered):
    words = "{ref}`ex-b`, {numref}`ex-c`, {ref}`that one <ex-b>`, {numref}`No. %s <ex-b>`\n"
    numbered.page("ready", words)
    page = numbered.build().html("ready")
    links = [(link.text, link["href"]) for link in page.select("[role=main] p a, .body p a")]
    assert numbered.warnings == ""
    assert links == [
        ("Exercise 1.2", "part/places.html#ex-b"),
        ("Exercise 2.1", "part/sharing.html#ex-c"),
        ("that one", "part/places.html#ex-b"),
        ("No. 1.2", "part/places.html#ex-b"),
    ]


def test_a_reference_fills_in_the_number_of_the_page_that_a_label_is_on(numbered):
    numbered.page("part/places", "(sec-order)=\n## Order\n\nThis is {chapter}`places`.\n")
    numbered.page("ready", "{chapter}`in {number}, order <sec-order>`; {chapter}`sharing`.\n")
    page = numbered.build().html("ready")
    assert numbered.warnings == ""
    links = [(link.text, link["href"]) for link in page.select(".body p a")]
    assert links == [
        ("in 1, order", "part/places.html#sec-order"),
        ("chapter 2", "part/sharing.html"),
    ]
    own = numbered.html("part/places").select_one("#order p, #sec-order p")
    assert own.text == "This is chapter 1."
    assert own.a is None


def test_a_reference_to_no_chapter_is_a_warning(numbered):
    numbered.page("ready", "{chapter}`the next`\n")
    assert "no chapter and no label in one is called 'the next'" in numbered.build().warnings


def test_an_old_address_leads_to_the_page_and_the_anchor_of_today(numbered):
    rows = """[[moved]]
page = "12_order"
to = "part/order"
words = { c12 = "old" }

[[moved]]
page = "part/order"
to = "part/places"
words = { old = "places" }
"""
    (numbered.folder / "src").rename(numbered.folder / "book")
    (numbered.folder / "src").symlink_to("book")
    (numbered.folder / "book/moved.toml").write_text(rows)
    numbered.extensions += ("vitbook_moved",)
    numbered.build()
    assert numbered.warnings == ""
    page = numbered.html("12_order")
    assert page.a["href"] == page.find("link")["href"] == "part/places.html"
    assert page.a.text == "1. Places"
    assert '[["c12", "old"], ["old", "places"]]' in page.script.text
    assert numbered.html("part/order").a["href"] == "places.html"


PREDICTION = """```{predict} places-half
OPTIONSHow much?
+++
As *much* as before.
```
"""


@pytest.fixture
def formed(tmp_path):
    """A chapter with a page in depth below it."""
    book = Book(tmp_path, ("sphinx_exercise", "vitbook_numbers", "vitbook_forms"))
    (tmp_path / "_toc.yml").write_text(CHAPTERS)
    book.page("index", "```{toctree}\npart/places\n```\n\n{minutes}`read part/places`\n")
    places = "```{toctree}\nplaces_depth_where\n```\n(sec-order)=\n## Order\n\n"
    places += "Why? {in-depth}`places_depth_where`"
    book.page("part/places", f"{places}; {{in-depth}}`so <places_depth_where>`.\n")
    book.page("part/places_depth_where", "```{in-depth} sec-order\nWhy?\n```\n\nSo.\n")
    return book


def predicted(book, options=""):
    toctree = "```{toctree}\nplaces_depth_where\n```\n(sec-order)=\n## Order\n\n"
    book.page("part/places", toctree + PREDICTION.replace("OPTIONS", options))
    return book.build().html("part/places").select_one(".predict")


def test_a_prediction_is_a_named_group_with_a_native_fold(formed):
    group = predicted(formed)
    assert formed.warnings == ""
    assert (group["role"], group["id"]) == ("group", "predict-places-half")
    assert group.find(id=group["aria-labelledby"]).text == "Predict, then run"
    fold = group.details
    assert not fold.has_attr("open")
    assert fold.summary.text == "What happened"
    assert fold.em.text == "much"
    assert "How much?" in group.text.replace(fold.text, "")
    assert "data-choices" not in group.attrs


def test_a_prediction_carries_what_a_script_needs(formed):
    group = predicted(formed, ':choices: no more | *twice* & "more"\n:answer: no more\n')
    assert json.loads(group["data-choices"]) == ["no more", '*twice* & "more"']
    assert (group["data-predict"], group["data-answer"]) == ("places-half", "no more")
    assert next(item.text.strip() for item in group.select(".predict-choices li")) == "no more"
    assert group.select_one("details .predict-right").text == "no more"
    group = predicted(formed, ":number: 0.5 +- 0.1\n")
    assert (group["data-number"], group["data-within"]) == ("0.5", "0.1")
    group = predicted(formed, ":number: 50 +- 5\n:unit: %\n")
    assert (group["data-unit"], group.select_one(".predict-right").text) == ("%", "50 %")


def test_a_wrong_prediction_is_a_warning_with_its_place(formed):
    assert predicted(formed, ":choices: a | b\n:answer: c\n") is None
    line = next(line for line in formed.warnings.splitlines() if "'c' is not among: a, b" in line)
    assert re.search(r"places\.md:9: WARNING", line)


def test_chapter_and_page_in_depth_lead_to_each_other(formed):
    page = formed.build().html("part/places")
    assert formed.warnings == ""
    links = {link.text: link["href"] for link in page.select("#order p a")}
    assert links["in depth: where places go"] == links["so"] == "places_depth_where.html"
    box = formed.html("part/places_depth_where").select_one(".in-depth")
    assert box.a["href"] == "places.html#sec-order"
    assert [p.text for p in box.find_all("p")] == [
        "In depth",
        "Why?",
        "From Order; the chapters do without it. Read 5 minutes.",
    ]


def test_a_link_to_a_page_in_depth_that_is_not_there_is_a_warning(formed):
    formed.page(
        "part/places",
        "```{toctree}\nplaces_depth_where\n```\n{in-depth}`sharing_depth`\n(sec-order)=\n## O\n",
    )
    assert "part/sharing_depth" in formed.build().warnings


def test_minutes_are_counted_and_a_page_that_is_not_there_is_a_warning(formed):
    assert formed.build().html("index").select_one(".body p").text == "5"
    formed.page(
        "index", "```{toctree}\npart/places\n```\n\n{minutes}`read gone` {minutes}`eat index`\n"
    )
    warnings = formed.build().warnings
    assert "minutes 'read gone'" in warnings
    assert "minutes 'eat index': write `this page`" in warnings
    formed.page("index", "```{toctree}\npart/places\n```\n\n{minutes}`hours part/places index`\n")
    assert formed.build().html("index").select_one(".body p").text == "0.5"


NOTEBOOK = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# With a formula

$x^2$
"""


def build_site(root, name="_build"):
    """What a build complains of, "" if all is well; in a process of its own: Sphinx keeps global
    state."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
        "from tools import render; "
        "root = Path(sys.argv[2]); sys.exit(not render.render(root, root / sys.argv[3]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT, root, name], capture_output=True, text=True
    )
    return f"failed: {done.stderr}" if done.returncode else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of three pages, built with the real settings."""
    root = tmp_path_factory.mktemp("site")
    for name in ("_config.yml", "requirements.txt"):
        shutil.copy(ROOT / name, root)
    shutil.copy(ROOT / "pyproject.toml", root)
    for folder in ("_ext", "_static"):
        shutil.copytree(ROOT / "book" / folder, root / "book" / folder)
    toc = (
        "format: jb-book\nroot: index\nparts:\n- caption: I Part\n  chapters:\n  - file: part/one\n"
    )
    (root / "_toc.yml").write_text(toc)
    (root / "book" / "part").mkdir()
    (root / "book" / "references.bib").write_text("")
    (root / "book" / "index.md").write_text("# Front\n\nPlain words.\n")
    (root / "book" / "part" / "one.md").write_text(NOTEBOOK)
    assert build_site(root) == ""
    return root


FOLDED = (
    NOTEBOOK.replace("With a formula", "With folds")
    + """
````{dropdown} Deeper: why
Because.
````

```{code-cell} ipython3
:tags: [hide-input, deeper]
print("in the box")
```

```{claim} it-is-one
:says: "It is one"
:verdict: true
It is.
```

```{code-cell} ipython3
:tags: [hide-input]
assert 1 == 1
```

```{code-cell} ipython3
:tags: [hide-input]
from IPython.display import HTML
HTML('<figure><img alt="A dot" src="data:,">'
     '<figcaption>One <b>dot</b>. It is red.</figcaption></figure>')
```

```{code-cell} ipython3
:tags: [hide-cell]
print("all of it")
```

```{exercise-start} One
:label: ex-one
```
Return 1.

```{code-cell} ipython3
print("not answered yet: my_one")
```
```{exercise-end}
```
```{solution-start} ex-one
:label: sol-one
:class: dropdown
```
It is one.

```{code-cell} ipython3
print("ok: one")
```
```{solution-end}
```
"""
)


FOLDED += """
```{code-cell} ipython3
import math
N = 3
```

```{code-cell} ipython3
def naive(x):
    return x + 0
# check: equal to the package, 1e-6
assert naive(1) == 1
```

```{claim} two-is-even
:says: "Two is odd, $\\\\sqrt{4}$"
:truth: Two is even, $2 = 2 \\cdot 1$.
:verdict: false
:refuted-by: a remainder.
It has none.
```

```{code-cell} ipython3
half = 2 / 2
assert half == 1
```

```{code-cell} ipython3
from vitbook.book.table import show_table
rows = [["one", 1.0], ["two", None]]
show_table(rows, header=["", "value"], caption="Of two. Small.", best="max")
```

```{literalinclude} ../../src/vitbook/part.py
:pyobject: mix
```

```{code-cell} ipython3
from vitbook.book.glue import glue
glue(half=0.5)
```

```{predict} folds-half
:number: 0.5
How much?
+++
Just {glue:text}`half:.2f`, or $1/2$.
```
"""


PART = '''def mix(x):
    """Mix ``x``, as :func:`there`.

    More.
    """
    return x
'''


@pytest.fixture(scope="module")
def folded(site):
    """A page with everything that folds, executed and built."""
    page = site / "book" / "part" / "folds.md"
    page.write_text(FOLDED)
    source = site / "src" / "vitbook" / "part.py"
    source.parent.mkdir(parents=True)
    source.write_text(PART)
    toc = site / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: part/folds\n")
    assert execute(site, site / "_build", [page], jobs=1, timeout=60) == []
    assert build_site(site) == ""
    return soup(site, "part/folds")


def test_a_solution_is_a_native_fold_without_a_link_in_its_title(folded):
    (box,) = folded.select("details.solution")
    assert box["id"] == "sol-one"
    assert not box.has_attr("open")
    assert box.summary.text == "Solution to Exercise 2.1 (One)"
    assert box.summary.a is None
    assert "ok: one" in box.text
    assert "aria-label" not in str(folded.find_all("summary"))


def test_a_stub_does_not_complain_on_the_site(folded):
    exercise = folded.select_one("#ex-one")
    assert "return" not in exercise.text.lower().replace("return 1", "")
    assert exercise.select_one(".cell_input") is not None
    assert exercise.select_one(".cell_output") is None


def test_a_cell_tagged_deeper_moves_into_the_box_before_it(folded):
    (box,) = folded.select("details.sd-dropdown")
    assert "in the box" in box.select_one(".cell_output").text
    assert box.select_one(".cell details summary").text == "Code of this output"


def test_a_folded_assertion_stands_in_the_claim_before_it(folded):
    fold = folded.select_one(".claim details")
    assert fold.summary.text == "How this verdict is checked: “It is one” ran in this build"
    assert "assert" in fold.select_one(".cell_input").text


def cell_with(page, words):
    return page.find(string=re.compile(words)).find_parent(class_="cell")


def test_a_cell_of_imports_and_constants_folds_as_setup(folded):
    (child,) = cell_with(folded, "^math$").find_all(recursive=False)
    assert (child.name, child.summary.text) == ("details", "Setup")
    assert "N = 3" in child.select_one(".cell_input").text


def test_what_stands_below_a_marker_folds_under_its_words_and_says_that_it_ran(folded):
    shown, fold = cell_with(folded, "^naive$").find_all(recursive=False)
    assert shown.text.strip().endswith("return x + 0")
    assert fold.summary.text == "Checked: equal to the package, 1e-6 ran in this build"
    assert "assert" in fold.select_one(".cell_input").text
    assert "# check" not in folded.text


def test_what_holds_is_the_headline_and_the_cell_that_settles_it_stands_in_the_card(folded):
    card = folded.find(id="claim-two-is-even")
    assert card.select_one(".claim-top .claim-says").text.startswith("“Two is odd, ")
    assert card.select_one(".claim-top .verdict").text == "✗ False"
    assert card.select_one(".claim-truth").text.startswith("Two is even, ")
    order = [" ".join(child["class"]) for child in card.find_all(recursive=False)]
    assert [name.split()[0] for name in order] == [
        "claim-top", "claim-truth", "claim-body", "claim-refuted", "cell",
    ]  # fmt: skip
    assert card.select_one(".claim-refuted").text == "Would be refuted by: a remainder."
    assert "half == 1" in card.select_one(".cell details").text
    assert card.summary.text.startswith("How this verdict is checked: “Two is odd, sqrt 4 ”")


def test_a_table_stands_above_its_code_and_is_numbered(folded):
    output, fold = (
        folded.select_one("table.vitbook-table")
        .find_parent(class_="cell")
        .find_all(recursive=False)
    )
    assert output.caption.text == "Table 2.1. Of two. Small."
    assert output.strong.text == "1.0"
    assert fold.summary.text == "Code of this table: Of two"


def test_code_of_the_package_shows_its_body_and_says_where_it_is(folded):
    box = folded.select_one(".package-code")
    assert box.p.text == "From the package: mix, src/vitbook/part.py"
    assert box.p.a["href"].endswith(f"/blob/{read_settings(ROOT).tag}/src/vitbook/part.py")
    assert box.select_one(".highlight").text == "def mix(x):\n    return x\n"
    assert box.details.summary.text == "Docstring of mix"
    assert "Mix x, as there." in box.details.text


def test_a_truth_with_a_glued_number_is_a_warning_because_it_stands_on_other_pages(book):
    glued = claim("a").replace(":verdict", ":truth: So {glue:text}`x`.\n:verdict")
    book.page("one", glued)
    assert "'truth' takes no glued number" in book.build().warnings


def test_the_table_of_claims_says_what_holds(book):
    book.page("one", claim("a").replace(":verdict", ":truth: It is *not* so.\n:verdict"))
    said = book.build().html("index").select("table.claims-table tbody tr")[2].td
    assert [p.text for p in said.find_all("p")] == ["“it is so”", "It is not so."]


def test_a_prediction_is_explained_with_glued_numbers(folded):
    assert "What happened 0.5 Just 0.50, or" in " ".join(
        folded.select_one(".predict details").text.split()
    )
    assert folded.select_one(".predict details math").text == "1/2"


def test_the_code_of_a_figure_comes_after_it_and_is_named_after_its_caption(folded):
    cell = folded.find("figcaption").find_parent(class_="cell")
    output, fold = cell.find_all(recursive=False)
    assert "cell_output" in output["class"]
    assert fold.summary.text == "Code of this figure: One dot"
    assert fold.summary.span["class"] == ["visually-hidden"]


def test_a_wholly_folded_cell_hides_what_it_prints(folded):
    fold = folded.find(string=re.compile("all of it")).find_parent("details")
    assert fold.select_one(".cell_input") is not None
    assert fold.select_one(".cell_output") is not None


def test_a_cell_tagged_deeper_without_a_box_fails_the_build(site, folded):
    page = site / "book" / "part" / "folds.md"
    page.write_text(FOLDED.replace("````{dropdown} Deeper: why\nBecause.\n````", "Because."))
    assert "deeper" in build_site(site)
    page.write_text(FOLDED)


def soup(root, name):
    return BeautifulSoup((root / "_build/html" / f"{name}.html").read_text("utf8"), "html.parser")


def loaded(page):
    """What the page fetches: scripts, styles, pictures."""
    tags = page.find_all(["script", "link", "img"])
    return [tag.get("src") or tag.get("href") for tag in tags if tag.get("src") or tag.get("href")]


def test_the_site_loads_nothing_from_elsewhere_and_no_dead_weight(site):
    for name in ("index", "part/one"):
        addresses = loaded(soup(site, name))
        assert addresses
        for address in addresses:
            assert "//" not in address
            assert "thebe" not in address
            assert "fontawesome" not in address


def test_a_formula_is_in_the_page_and_its_style_only_where_one_is(site):
    page = soup(site, "part/one")
    assert page.select_one(".math math msup").text == "x2"
    assert any("katex.min.css" in address for address in loaded(page))
    assert not any("katex" in address for address in loaded(soup(site, "index")))
    assert not any("mathjax" in address.lower() for address in loaded(page))


def test_what_a_page_fetches_first_is_there_and_is_what_its_style_sheets_ask_for(site):
    page, folder = soup(site, "part/one"), site / "_build/html/part"
    fonts = [(folder / link["href"]).resolve() for link in page.select("link[rel=preload]")]
    assert len(fonts) == 5
    sheets = "".join(
        path.read_text("utf8") for path in (site / "_build/html/_static").rglob("*.css")
    )
    for font in fonts:
        assert font.is_file()
        assert f"fonts/{font.name}" in sheets


def test_a_site_holds_no_file_that_no_page_loads(site):
    static = site / "_build/html/_static"
    assert not (static / "scripts").exists()
    assert [*static.rglob("*.map")] == []


def test_a_script_comes_only_with_what_it_works_on(site, folded):
    """Code to copy, here; of tabs there are none."""
    assert not any("copybutton.js" in address for address in loaded(soup(site, "index")))
    assert any("copybutton.js" in address for address in loaded(folded))
    assert not any("design-tabs" in address for address in loaded(folded))


def test_no_script_stops_a_page_while_it_is_read(folded):
    scripts = [tag for tag in folded.find_all("script") if tag.get("src")]
    assert [tag["src"] for tag in scripts if not tag.has_attr("defer")] == []
    assert not any("theme.js" in tag["src"] or "doctools" in tag["src"] for tag in scripts)


def test_plain_words_of_code_have_no_element_of_their_own(folded):
    code = folded.select_one(".highlight pre:-soup-contains('from IPython.display import')")
    assert "HTML(" in code.text
    assert code.select_one(".n, .p, .w") is None
    assert code.select_one(".kn").text == "from"


def test_a_chapter_links_to_its_notebook_in_colab_and_offers_downloads(site):
    links = [link["href"] for link in soup(site, "part/one").select(".article-header-buttons a")]
    assert links[0] == f"{read_settings(ROOT).colab_url}one.ipynb"
    assert {"../notebooks/one.ipynb", "../notebooks/one.py"} <= set(links)
    front = [link["href"] for link in soup(site, "index").select(".article-header-buttons a")]
    assert not any("notebooks" in link for link in front)


def test_a_chapter_that_was_not_executed_is_an_error_not_a_silent_run(site):
    page = site / "book" / "part" / "one.md"
    good = page.read_text()
    page.write_text(good + "\n```{code-cell} ipython3\nprint(1)\n```\n")
    assert "not in the cache" in build_site(site)
    page.write_text(good)


FAILS = (
    NOTEBOOK.replace("With a formula", "With failures")
    + """
The page counts {glue:text}`known:.1f` and {glue:text}`lost:.1f`.

```{claim} it-is-two
:says: "It is two"
:truth: It is two.
:verdict: true
It is.
```

```{code-cell} ipython3
two = 1.5
assert two > 1
assert two == 2
```

```{claim} it-is-three
:says: "It is three"
:verdict: false
It is not.
```

```{code-cell} ipython3
assert 3 == 3
```

```{code-cell} ipython3
:tags: [remove-cell]
assert two > 7
```

```{code-cell} ipython3
from vitbook.book.glue import glue
glue(known=2.5)
int("many")
glue(lost=3)
```

```{exercise-start} Four
:label: ex-four
```
Return 4.

```{exercise-end}
```
```{solution-start} ex-four
:label: sol-four
```
```{code-cell} ipython3
assert two == 4
```
```{solution-end}
```
"""
)
LISTED = "\n```{claims-table}\n```\n\n```{claims-table}\n:unconfirmed:\n```\n"
LISTED += "\nLinked: {ref}`one <claim-it-is-two>`, {ref}`another <claim-it-is-three>`.\n"


@pytest.fixture(scope="module")
def failing(site, folded):
    """The same book with a page on which a check of each kind fails and a cell breaks."""
    page, front = site / "book" / "part" / "fails.md", site / "book" / "index.md"
    page.write_text(FAILS)
    front.write_text(front.read_text() + LISTED)
    toc = site / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: part/fails\n")
    failures = execute(site, site / "_build", [page], jobs=1, timeout=60)
    assert build_site(site) == ""
    kept = Path(shutil.copytree(site, site.parent / "failing"))
    mended = FAILS.replace('int("many")\n', "")
    for wrong, right in (("two = 1.5", "two = 2"), ("two > 7", "two > 1"), ("== 4", "== 2")):
        mended = mended.replace(wrong, right)
    page.write_text(mended)
    assert execute(site, site / "_build", [page], jobs=1, timeout=60) == []
    assert build_site(site) == ""
    told = [str(one).partition(": ")[2] for one in failures]
    return SimpleNamespace(root=kept, told=told, page=soup(kept, "part/fails"), mended=site)


def everything(root):
    """All files of a site but those that tell the time."""
    folder = root / "_build" / "html"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".buildinfo"
    }


def trees(root):
    """When each page was read."""
    folder = root / "_build" / ".doctrees"
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.doctree")}


def test_an_edited_page_is_read_again_and_the_site_is_that_of_a_build_from_nothing(site, folded):
    assert build_site(site) == ""
    before, page = trees(site), site / "book" / "part" / "one.md"
    good, dates = page.read_text(), page.stat()
    page.write_text(good + "\n{chapter}`folds` says so.\n")
    os.utime(page, ns=(dates.st_atime_ns, dates.st_mtime_ns))  # an edit that keeps the date
    assert build_site(site) == ""
    after, remembered = trees(site), everything(site)
    assert {name for name in after if after[name] != before[name]} == {"one.doctree"}
    assert b"says so" in remembered["part/one.html"]
    shutil.rmtree(site / "_build" / ".doctrees")
    assert build_site(site) == ""
    assert everything(site) == remembered
    page.write_text(good)


def test_what_an_edit_breaks_on_another_page_fails_the_build_each_time(site, folded):
    page, other = site / "book" / "part" / "one.md", site / "book" / "index.md"
    good, front = page.read_text(), other.read_text()
    page.write_text(good.replace("# With", "(sec-one)=\n# With"))
    other.write_text(front + "\n{ref}`sec-one`\n")
    assert build_site(site) == ""
    page.write_text(good)
    assert "sec-one" in build_site(site)
    assert not (site / "_build" / "trees.json").exists()  # so the next begins from nothing
    other.write_text(front)


KINDS = {"_config.yml": [], "book/part/a.svg": [], "run": ["two"], "book/__pycache__/a.pyc": None}


@pytest.mark.parametrize(("what", "left"), KINDS.items())
def test_what_is_no_page_lets_no_tree_stand(tmp_path, what, left):
    digests = tmp_path / "_build" / ".jupyter_cache" / "digests.json"
    files = {"_config.yml": "a", "book/part/a.svg": "", "book/one.md": "", "book/two.md": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    digests.parent.mkdir(parents=True)
    digests.write_text('{"one": {"seconds": 1}, "two": {"seconds": 1}}')
    kept = [digests.parents[1] / ".doctrees" / f"{name}.doctree" for name in ("one", "two")]
    kept[0].parent.mkdir()
    for path in kept:
        path.touch()
    Trees(tmp_path, tmp_path / "_build").keep()
    Trees(tmp_path, tmp_path / "_build").prepare()
    assert [path.exists() for path in kept] == [True, True]
    Trees(tmp_path, tmp_path / "_build").keep()
    if what == "run":
        digests.write_text('{"one": {"seconds": 2}, "two": {"seconds": 1}}')
    else:
        (tmp_path / what).parent.mkdir(exist_ok=True)
        (tmp_path / what).write_text("b")
    Trees(tmp_path, tmp_path / "_build").prepare()
    left = ["one", "two"] if left is None else left  # a scratch file changes nothing
    assert [path.stem for path in kept if path.exists()] == left
    Trees(tmp_path, tmp_path / "_build").prepare()  # the last rendering was not kept
    assert [path.exists() for path in kept] == [False, False]


def test_what_fails_is_told_where_every_reader_sees_it_and_all_pages_are_built(failing):
    assert failing.told == [
        "did not hold: two == 2; found 1.5 == 2",
        "did not hold: two > 7; found 1.5 > 7",
        "ended with ValueError: invalid literal for int() with base 10: 'many'",
        "did not hold: two == 4; found 1.5 == 4",
    ]
    boxes = failing.page.select(".not-held")
    assert [" ".join(box.text.split()) for box in boxes] == [
        "This did not hold on this machine: two == 2; found 1.5 == 2.",
        "This did not hold on this machine: two > 7; found 1.5 > 7.",
        "On this machine this cell ended with ValueError: invalid literal for int() with base 10: "
        "'many'.",
        "This did not hold on this machine: two == 4; found 1.5 == 4.",
    ]
    assert not any(box.find_parent("details") for box in boxes)
    assert [bool(box.find_parent(class_="claim")) for box in boxes] == [True, False, False, False]
    assert soup(failing.root, "part/one").h1.text.startswith("1. With a formula")


def test_a_fold_does_not_say_that_a_check_has_passed_which_failed(failing):
    told = [mark.text.strip() for mark in failing.page.select(".fold-failed, .fold-ran")]
    assert told[:2] == ["failed in this build", "ran in this build"]


def test_a_number_that_was_not_computed_is_a_mark_that_says_so(failing):
    (mark,) = failing.page.select(".not-computed")
    assert (mark.text, mark["title"]) == ("?", "not computed on this machine")
    assert [one.text for one in failing.page.select(".pasted-text")] == ["2.5"]


def test_a_claim_whose_cell_failed_is_not_confirmed_here_nor_where_it_is_named(failing):
    words = "Not confirmed on this machine"
    boxes = failing.page.select(".claim[id]")
    claims = {box["id"]: box.select_one(".claim-verdict").text for box in boxes}
    assert claims == {"claim-it-is-two": f"✓ True {words}", "claim-it-is-three": "✗ False"}
    whole, unconfirmed = soup(failing.root, "index").select("table.claims-table")
    rows = {row.a["href"].partition("#")[2]: row.text for row in whole.select("tbody tr")}
    assert [id_ for id_, text in rows.items() if words in text] == ["claim-it-is-two"]
    (row,) = unconfirmed.select("tbody tr")
    assert words in row.text
    linked = soup(failing.root, "index").find(string=re.compile("Linked: ")).parent
    assert linked.text == f"Linked: one {words}, another."


def test_the_check_of_the_site_says_nothing_of_what_failed(failing):
    html = failing.root / "_build" / "html"
    told = {one.message for one in check_site.check(html, ROOT) if one.page == "part/fails.html"}
    assert {"an error or warning in an output", "this fold is empty"}.isdisjoint(told)
    assert not any("figures from its cells" in words for words in told)


def test_the_notebook_of_a_page_that_failed_says_so_too(failing):
    settings = read_settings(failing.root)
    files = export(settings, Site(failing.root / "_build" / "html", failing.root))
    cells = json.loads(files["fails.ipynb"])["cells"]
    words = "\n".join("".join(cell["source"]) for cell in cells)
    assert "counts 2.5 and ?." in words
    assert words.count("Not confirmed on the machine that built the book.") == 1
    assert "collect()" in words


def test_when_it_is_mended_nothing_is_said_any_more(failing):
    page = soup(failing.mended, "part/fails")
    assert page.select(".not-held, .not-computed, .fold-failed, .unconfirmed") == []
    assert len(soup(failing.mended, "index").select("table.claims-table")) == 1
    assert "Not confirmed" not in soup(failing.mended, "index").text


def test_a_number_that_no_cell_of_a_sound_page_glues_stays_an_error(failing):
    page = failing.mended / "book" / "part" / "fails.md"
    good = page.read_text()
    page.write_text(good + "\nAnd {glue:text}`nobody:.1f`.\n")
    assert "nobody" in build_site(failing.mended)
    page.write_text(good)
