"""The index of the search holds what a reader looks for, and nothing else."""

import json

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


HIDDEN = ("secret", "hidden", "The answer", "A question", "% search")


def test_the_index_has_each_section_and_claim_with_its_words_and_no_code_or_answer(tmp_path):
    book = Book(tmp_path, EXTENSIONS)
    book.page("index", "```{toctree}\none\n```\n")
    book.page("one", PAGE)
    assert book.build().warnings == ""
    script = (tmp_path / "out" / "_static" / "search" / "index.js").read_text("utf8")
    index = json.loads(script.removeprefix("window.bookIndex=").removesuffix(";\n"))
    (places,) = (found for name, *found in index["pages"] if name == "one.html")
    assert [(place[0], place[1], place[6]) for place in places] == [
        ("first", "", "section"),
        ("why-the-root", "1. First", "section"),
        ("claim-root-helps", "1. First › Why the root?", "claim"),
        ("below", "1. First › Why the root?", "section"),
    ]
    assert places[0][3] == "Words of the page, and q · k, Q KT, √d, …."  # in plain signs
    assert places[1][5] == "divide by sqrt(d), scaling"
    text = json.dumps(index)
    assert "Told here." in text
    assert "Ask this." in text
    assert [words for words in HIDDEN if words in text] == []
    left = {path.name for path in (tmp_path / "out").rglob("*.js")}  # Sphinx leaves none of its own
    assert not left & {"searchindex.js", "searchtools.js", "language_data.js"}


def test_of_a_long_text_only_new_words_are_kept_behind_its_beginning(tmp_path):
    from website.theme.search import SHOWN, Place

    place = Place("one", "a", [], "A", words=["once " * SHOWN, "Once twice, twice thrice"])
    assert place.packed()[3:5] == [("once " * SHOWN).strip(), "twice thrice"]
