"""The index of the search holds what a reader looks for, and nothing else."""

import json

import pytest
from small_book import Book

OURS = ("website.syntax.claim", "website.syntax.cells.folds", "website.theme.search")
EXTENSIONS = ("sphinx_design", "sphinx_exercise", *OURS)
PAGE = r"""Words of the page, and $q \cdot k$, $Q K^\top$, $\sqrt{d}$, $\frac{a}{b}$.

## Why the root?

% search: divide by sqrt(d), scaling

Told here.

$$
\mathrm{hidden} = 1
$$

```python
print("secret code")
```

```{claim} root-helps
:says: "The root helps"
:verdict: true
It does.
```

### Below

More.

```{exercise-start}
:label: ex-one
```
Ask this.
```{exercise-end}
```

```{solution-start} ex-one
```
The answer to it.
```{solution-end}
```

## Concept check

A question.
"""


@pytest.fixture
def index(tmp_path):
    book = Book(tmp_path, EXTENSIONS)
    book.page("index", "```{toctree}\none\n```\n")
    book.page("one", PAGE)
    assert book.build().warnings == ""
    script = (tmp_path / "out" / "_static" / "search" / "index.js").read_text("utf8")
    return json.loads(script.removeprefix("window.bookIndex=").removesuffix(";\n"))


@pytest.fixture
def places(index):
    return {
        place[2]: place for name, *found in index["pages"] if name == "one.html" for place in found
    }


def test_each_section_and_claim_is_a_place_below_its_headings(places):
    assert [(place[0], place[1], place[6]) for place in places.values()] == [
        ("first", "", "section"),
        ("why-the-root", "1. First", "section"),
        ("claim-root-helps", "1. First › Why the root?", "claim"),
        ("below", "1. First › Why the root?", "section"),
    ]


def test_a_line_in_the_page_gives_a_section_the_words_by_which_it_is_looked_for(places):
    assert places["Why the root?"][5] == "divide by sqrt(d), scaling"


def test_code_formulas_on_lines_of_their_own_and_answers_are_left_out(index):
    text = json.dumps(index)
    assert "Told here." in text
    assert "Ask this." in text
    for hidden in ("secret", "hidden", "The answer", "A question", "% search"):
        assert hidden not in text


def test_a_short_formula_stands_in_plain_signs(places):
    assert places["1. First"][3] == "Words of the page, and q · k, Q KT, √d, …."


def test_of_a_long_text_only_new_words_are_kept_behind_its_beginning(tmp_path):
    from website.theme.search import SHOWN, Place

    place = Place("one", "a", [], "A", words=["once " * SHOWN, "Once twice, twice thrice"])
    assert place.packed()[3:5] == [("once " * SHOWN).strip(), "twice thrice"]


def test_sphinx_leaves_no_index_of_its_own(index, tmp_path):
    left = {path.name for path in (tmp_path / "out").rglob("*.js")}
    assert not left & {
        "searchindex.js",
        "searchtools.js",
        "language_data.js",
        "sphinx_highlight.js",
    }
