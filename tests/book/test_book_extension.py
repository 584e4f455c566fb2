"""The book's Sphinx extensions: claims, numbers and forms, what folds, and what the site loads."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_book import CHAPTERS, ROOT, Book, soup, write_files

from website.build import check_site
from website.build.execute import execute
from website.build.export_notebooks import export
from website.build.render import Trees
from website.pages.settings import read_settings

HEADS = {
    "index": "```{toctree}\nready\npart/places\npart/maps\npart/sharing\n```\n\n",
    "ready": "",
    "part/places": "```{toctree}\nplaces_depth_where\n```\n\n(sec-order)=\n## Order\n\n",
    "part/places_depth_where": "```{in-depth} sec-order\nWhy?\n```\n",
    "part/maps": "",
    "part/sharing": "",
}


class Chapters(Book):
    def build(self, **pages):
        """Build with other text below the heads of some pages, named without their folder."""
        for name, head in HEADS.items():
            self.page(name, head + pages.get(name.rpartition("/")[2], ""))
        return super().build()

    def rows(self, name="index", number=0):
        """A table of claims as (claim, verdict, link text, link address)."""
        tables = self.html(name).select("table.claims-table")
        rows = [row.find_all("td") for row in tables[number].select("tbody tr")] if tables else []
        return [(*(td.get_text(" ", strip=True) for td in row), row[2].a["href"]) for row in rows]


@pytest.fixture
def book(tmp_path):
    ours = ["chapter", "predict", "in_depth", "minutes", "claim"]
    syntax = [f"website.syntax.{one}" for one in ours]
    return Chapters(tmp_path, ("sphinx_exercise", *syntax), CHAPTERS)


def claim(id_, verdict="false", says='"it is so"', body="It is not."):
    return f"```{{claim}} {id_}\n:says: {says}\n:verdict: {verdict}\n{body}\n```\n\n"


TABLE = "```{claims-table}\n```\n\n"
TRUTH = claim("same-kernel").replace(":verdict", ":truth: It is *not* so.\n:verdict")


def test_a_claim_shows_its_words_and_its_verdict_and_the_table_lists_all_in_reading_order(book):
    book.build(
        index=TABLE,
        places=TRUTH + claim("second", "open"),
        maps=claim("only-here", "true", "'\"$K^\\top$ is a transpose\"'") + TABLE,
        sharing=claim("late", "true with conditions", "$QK^T$ is symmetric"),
    )
    assert book.warnings == ""
    box = book.html("part/places").find(id="claim-second")
    assert box.select_one(".claim-says").text == "“it is so”"
    assert box.select_one(".verdict").text == "? Open"
    assert "It is not." in box.select_one(".claim-body").text
    assert book.rows() == [
        ("“it is so” It is not so.", "✗ False", "1. Places", "part/places.html#claim-same-kernel"),
        ("“it is so”", "? Open", "1. Places", "part/places.html#claim-second"),
        ("“ \\(K^\\top\\) is a transpose”", "✓ True", "1b. Maps", "part/maps.html#claim-only-here"),
        (
            "“ \\(QK^T\\) is symmetric”",
            "◐ True, with conditions",
            "2. Sharing",
            "part/sharing.html#claim-late",
        ),
    ]
    links = [row[3] for row in book.rows("part/maps")]
    assert links[:2] == ["places.html#claim-same-kernel", "places.html#claim-second"]


WRONG = {
    claim("a", "nearly"): "verdict 'nearly' is not one of: true, true with",
    "```{claim} b\n:says: it\nBody.\n```\n": "verdict '' is not one of",
    "```{claim} c\n:verdict: true\nBody.\n```\n": "option 'says' is missing",
    claim("d", body=""): "the body is missing",
    claim("Not_Kebab"): "use lower-case words joined by hyphens",
    claim("e", says='"$K^\\top$"'): "put 'says' in single quotes",
    claim("elsewhere"): "'elsewhere' is used twice",
    claim("f") + claim("f"): "'f' is used twice; first in part/sharing",
    TRUTH.replace("*not*", "{glue:text}`x`"): "'truth' takes no glued number",
    "{chapter}`the next`\n": "no chapter and no label in one is called 'the next'",
    "```{predict} g\n:choices: a | b\n:answer: c\nHow?\n+++\nSo.\n```\n": "'c' is not among: a, b",
    "```{predict} h\n:number: 2\nHow?\n+++\nSo.\n```\n": "the prediction h needs a track",
    "```{predict} i\n:number: 2\n:track: 3 to 9\nHow?\n+++\nSo.\n```\n": "i: 2 is not between",
    "```{predict} j\n:choices: a | a\n:answer: a\nHow?\n+++\nSo.\n```\n": "j needs two choices",
    "```{predict} k\n:number: 2\n:track: 0 to 9 log\nHow?\n+++\nSo.\n```\n": "k: 2 is not between",
    "{in-depth}`sharing_depth`\n": "sharing_depth",
    "{minutes}`hours gone`\n": "minutes 'hours gone'",
    "{minutes}`eat index`\n": "minutes 'eat index': write `this page`",
}


def test_what_is_wrong_is_a_warning_with_its_place(book):
    lines = book.build(places=claim("elsewhere"), sharing="\n".join(WRONG)).warnings.splitlines()
    lines = [line for line in lines if "duplicate label" not in line]  # of Sphinx itself
    for text, words in WRONG.items():
        assert any(words in line for line in lines), text
    assert all(re.search(r"sharing\.md:\d+: WARNING", line) for line in lines), lines
    assert len(lines) == len(WRONG)


def exercise(label):
    return (
        f"```{{exercise-start}} Do it\n:label: {label}\n```\nNow.\n\n```{{exercise-end}}\n```\n\n"
        f"```{{solution-start}} {label}\n:label: sol-{label}\n```\n"
        "So.\n\n```{solution-end}\n```\n"
    )


REFERENCES = {
    "{ref}`ex-b`": ("Exercise 1.2", "part/places.html#ex-b"),
    "{numref}`ex-c`": ("Exercise 2.1", "part/sharing.html#ex-c"),
    "{ref}`that one <ex-b>`": ("that one", "part/places.html#ex-b"),
    "{numref}`No. %s <ex-b>`": ("No. 1.2", "part/places.html#ex-b"),
    "{ref}`ex-d`": ("Exercise 1b.1", "part/maps.html#ex-d"),
    "{chapter}`sharing`": ("chapter 2", "part/sharing.html"),
    "{chapter}`in {number}, order <sec-order>`": ("in 1, order", "part/places.html#sec-order"),
    "{chapter}`Chapter {number}, {name} <maps>`": ("Chapter 1b, Maps", "part/maps.html"),
}


def test_exercises_and_references_have_the_numbers_of_chapters(book):
    """A chapter that shares the number before it has a letter."""
    pages = {
        "ready": exercise("ex-r") + "\n\n" + ", ".join(REFERENCES),
        "places": exercise("ex-a") + exercise("ex-b") + "\nThis is {chapter}`places`.\n",
        "maps": exercise("ex-d"),
        "sharing": exercise("ex-c"),
    }
    for _ in range(2):  # the second build takes the numbers from the first one's file
        assert book.build(**pages).warnings == ""
        links = book.html("ready").select(".body p:last-of-type a")
        assert [(link.text, link["href"]) for link in links] == [*REFERENCES.values()]
        (own,) = book.html("part/places").select("p:-soup-contains('This is')")
        assert own.text == "This is chapter 1."
        assert own.a is None
        assert book.html("part/maps").h1.text.startswith("1b. Maps")
        titles = [book.html(name).select(".exercise .caption-number") for name in HEADS]
        numbers = [title.text.split()[1] for page in titles for title in page]
        assert numbers == ["1", "1.1", "1.2", "1b.1", "2.1"]


ASKED = {
    "chosen": ':choices: no more | *twice* & "more"\n:answer: no more',
    "counted": ":number: 50 +- 5\n:track: 1 to 1000 log\n:unit: %",
}


def test_a_prediction_is_a_named_group_and_carries_what_a_script_needs(book):
    asks = "```{{predict}} {}\n{}\nHow much?\n+++\nAs *much* as before.\n```\n\n"
    book.build(sharing="".join(asks.format(*one) for one in ASKED.items()))
    assert book.warnings == ""
    chosen, counted = book.html("part/sharing").select(".predict")
    assert (chosen["role"], chosen["id"]) == ("group", "predict-chosen")
    assert chosen.find(id=chosen["aria-labelledby"]).text == "Predict"
    assert chosen.select_one(".ask-both > .predict-explained").em.text == "much"
    assert json.loads(chosen["data-choices"]) == ["no more", '*twice* & "more"']
    assert chosen["data-answer"] == chosen.select_one(".predict-right").text == "no more"
    given = [counted[f"data-{name}"] for name in ("number", "within", "track", "unit")]
    assert given == ["50", "5", "1 1000 log", "%"]
    assert counted.select_one(".predict-right").text == "50 %"


def test_chapter_and_page_in_depth_lead_to_each_other_and_minutes_are_counted(book):
    minutes = "{minutes}`hours part/places index`"
    links = "{in-depth}`places_depth_where` {in-depth}`so <places_depth_where>`"
    book.build(index=minutes, places=links)
    assert book.warnings == ""
    assert book.html("index").select_one(".body p").text == "0.5"
    links = book.html("part/places").select("#order p a, #sec-order p a")
    found = [(link.text, link["href"]) for link in links]
    there = "places_depth_where.html"
    assert found == [("in depth: where places go", there), ("so", there)]
    box = book.html("part/places_depth_where").select_one(".in-depth")
    assert box.a["href"] == "places.html#sec-order"
    words = "In depth Why? From Order; the chapters do without it. Read 5 minutes."
    assert " ".join(p.text for p in box.find_all("p")) == words


HEADER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
map: a part | attention | yours | a part
---
"""
FORMULA = """(sec-one)=
# With a formula

$x^2$

```{claims-table}
```

```{claims-table}
:unconfirmed:
```

Linked: {ref}`one <claim-it-is-two>`, {ref}`another <claim-it-is-three>`.
"""
FOLDED = """# With folds

````{dropdown} Deeper: why
Because.
````

```{code-cell} ipython3
:tags: [hide-input, deeper]
print("in the box")
```

```{code-cell} ipython3
:tags: [hide-input]
from IPython.display import HTML
HTML('<figure><img alt="A dot" src="data:,">'
     '<figcaption>One <b>dot</b>. It is red.</figcaption></figure>')
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

```{predict} folds-half
:number: 0.5
:track: 0 to 1
How much?
+++
Just {glue:text}`half:.2f`, or $1/2$.
```

```{code-cell} ipython3
from vitbook.book.table import show_table
rows = [["one", 1.0], ["two", None]]
show_table(rows, header=["", "value"], caption="Of two. Small.", best="max")
```

```{literalinclude} ../../src/vitbook/part.py
:pyobject: mix
```

```{predict} folds-words
Which words?
+++
These.
```

Words come first.

```{code-cell} ipython3
print("behind words")
```

```{code-cell} ipython3
from vitbook.book.glue import glue
glue(half=0.5)
```
"""


PART = '''def mix(x):
    """Mix ``x``, as :func:`there`.

    More.
    """
    return x
'''


FAILS = """# With failures

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

```{predict} fails-four
How many?
+++
Four.
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
SITE = """format: jb-book
root: index
parts:
- caption: I Part
  chapters: [{file: part/one}, {file: part/folds}, {file: part/fails}]
"""


def build_site(root):
    """What a build complains of, "" if all is well; in a process of its own: Sphinx keeps global
    state."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
        "from website.build import render; "
        "root = Path(sys.argv[2]); sys.exit(not render.render(root, root / '_build'))"
    )
    done = subprocess.run([sys.executable, "-c", code, ROOT, root], capture_output=True, text=True)
    return f"failed: {done.stderr}" if done.returncode else ""


def write(root, name, text):
    write_files(root, {f"book/part/{name}.md": HEADER + text})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book with everything that folds, and a page on which a check of each kind fails and a cell
    breaks, executed and built with the real settings."""
    root = tmp_path_factory.mktemp("site")
    for name in ("_config.yml", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    files = {
        "_toc.yml": SITE,
        "book/references.bib": "",
        "book/index.md": "# Front\n\nPlain words of {ref}`sec-one`.\n",
        "src/vitbook/part.py": PART,
    }
    write_files(root, files)
    for name, text in (("one", FORMULA), ("folds", FOLDED), ("fails", FAILS)):
        write(root, name, text)
    pages = [root / "book/part" / f"{name}.md" for name in ("folds", "fails")]
    failures = execute(root, root / "_build", pages, jobs=1, timeout=60)
    assert build_site(root) == ""
    told = [str(one).partition(": ")[2] for one in failures]
    kept = Path(shutil.copytree(root, tmp_path_factory.mktemp("kept") / "site"))
    return SimpleNamespace(root=kept, html=kept / "_build/html", told=told, edited=root)


@pytest.fixture(scope="module")
def folded(site):
    return soup(site.html, "part/folds")


def words_of(part):
    """What is heard: KaTeX sets each formula once for the eye, too."""
    texts = part.find_all(string=lambda text: not text.find_parent(class_="katex-html"))
    return " ".join("".join(texts).split())


SHOWN = {
    "details.solution#sol-one:not([open]) > summary": "Solution to Exercise 2.1 (One)",
    "details.solution .cell_output": "ok: one",
    "details.sd-dropdown .cell_output": "in the box",
    "details.sd-dropdown .cell details > summary": "code of this output",
    ".cell > details:only-child:-soup-contains('N = 3') > summary": "setup",
    ".cell > .cell_input:has(+ details)": "def naive(x): return x + 0",
    ".cell > .cell_input + details > summary": "✓ 1 check: equal to the package, 1e-6",
    "#claim-two-is-even > .claim-top .claim-says": "“Two is odd, 4”",
    "#claim-two-is-even > .claim-top + .claim-truth": "Two is even, 2=2⋅1.",
    "#claim-two-is-even .claim-body + .cell > details > summary": (
        "✓ 1 check, refutation of this verdict: “Two is odd, sqrt 4 ”"
    ),
    "summary + .claim-refuted": "Would be refuted by: a remainder.",
    "table.vitbook-table caption": "Table 2.1. Of two. Small.",
    ".cell > .cell_output:has(table) + details > summary": "code of this table: Of two",
    ".cell > .cell_output:has(figcaption) + details > summary": "code of this figure: One dot",
    ".package-code > p": "From the package: mix, src/vitbook/part.py",
    ".package-code details .docstring": "Mix x, as there. More.",
    ".predict-explained": "0.5 Just 0.50, or 1/2.",
    ".predict > .ask-output > .cell table caption": "Table 2.1. Of two. Small.",
    ".predict + .ask-more + .ask-rest[hidden='until-found'] > .package-code > p": (
        "From the package: mix, src/vitbook/part.py"
    ),
    ".ask-rest .predict + .ask-more + .ask-rest > p + .cell .cell_output": "behind words",
    "section > .page-checks": "✓ 2 checks of this page ran in this build.",
}


def test_what_proves_is_folded_below_words_that_say_what_it_is(folded):
    assert {one: words_of(folded.select_one(one)) for one in SHOWN} == SHOWN


def test_a_fold_holds_no_link_no_marker_and_no_complaint_of_a_stub(folded):
    assert folded.select("summary a, summary[aria-label], summary [aria-label]") == []
    assert "# check" not in folded.text
    link = folded.select_one(".package-code p a")["href"]
    assert link.endswith(f"/blob/{read_settings(ROOT).tag}/src/vitbook/part.py")
    exercise = folded.select_one("#ex-one")
    assert exercise.select_one(".cell_input") is not None
    assert exercise.select_one(".cell_output") is None


PAGES = {"book/one.md": "", "book/two.md": ""}
TREES = [f"_build/.doctrees/{name}.doctree" for name in ("one", "two")]
DIGESTS = "_build/.jupyter_cache/digests.json"
# what changes: the trees that are left
CHANGES = {"_config.yml": [], DIGESTS: ["two"], "book/__pycache__/a.pyc": ["one", "two"]}


@pytest.mark.parametrize(("what", "left"), CHANGES.items())
def test_what_is_no_page_lets_no_tree_stand(tmp_path, what, left):
    seconds = '{"one": {"seconds": 1}, "two": {"seconds": 1}}'
    write_files(tmp_path, PAGES | dict.fromkeys(TREES, "") | {"_config.yml": "a", DIGESTS: seconds})
    Trees(tmp_path, tmp_path / "_build").keep()
    write_files(tmp_path, {what: seconds.replace("1", "2", 1)})
    Trees(tmp_path, tmp_path / "_build").prepare()
    assert [Path(tree).stem for tree in TREES if (tmp_path / tree).exists()] == left
    Trees(tmp_path, tmp_path / "_build").prepare()  # the last rendering was not kept
    assert not any((tmp_path / tree).exists() for tree in TREES)


def test_what_fails_is_told_where_every_reader_sees_it_and_all_pages_are_built(site):
    assert site.told == [
        "did not hold: two == 2; found 1.5 == 2",
        "did not hold: two > 7; found 1.5 > 7",
        "ended with ValueError: invalid literal for int() with base 10: 'many'",
        "did not hold: two == 4; found 1.5 == 4",
    ]
    page, other = soup(site.html, "part/fails"), soup(site.html, "part/one")
    boxes = page.select(".not-held")
    here = [one.replace("did not hold", "This did not hold on this machine") for one in site.told]
    here[2] = f"On this machine this cell {here[2]}"
    assert [words_of(box) for box in boxes] == [f"{sentence}." for sentence in here]
    assert not any(box.find_parent("details") for box in boxes)
    assert page.select(".ask-rest") == []  # nor is anything folded behind a guess
    assert [bool(box.find_parent(class_="claim")) for box in boxes] == [True, False, False, False]
    told = [mark.text.strip() for mark in page.select(".fold-failed, .fold-ran")]
    assert told == ["failed in this build", "✓", "✗"]
    assert (
        page.select_one(".page-checks").text
        == "✗ 4 checks of this page ran in this build, 3 failed."
    )
    (mark,) = page.select(".not-computed")
    assert (mark.text, mark["title"]) == ("?", "not computed on this machine")
    assert [one.text for one in page.select(".pasted-text")] == ["2.5"]
    verdicts = [words_of(box) for box in page.select(".claim-verdict")]
    assert verdicts == ["✓ True Not confirmed on this machine", "✗ False"]
    whole, unconfirmed = other.select("table.claims-table")
    marked = [row.a["href"] for row in whole.select("tbody tr") if "Not confirmed" in row.text]
    assert marked == [row.a["href"] for row in unconfirmed.select("tbody tr")]
    assert marked == ["fails.html#claim-it-is-two"]
    linked = other.find(string=re.compile("Linked: ")).parent
    assert linked.text == "Linked: one Not confirmed on this machine, another."


def test_the_check_of_the_site_and_the_notebook_know_of_what_failed(site):
    found = [one for one in check_site.check(site.html, ROOT) if one.page == "part/fails.html"]
    told = {one.message for one in found}
    assert {"an error or warning in an output", "this fold is empty"}.isdisjoint(told)
    assert not any("figures from its cells" in words for words in told)
    files = export(read_settings(site.root))
    words = "\n".join("".join(c["source"]) for c in json.loads(files["fails.ipynb"])["cells"])
    assert "counts 2.5 and ?." in words
    assert words.count("Not confirmed on the machine that built the book.") == 1
    assert "set_up()" in words


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
    return {path.stem: path.stat().st_mtime_ns for path in folder.rglob("*.doctree")}


@pytest.fixture(scope="module")
def mended(site):
    """The book when nothing fails any more and a page was edited, and what was read again."""
    root = site.edited
    before, page = trees(root), root / "book/part/folds.md"
    dates = page.stat()
    write(root, "folds", FOLDED + "\n{chapter}`one` says so.\n")
    os.utime(page, ns=(dates.st_atime_ns, dates.st_mtime_ns))  # an edit that keeps the date
    text = FAILS.replace('int("many")\n', "")
    for wrong, right in (("two = 1.5", "two = 2"), ("two > 7", "two > 1"), ("== 4", "== 2")):
        text = text.replace(wrong, right)
    write(root, "fails", text)
    changed = [root / f"book/part/{name}.md" for name in ("fails", "folds")]
    assert execute(root, root / "_build", changed, jobs=1, timeout=60) == []
    assert build_site(root) == ""
    after = trees(root)
    return root, {name for name in after if after[name] != before[name]}


def test_an_edited_page_is_read_again_and_the_site_is_that_of_a_build_from_nothing(mended):
    root, read = mended
    assert read == {"folds", "fails"}
    first = everything(root)
    assert b"says so" in first["part/folds.html"]
    for name in ("fails", "one"):  # nothing is said any more
        page = soup(root / "_build/html", f"part/{name}")
        assert page.select(".not-held, .not-computed, .fold-failed, .unconfirmed") == []
        assert len(page.select("table.claims-table")) == (name == "one")
        assert "Not confirmed" not in page.text
    shutil.rmtree(root / "_build/.doctrees")
    assert build_site(root) == ""
    assert everything(root) == first


def test_what_an_edit_breaks_here_or_on_another_page_fails_the_build(mended):
    root, _ = mended
    write(root, "one", FORMULA.replace("(sec-one)=\n", "") + "\nAnd {glue:text}`nobody:.1f`.\n")
    write(root, "folds", FOLDED.replace("````{dropdown} Deeper: why\nBecause.\n````", "Because."))
    said = build_site(root)
    assert all(words in said for words in ("sec-one", "nobody", "deeper"))
    assert not (root / "_build/trees.json").exists()  # so the next begins from nothing
    write(root, "one", FORMULA + "\n```{code-cell} ipython3\nprint(1)\n```\n")
    assert "not in the cache" in build_site(root)
