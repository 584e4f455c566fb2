"""What a page's length is counted from."""

from dataclasses import asdict

import pytest

from website.pages.counts import Counts, count, count_file, hours
from website.pages.myst import PageError
from website.pages.source import read_chapter

PAGE = """# 1. Three words here

Five words, one of them $a + b$; and {glue:text}`c1_x:.1f`, {doc}`two words <x>`, [a link](x.md).
% typed numbers: 1.5

$$
a = b
$$ (eq-a)

```{claim} c1-a
:says: "four words are said"
:verdict: true
Two more.
```

```{predict} c1-b
Asked?
+++
Answered.
```

```{dropdown} Deeper
Folded.
```

```{code-cell}
a = 1

show(fig, alt="not words")
```

```{code-cell}
:tags: [hide-input]
hidden = 1
show(fig)
```

```{literalinclude} part.py
:pyobject: f
```

```{exercise-start} Sum
:label: ex
```
*Difficulty 2 of 3, about 25 minutes, paper, then Colab.* Many words.
```{code-cell}
check(1)
```
```{exercise-end}
```
```{solution-start} ex
```
Words.
```{solution-end}
```
"""
PART = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"


@pytest.fixture
def page(tmp_path):
    (tmp_path / "part.py").write_text(PART)
    path = tmp_path / "01_page.md"
    path.write_text(PAGE)
    return path


def test_everything_on_a_page_is_counted_once(page):
    assert count(read_chapter("01_page", page)) == Counts(
        words=27,
        code=4,
        figures=2,
        tables=0,
        claims=1,
        predictions=1,
        exercises=1,
        exercise_minutes=25,
    )


def test_minutes_follow_from_the_counts():
    counts = Counts(1400, 80, 4, 2, 3, 2, 2, 38)
    assert (counts.read, counts.do) == (30, 40)  # 10 + 10 + 2 + 3 + 3 + 2
    assert str(counts) == "Read 30 minutes, do 40 minutes"
    assert Counts(1400, 80, 4, 2, 3, 2, 2, 38, lives=3).read == 35
    assert str(Counts(10, 0, 0, 0, 0, 0, 0, 0)) == "Read 5 minutes"
    assert Counts(475, 20, 3, 0, 0, 0, 3, 15).read == 8  # 3.4 + 2.5 + 1.5: five would be too few


# what a page gets at its end: by how much its counts grow
MORE = {
    "| a | b |\n|---|--:|\n| 1 | 2 |\n": {"tables": 1, "words": 4},
    "```{list-table}\n* - a\n```\n": {"tables": 1, "words": 1},
    '```{code-cell}\nshow_table([["a", 1]], header=["", "b"], caption="Folds.")\n```\n': {
        "tables": 1
    },
    "```{code-cell}\nimport torch\n\na = 1\nassert a == 1\n```\n": {"code": 1},
    '```{claim} c1-b\n:says: "b"\n:truth: Two words.\n:verdict: true\n:refuted-by: two more.\n'
    "So.\n```\n\n```{code-cell}\nb = 1\nassert b == 1\n```\n": {"claims": 1, "words": 6},
    "```{live} cut\n:title: Cut it\nTry this now.\n+++\nIt stays.\n```\n": {"lives": 1, "words": 7},
}


@pytest.mark.parametrize(("text", "grows"), MORE.items())
def test_what_is_seen_takes_time_and_what_is_folded_none(page, text, grows):
    before = asdict(count(read_chapter("01_page", page)))
    page.write_text(f"{PAGE}\n{text}")
    after = asdict(count(read_chapter("01_page", page)))
    assert {
        what: after[what] - before[what] for what in after if after[what] != before[what]
    } == grows


def test_the_hours_of_several_pages_are_their_reading_and_their_exercises(page):
    assert count_file(page).read + count_file(page).do == 30
    assert hours([page]) == "0.5"
    assert hours([page] * 4) == "2"


def test_a_missing_source_is_named_with_its_line(page):
    page.write_text(PAGE.replace("part.py", "gone.py"))
    line = PAGE.split("```{literalinclude}")[0].count("\n") + 1
    with pytest.raises(PageError, match=rf"01_page\.md:{line}: {{literalinclude}}"):
        count_file(page)
