"""What the pages of the kit keep, rule by rule."""

import pytest

from tools.book_rules.kit import kit
from tools.book_rules.kit import near as kit_near
from website.pages.contents import Place
from website.pages.source import Book, read_chapter

PAGE = """---
kit: true
---
# Small

```{code-cell}
import torch

x = torch.rand(3)
# check: three numbers
assert len(x) == 3
```

```{code-cell}
:tags: [hide-input]
print("this is folded", "and may be as wide as it likes", "so this line has many characters")
```

```{claim} a
:says: "a"
:truth: b.
:verdict: false
:refuted-by: c.
So.
```

```{predict} c1-a
A?
+++
A.
```

```{predict} c1-b
B?
+++
B.
```

```{exercise-start} Do it
:label: ex
```
*Difficulty 1 of 3, 10 minutes, phone.* Do it.
```{code-cell}
from vitcheck.exercises.small import check_it

check_it(1)
```
```{exercise-end}
```
"""


def findings(tmp_path, text):
    path = tmp_path / "01_small.md"
    path.write_text(text)
    return [finding.message for finding in kit(Book(tmp_path, [read_chapter("01_small", path)]))]


def test_a_page_of_the_kit_that_keeps_it_has_no_findings(tmp_path):
    assert findings(tmp_path, PAGE) == []


@pytest.mark.parametrize(
    ("words", "beside", "told"),
    [
        (1880, 800, []),
        (1880, 1700, ["kit: 1,889 words, at most 1,800"]),  # the mean of the part has grown
        (2000, 100, ["kit: 2,009 words, at most 1,800"]),  # more than a tenth
    ],
)
def test_a_page_may_borrow_a_tenth_while_the_mean_of_its_part_does_not_grow(
    tmp_path, words, beside, told
):
    pages = []
    for name, more in (("long", words), ("short", beside)):
        path = tmp_path / f"{name}.md"
        path.write_text(PAGE + "word " * more)
        pages.append(read_chapter(name, path, Place(name, str(len(pages) + 1), part="I Attention")))
    book = Book(tmp_path, pages)
    found = [finding.message for finding in kit(book)]
    assert [one for one in found if " words" in one] == told
    (near, *_) = kit_near(book)
    assert f"{words + 9:,} words of 1,800" in near.message


def test_a_page_that_does_not_say_so_is_left_alone(tmp_path):
    assert findings(tmp_path, PAGE.replace("kit: true", "a: b") + "word " * 2000) == []


WIDE = "x = torch.rand(3)  # " + "x" * 60
PLANTED = {
    "words": ("# Small", "# Small\n" + "word " * 1800, "words, at most 1,800"),
    "code": ("x = torch", "y = 1\n" * 120 + "x = torch", "kit: 121 code, at most 120"),
    "minutes": ("10 minutes", "60 minutes", "kit: 65 minutes, at most 60"),
    "predictions": ("```{predict} c1-a\nA?\n+++\nA.\n```", "", "kit: 1 predictions, 2 at least"),
    "truth": (":truth: b.\n", "", "lacks :truth:"),
    "refuted": (":refuted-by: c.\n", "", "lacks :refuted-by:"),
    "wide": ("x = torch.rand(3)", WIDE, "at most 72: 'x = torch"),
    "assertion": ("x = torch", "assert torch\nx = torch", "only proves: 'assert torch'"),
    "glue": ("x = torch", "glue(c1_a=1)\nx = torch", "only proves: 'glue(c1_a=1)'"),
    "import": ("x = torch", "y = 1\nimport re\nx = torch", "shows an import"),
    "print": ("x = torch.rand(3)", "print(1)", "this cell prints"),
}


@pytest.mark.parametrize(("old", "new", "words"), PLANTED.values(), ids=PLANTED)
def test_what_the_kit_forbids_is_found(tmp_path, old, new, words):
    assert old in PAGE
    found = findings(tmp_path, PAGE.replace(old, new, 1))
    assert [message for message in found if words in message]
