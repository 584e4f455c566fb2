"""A chapter with a question of each kind and a front page, in the look of the built site.

What the extensions make of PAGES is put into the pages of the real site, so that its
styles and scripts are at work; both pages are answered at addresses that the site does not have.
"""

import re
from pathlib import Path

from bs4 import BeautifulSoup

from tests.book.small_book import Book, write_files

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
VIEWS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
EXTENSIONS = ["sphinx_design", "website.syntax.progress"]
KEY = "attention-patch-by-patch.predictions.v1"
# For a context: its reader does without guessing, so what waits for a guess is seen.
NO_GUESSES = f"""if (location.protocol !== "about:" && !localStorage.getItem("{KEY}"))
    localStorage.setItem("{KEY}", JSON.stringify({{ read: true }}));"""
# Adds up, in the page, what moves without being asked.
SHIFTS = """new PerformanceObserver(list => list.getEntries().forEach(entry => {
    window.shifted = (window.shifted || 0) + (entry.hadRecentInput ? 0 : entry.value); }))
    .observe({type: 'layout-shift', buffered: true})"""
CHAPTER, FRONT = "part/heads.html", "front.html"
SHELL, FRONT_SHELL = "attention/many_heads.html", "index.html"
TOC = "parts:\n- caption: I P\n  chapters:\n  - file: part/heads\n  - file: part/merge\n"
PAGES = {
    "index": """# Front

```{toctree}
part/heads
part/merge
```

```{progress}
```
""",
    "part/heads": """# Many heads

## How they are cut

```{predict} heads-view
:choices: one half | the *same* | twice
:answer: the *same*
How many numbers do two heads need, beside one?
+++
They share the width.
```

What follows tells it: 48.

### Behind it

Only who has guessed sees this.

## How much is lost

```{predict} heads-share
:number: 50 +- 5
:track: 0 to 100
:unit: %
Which share of the pairs does one head lose?
+++
Half of them.
```

## What it looks like

```{predict} heads-words
What does the map look like?
+++
Like a diagonal.
```

## Concept check

```{dropdown} 1. Why?
Because.
```

```{dropdown} 2. How?
So.
```

## Summary

- That was it.

## What to read next

Much.
""",
    "part/merge": "# Merged\n\nWords.\n",
}


def rendered(folder):
    """Page name -> its HTML: PAGES built in this folder, without the look of the book."""
    write_files(folder, {f"book/{name}.md": text for name, text in PAGES.items()})
    warnings = Book(folder, EXTENSIONS, TOC).build().warnings.splitlines()
    assert [line for line in warnings if "predict/predict" not in line] == []
    return {name: (folder / "out" / f"{name}.html").read_text("utf8") for name in PAGES}


def put_into(shell, page):
    """The page of the real site whose article is this one's."""
    body = BeautifulSoup(page, "html.parser").select_one("div.body").decode_contents()
    html = (HTML / shell).read_text("utf8")
    start = re.search(r'<article class="bd-article"[^>]*>', html).end()
    return html[:start] + body + html[html.index("</article>", start) :]
