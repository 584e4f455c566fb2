"""The rules for the book's sources: the book keeps them, and each of them can fail."""

import pytest
from small_book import ROOT, write_files

from tools.book_rules import code, contents, draws, exercises, length, prose
from tools.check_prose import RULES, check
from website.pages.contents import places_of
from website.pages.introductions import part_of
from website.pages.myst import PageError
from website.pages.source import read_book
from website.syntax.api import modules

FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
EXERCISE = """
```{exercise-start} Sum NUMBER
:label: ex-NAME-NUMBER
```
*Difficulty 1 of 3, 5 minutes, Colab (a phone will do).* Add.
```{code-cell} ipython3
check_sum(NUMBER)
```
```{exercise-end}
```
```{solution-start} ex-NAME-NUMBER
:class: dropdown
:label: sol-NAME-NUMBER
```
```{code-cell} ipython3
check_sum(lambda: NUMBER)
```
```{solution-end}
```
"""
CHAPTER = (
    FRONT
    + """
# TITLE

Text with $0.5$ and `0.7`, in section 3.2, and {glue:text}`mean:.2f` at the 95 % level.

```{code-cell} ipython3
import torch

from vitbook.book.glue import glue
from vitbook.plotting import show

torch.set_num_threads(1)
torch.manual_seed(0);
```

## Adding

(sec-NAME-sums)=
```{predict} NAME-sum
:choices: one | two
:answer: two
What is 1 + 1?
+++
Adding goes on; {in-depth}`why <NAME_depth_why>`.
```

```{literalinclude} ../src/vitbook/layers/attention.py
:pyobject: PYOBJECT
```

```{claim} NAME-sum
:says: "Sums are whole"
:truth: Sums of whole numbers are.
:verdict: true
:refuted-by: half a sum.
They are.
```

```{code-cell} ipython3
mean = 0.5
# check: a half
assert mean == 0.5
glue(mean=mean)
show(fig, alt=f"Bars; the mean is {mean:.2f}.", caption="All of it: 100 %.")
```
EXERCISES
## Summary

- Sums.
"""
)
DEPTH = """# In depth: why sums

```{in-depth} sec-NAME-sums
Why?
```

Because.
"""
FIRST, SECOND = "book/first.md", "book/second.md"
FIRST_DEPTH, SECOND_DEPTH = "book/first_depth_why.md", "book/second_depth_why.md"
CODE = "Because.\n\n```{code-cell} ipython3\n"
TOC = """root: index
parts:
- caption: I Part
  chapters:
  - file: first
    sections:
    - file: first_depth_why
  - file: second
    sections:
    - file: second_depth_why
"""
INDEX, MOVED = "book/index.md", "book/moved.toml"
LAYER = "src/vitbook/layers/attention.py"
FRONT_PAGE = "# Front\n"


def chapter(name, pyobject):
    exercises = "".join(EXERCISE.replace("NUMBER", str(n)).replace("NAME", name) for n in (1, 2))
    text = CHAPTER.replace("TITLE", name.title()).replace("EXERCISES", exercises)
    return text.replace("PYOBJECT", pyobject).replace("NAME", name)


@pytest.fixture
def book(tmp_path):
    """A book of two chapters that keeps every rule."""
    files = {
        "_config.yml": "repository:\n  path_to_book: book\n",
        "_toc.yml": TOC,
        INDEX: FRONT_PAGE,
        MOVED: '[[moved]]\npage = "01_first"\nto = "first"\n',
        FIRST: chapter("first", "mix"),
        SECOND: chapter("second", "Heads.forward"),
        FIRST_DEPTH: DEPTH.replace("NAME", "first"),
        SECOND_DEPTH: DEPTH.replace("NAME", "second"),
        "src/vitbook/layers/__init__.py": "",
        LAYER: "def mix(x): ...\nclass Heads:\n    def forward(self): ...\n",
    }
    write_files(tmp_path, files)
    return tmp_path


def test_a_chapter_put_between_two_others_changes_nothing_but_the_list_of_pages(book):
    first, *_ = places_of(book).values()
    assert (first.chapter, first.number, first.deeper) == ("first", "1", False)
    between = "  - file: middle\n  - file: second\n"
    (book / "_toc.yml").write_text(TOC.replace("  - file: second\n", between))
    (book / "book/middle.md").write_text(chapter("middle", "mix_again"))
    layer = book / LAYER
    layer.write_text(layer.read_text() + "def mix_again(x): ...\n")
    told = [str(finding) for finding in check(read_book(book))]
    assert [one for one in told if "does not link" not in one] == []
    titles = {page: place.titled("In depth: x") for page, place in places_of(book).items()}
    assert titles == {
        "first": "1. In depth: x",
        "first_depth_why": "1, in depth: x",
        "middle": "2. In depth: x",
        "second": "3. In depth: x",
        "second_depth_why": "3, in depth: x",
    }


def test_the_contents_say_which_chapter_is_0_and_which_shares_the_number_before_it(book):
    toc = TOC.replace("root: index", "root: index\nmeta: {zero: first, lettered: [second]}")
    (book / "_toc.yml").write_text(
        toc.replace("  - file: second\n", "  - file: a\n  - file: second\n")
    )
    numbers = [p.number for p in places_of(book).values() if not p.deeper]
    assert numbers == ["0", "1", "1b"]


IMPORT = "from vitbook.book.glue import glue"
# rule -> what stands in a file, what comes in its place, words of the finding; default: in FIRST
PLANTED = {
    contents.moved: [
        ('= "first', '= "gone', "01_first leads to gone, which is no page", MOVED),
        ("01_first", "second", "second is a page: it has not moved", MOVED),
    ],
    prose.goals: [
        (
            "Text with",
            "```{goals} " + "add " * 40 + "\nnothing\n```\n\nText with",
            "long, at most 150",
        ),
    ],
    prose.typed_numbers: [
        ("Text with", "Text 3.14 with", "the number 3.14 is typed"),
        ("Text with", "Text 31 % with", "the number 31 % is typed"),
        ("Text with", "Text 31 percent with", "31 percent is typed"),
        ("## Adding", "## Adding 0.25", "the number 0.25 is typed"),
        ("They are.", "They are 2.5.", "2.5 is typed"),
    ],
    prose.typed_chapters: [
        ("Text with", "Chapter 2 has text with", "'Chapter 2' is typed"),
        ("Text with", "In chapter 2b, with", "'chapter 2b' is typed"),
        ("- Sums.", "- Sums, of chapters 1 to 2.", "'chapters 1' is typed"),
        ("Text with", "{doc}`chapter 2 <x>` with", "'chapter 2' is typed"),
        ("All of it:", "As in chapter 2:", "'chapter 2' is typed"),
        ("Text with", "Table 2.1 has text with", "'Table 2.1' is typed"),
        ("# First", "# 1. First", "the title's number is typed"),
    ],
    exercises.exercises: [
        ("*Difficulty 1 of 3, ", "*", "begins with *Difficulty"),
        ("3, 5 minutes, ", "3, ", "begins with *Difficulty"),
        ("check_sum(1)", "sum(1)", "no cell of this exercise calls a check_"),
        ("check_sum(lambda: 1)", "sum(1)", "does not call the check"),
        (":class: dropdown\n", "", "not folded"),
        ("{solution-start} ex-first-1", "{solution-start} ex-9", "has no solution"),
    ],
    exercises.claims: [
        ("They are.\n```", "They are.\n```\n\n### Next", "settles the"),
        ("assert mean == 0.5", "", "settles the claim first-sum"),
        (":truth: Sums of whole numbers are.\n", "", "lacks :truth:"),
        (":refuted-by: half a sum.\n", "", "lacks :refuted-by:"),
    ],
    exercises.predictions: [
        ("} second-sum\n:choices", "} first-sum\n:choices", "made already in first", SECOND),
    ],
    contents.in_depth: [
        ("```{in-depth} sec-first-sums\nWhy?\n```\n", "", "one {in-depth} belongs", FIRST_DEPTH),
        ("first_depth", "second_depth", "first does not link here: {in-depth}`first_depth_why`",
         FIRST, FIRST_DEPTH),
    ],
    length.minutes: [("3, 5 minutes", "3, 60 minutes", "minutes, at most 60")],
    length.line_length: [
        ("mean = 0.5", "mean = 0.5  # " + "x" * 60, "at most 72: 'mean = 0.5"),
        ("Because.", CODE + "y = 0  # " + "x" * 80 + "\n```", "at most 84: 'y = 0", FIRST_DEPTH),
    ],
    code.named_records: [
        (IMPORT,
         f"from vitbook.book.records import load_record\nload_record('di' + 'gits')\n{IMPORT}",
         "name the record itself"),
    ],
    code.imports: [
        (IMPORT, f"import timm\n{IMPORT}", "timm is not in"),
        (IMPORT, f"import vitbook.layers.attention as a\n{IMPORT}", "import names"),
        (IMPORT, f"from vitbook import attention\n{IMPORT}", "import names"),
    ],
    code.first_cell: [
        ("torch.manual_seed(0);", "", "lacks torch.manual_seed("),
        ("torch.set_num_threads(1)", "", "lacks torch.set_num_threads(1)"),
    ],
    code.figures: [
        ('alt=f"Bars; the mean is {mean:.2f}.", ', "", "show() without alt="),
        ('f"Bars; the mean is {mean:.2f}."', '" "', "show() without alt="),
        ("{mean:.2f}", "0.50", "0.50 is typed into the alt"),
        ("All of it: 100 %.", "All of it: 99 %.", "99 % is typed into"),
        ("mean = 0.5", "plt.show()", "plt.show() has no alt text"),
    ],
    code.introduced_once: [
        ("Heads.forward", "mix", "mix was introduced in first already", SECOND),
        (IMPORT, f"{IMPORT}\nfrom vitbook.layers.attention import Heads", "before second"),
    ],
    draws.draws: [
        ("They are.\n```\n\n```{code-cell} ipython3\n",
         "They are, in each seed.\n```\n\n```{code-cell} ipython3\nmodel = fit()\n",
         "how many trainings? 'They are, in each seed.'"),
        ('caption="All of it: 100 %.")', 'caption=f"Right in {least} % at least.")\ntrain(model)',
         "how many trainings? 'Right in NUMBER % at least.'"),
    ],
    code.redefined: [
        ("mean = 0.5", "def mix(): ...", "defines mix again", SECOND),
        ("mean = 0.5", "mix = 0.5", "defines mix again", SECOND),
    ],
}  # fmt: skip
ROWS = [(rule, *row) for rule, rows in PLANTED.items() for row in rows]


def edit(book, old, new, file=FIRST):
    text = (book / file).read_text()
    assert old in text
    (book / file).write_text(text.replace(old, new, 1))
    return book / file


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0].__name__}: {row[3]}")
def test_a_planted_defect_is_found(book, row):
    rule, old, new, words, *files = row
    path = edit(book, old, new, *files[:1])
    where = book / files[-1] if files else path
    assert [str(f) for f in rule(read_book(book)) if words in str(f) and f.path == where]


KEPT = {
    "nothing": ("Text with", "Text with", FIRST),
    "a number listed on its page": (
        "Text with", "% typed numbers: 28.4, 41.8 %\nText of 28.4 and 41.8 % with", FIRST
    ),
    "the number of a chapter, by its role": (
        "Text with",
        "{chapter}`Chapter {number} <second>` and chapters {chapter}`{number} <first>` with", FIRST
    ),
    "the front page may import what comes later": (
        FRONT_PAGE,
        f"{FRONT}\n{FRONT_PAGE}\n```{{code-cell}} ipython3\n"
        "from vitbook.layers.attention import Heads\n```\n", INDEX
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "file"), KEPT.values(), ids=KEPT)
def test_what_keeps_the_rules_has_no_findings(book, old, new, file):
    edit(book, old, new, file)
    assert [str(finding) for finding in check(read_book(book))] == []


def test_every_rule_has_a_planted_defect():
    assert set(PLANTED) == set(RULES)


def test_a_finding_names_the_line(book):
    path = edit(book, "- Sums.", "- Sums.\n- 3.14 of them.")
    [finding] = check(read_book(book))
    assert path.read_text().splitlines()[finding.line - 1] == "- 3.14 of them."


def test_a_cell_that_is_not_python_is_named_with_its_line(book):
    text = edit(book, "mean = 0.5", "mean = = 0.5").read_text()
    line = text.split("mean = = 0.5")[0].count("\n") + 1
    with pytest.raises(PageError, match=rf"first\.md:{line}: the cell is not Python"):
        read_book(book)


CELL = "```\n\n```{code-cell} ipython3\n"


@pytest.mark.parametrize(
    ("card", "summary", "found"),
    [
        ("In each of three seeds.", "Sums.", []),
        ("Five trainings: 90 % at least.", "Sums.", []),
        ("Search it for each model.", "Sums.", []),
        ("Right in each seed.", "Sums.", ["how many trainings? 'Right in each seed.'"]),
        ("All.", "Sums are never learned.", ["how many trainings? 'Sums are never learned.'"]),
    ],
)
def test_what_is_said_of_every_training_names_their_number(book, card, summary, found):
    edit(book, f"They are.\n{CELL}", f"{card}\n{CELL}fit()\n")
    edit(book, "- Sums.", f"- {summary}")
    assert [f.message.split(" (or")[0] for f in draws.draws(read_book(book))] == found


def test_a_sentence_about_every_training_may_be_listed_while_it_is_there(book):
    (book / draws.KNOWN).parent.mkdir(parents=True)
    entry = '[[sentence]]\npage = "first"\nbegins = "In each seed"\nreason = "told below"\n'
    (book / draws.KNOWN).write_text(entry)
    assert "listed, and no longer there: 'In each seed'" in str(*draws.draws(read_book(book)))
    edit(book, f"They are.\n{CELL}", f"In each seed.\n{CELL}fit()\n")
    assert list(draws.draws(read_book(book))) == []


def test_every_module_that_the_chapters_teach_is_there():
    there = {part_of(module.name.split(".")[1:]) for module in modules(ROOT / "src", "vitbook")}
    assert there >= code.TEACHING


def test_a_page_lists_every_claim():
    pages = read_book(ROOT).chapters
    tables = [item.directive for page in pages for item in page.directives("claims-table")]
    assert {} in [table.options for table in tables]


def test_the_preview_may_use_what_is_introduced_later(book):
    edit(book, "root: index", "root: index\nmeta: {zero: first}", "_toc.yml")
    edit(book, IMPORT, f"{IMPORT}\nfrom vitbook.layers.attention import Heads")
    assert check(read_book(book)) == []
