"""The exporter: every construct of the pages as plain Markdown, everything else an error."""

import importlib.util
import json
import re
import tomllib
import zlib
from pathlib import Path
from types import SimpleNamespace

import jupytext
import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tools import export_notebooks
from tools.export_notebooks import export, main
from tools.moved import notebooks_in
from tools.notebook_export.notebook import BOOTSTRAP, NEEDED
from tools.pages.reader import PageError, read_blocks
from tools.run_notebooks import solutions
from tools.settings import pages_url, read_settings
from tools.site import Memory, Site

SITE = "https://somebody.github.io/book/v1.0.0"
AT_TAG = "https://github.com/somebody/book/blob/v1.0.0"
FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
BUILT = """<html><body>
<div class="math" id="equation-eq-sum"><span class="eqno">(7)<a href="#x">#</a></span></div>
<figure id="fig-plan"><span class="caption-number">Fig. 3 </span></figure>
<div id="ex-sum"><span class="caption-number">Exercise 4 </span> (Sums)</div>
<div class="citation" id="cite-vaswani2017attention"></div>
</body></html>"""
INVENTORY = """ch/sums std:doc -1 ch/sums.html 1. Sums
ch/literature std:doc -1 ch/literature.html Literature
sec-a std:label -1 ch/sums.html#sec-a Adding up
fig-plan std:label -1 ch/sums.html#fig-plan The plan
ex-sum std:label -1 ch/sums.html#ex-sum Exercise
ch/sums_depth_why std:doc -1 ch/sums_depth_why.html 1, in depth: why
"""
TOC = "root: ch/literature\nparts:\n- caption: I Sums\n  chapters:\n  - file: ch/sums\n"
BIB = """@article{vaswani2017attention, title={A}, year={2017},
 author={Vaswani, Ashish and Shazeer, Noam and Parmar, Niki}}
@article{pair2020, title={B}, author={Alpha, Ann and van der Beta, Bob}, year={2020}}
@article{one2021, title={C}, author={{DeepSeek-AI}}, year={2021}}
"""
PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "vitbook"
version = "1.0.0"
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["src/vitbook"]
"""
PART = '"""Parts."""\n\n\ndef double(x):\n    """Twice x."""\n    return 2 * x\n\n\nlast = 1\n'


@pytest.fixture
def book(tmp_path):
    """A repository with one page; `book(markdown)` writes the page and exports it."""
    files = {
        "_config.yml": "title: The Book\nrepository:\n  url: https://github.com/somebody/book\n"
        "  path_to_book: pages\n"
        "sphinx:\n  config:\n    bibtex_bibfiles: [all.bib]\n",
        "_toc.yml": TOC,
        "pages/all.bib": BIB,
        "pages/ch/literature.md": "# Literature\n\n```{bibliography}\n```\n",
        "pages/ch/plan.png": "plan",
        "src/part.py": PART,
        "src/vitbook/__init__.py": "",
        "pyproject.toml": PROJECT,
        "_build/html/ch/sums.html": BUILT,
        "_build/html/ch/literature.html": BUILT,
        "_build/html/ch/sums_depth_why.html": "<html></html>",
        "_build/jupyter_execute/ch/sums.glue.json": json.dumps(
            {"mean": {"data": {"text/plain": "0.12345"}}, "word": {"data": {"text/plain": "'hi'"}}}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    head = "# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# zlib\n"
    inventory = head.encode() + zlib.compress(INVENTORY.encode())
    (tmp_path / "_build" / "html" / "objects.inv").write_bytes(inventory)

    def write(markdown):
        (tmp_path / "pages/ch/sums.md").write_text(f"{FRONT}\n# Sums\n\n{markdown}\n")

    def exported(markdown):
        write(markdown)
        return export(read_settings(tmp_path), Site(tmp_path / "_build/html", tmp_path))

    exported.root, exported.write = tmp_path, write
    return exported


def cells(files, stem="sums"):
    return nbformat.reads(files[f"{stem}.ipynb"], as_version=4).cells


def body(files):
    """The Markdown after the title and the install cell."""
    return "\n\n".join(cell.source for cell in cells(files)[2:])


PAGE = f"{SITE}/ch/sums.html"
LITERATURE = f"{SITE}/ch/literature.html"
VASWANI = f"{LITERATURE}#cite-vaswani2017attention"
DEEPER = f"{SITE}/ch/sums_depth_why.html"
ADDING = f"[Adding up]({PAGE}#sec-a)"
# name, MyST, Markdown
TRANSLATED = [
    ("plain text", "Just *text*, `code` and [a link](https://x.org).", None),
    ("glue", "{glue:text}`mean:.2f`", "0.12"),
    ("glue without a format", "{glue:text}`mean`", "0.12345"),
    ("citation", "{cite}`vaswani2017attention`", f"([Vaswani et al., 2017]({VASWANI}))"),
    (
        "citations",
        "{cite:p}`pair2020, one2021`",
        f"([Alpha and van der Beta, 2020]({LITERATURE}); [DeepSeek-AI, 2021]({LITERATURE}))",
    ),
    ("textual citation", "{cite:t}`one2021`", f"[DeepSeek-AI (2021)]({LITERATURE})"),
    ("ref", "{ref}`sec-a`", ADDING),
    ("ref with text", "{ref}`there <sec-a>`", f"[there]({PAGE}#sec-a)"),
    ("ref to an exercise", "{ref}`ex-sum`", f"[Exercise 4]({PAGE}#ex-sum)"),
    ("numref", "{numref}`fig-plan`", f"[Fig. 3]({PAGE}#fig-plan)"),
    ("numref with text", "{numref}`Figure %s <fig-plan>`", f"[Figure 3]({PAGE}#fig-plan)"),
    ("eq", "{eq}`eq-sum`", f"[(7)]({PAGE}#equation-eq-sum)"),
    ("doc", "{doc}`literature`", f"[Literature]({LITERATURE})"),
    ("doc with text", "{doc}`books <../ch/literature>`", f"[books]({LITERATURE})"),
    ("chapter", "{chapter}`sec-a`", f"[chapter 1]({PAGE}#sec-a)"),
    ("chapter itself", "{chapter}`Chapter {number}, {name} <sums>`", "Chapter 1, Sums"),
    ("chapter of a label", "{chapter}`{number}, there <sec-a>`", f"[1, there]({PAGE}#sec-a)"),
    ("wrapped role", "{doc}`all\nbooks <literature>`", f"[all books]({LITERATURE})"),
    ("math role", "{math}`a^2`", "$a^2$"),
    ("sub and sup", "H{sub}`2`O, x{sup}`2`", "H<sub>2</sub>O, x<sup>2</sup>"),
    ("role in code", "`` {ref}`x` `` and $\\{a\\}$", None),
    ("link to a page", "[books](literature.md)", f"[books]({LITERATURE})"),
    ("link without text", "[](literature.md)", f"[Literature]({LITERATURE})"),
    ("link to a label", "[here](#sec-a)", f"[here]({PAGE}#sec-a)"),
    ("link to a file", "[code](../../src/part.py)", f"[code]({AT_TAG}/src/part.py)"),
    ("image", "![A plan](plan.png)", "![A plan](https://github.com/somebody/book/raw/v1.0.0/pages/ch/plan.png)"),
    ("inline math", "costs $a_b$ or $5$", None),
    ("block math", "$$\na\n$$ (eq-sum)", "$$\na \\tag{7}\n$$"),
    ("block math, no label", "$$\na\n= b\n$$", None),
    ("math directive", "```{math}\n:label: eq-sum\na\n```", "$$\na \\tag{7}\n$$"),
    ("math in a list", "- item\n\n  $$\n  a\n  $$", "- item\n\n  $$\n  a\n  $$"),
    ("label and comment", "(sec-a)=\nText\n\n% a note\n\n+++\n\nMore", "Text\n\nMore"),
    ("note", "```{note}\nMind {ref}`sec-a`.\n```", f"> **Note**\n>\n> Mind {ADDING}."),
    ("admonition", "```{admonition} Try\n:class: goals\nWhat?\n```", "> **Try**\n>\n> What?"),
    (
        "prediction",
        "```{predict} sums-sum\n:choices: $1$ | {glue:text}`mean:.2f`\n:answer: $1$\nHow many?\n\n"
        "- Or\n+++\nSee {ref}`sec-a`.\n```",
        "> **Predict, then run**\n>\n> How many?\n>\n> - Or\n>\n> - $1$\n> - 0.12\n\n"
        f"<details>\n<summary>What happened</summary>\n\n**$1$**\n\nSee {ADDING}.\n\n</details>",
    ),
    (
        "prediction of a number",
        "```{predict} sums-sum\n:number: 2 +- 1\nHow many?\n+++\nSo.\n```",
        "> **Predict, then run**\n>\n> How many?\n\n"
        "<details>\n<summary>What happened</summary>\n\n**2**\n\nSo.\n\n</details>",
    ),
    (
        "prediction of a number with a unit",
        "```{predict} sums-sum\n:number: 2 +- 1\n:unit: %\nHow many?\n+++\nSo.\n```",
        "> **Predict, then run**\n>\n> How many?\n\n"
        "<details>\n<summary>What happened</summary>\n\n**2 %**\n\nSo.\n\n</details>",
    ),
    (
        "live figure",
        "```{live} cut\n:title: Cut\nTry it. See it.\n+++\nIt stays {glue:text}`mean:.2f`.\n```",
        "> **Cut**\n>\n> It stays 0.12.\n>\n> The live figure is on the book's page "
        f"[1. Sums]({SITE}/ch/sums.html#live-cut).",
    ),
    (
        "a sentence that sets a figure",
        "Look at {live}`head 3 <cut head=3>`.",
        f"Look at [head 3]({SITE}/ch/sums.html#live-cut).",
    ),
    ("what the reader has done", "Text\n\n```{progress}\n```\n\nMore", "Text\n\nMore"),
    (
        "page in depth",
        "```{in-depth} sec-a\nWhy?\n```",
        f"> **In depth**\n>\n> Why?\n>\n"
        f"> From {ADDING}; the chapters do without it. Read 5 minutes.",
    ),
    (
        "buttons of the front page",
        "```{start} sums_depth_why literature\n```",
        f"[1, in depth: why]({DEEPER}) · [Literature]({SITE}/ch/literature.html)",
    ),
    (
        "drawing of the whole model",
        "```{vit-map}\n```",
        f"The drawing of the whole model is on the book's page [1. Sums]({SITE}/ch/sums.html).",
    ),
    (
        "cards of the chapters",
        "```{chapter-cards}\n1 | Why? | 1\n```",
        f"The list of chapters is on the book's page [1. Sums]({SITE}/ch/sums.html).",
    ),
    ("link to a page in depth", "{in-depth}`sums_depth_why`", f"[in depth: why]({DEEPER})"),
    ("link with text", "{in-depth}`so <sums_depth_why>`", f"[so]({DEEPER})"),
    ("minutes", "{minutes}`this page`.", "Read 5 minutes."),
    ("minutes of another page", "{minutes}`read literature` + {minutes}`do literature`", "5 + 0"),
    ("hours of some pages", "{minutes}`hours literature literature`", "0.5"),
    ("math in a quote", "```{tip}\n$$\na\n= b\n$$\n```", "> **Tip**\n>\n> $$a = b$$"),
    ("colon fence", ":::{warning}\nHot.\n:::", "> **Warning**\n>\n> Hot."),
    (
        "claim with its truth",
        '```{claim} sums\n:says: "They are $1$"\n:truth: They are $2$.\n:verdict: false\n'
        ":refuted-by: a sum of $1$.\nSo.\n```",
        "> **Claim:** “They are $1$”\n>\n> **Verdict: false.** **They are $2$.** So.\n>\n"
        "> *Would be refuted by:* a sum of $1$.",
    ),
    (
        "claim",
        '```{claim} sums\n:says: "They are $1$"\n:verdict: true with conditions\nIf so.\n```',
        "> **Claim:** “They are $1$”\n>\n> **Verdict: true, with conditions.** If so.",
    ),
    (
        "dropdown",
        "```{dropdown} Deeper: *why* $a < b$\nBecause.\n```",
        "<details>\n<summary>Deeper: <em>why</em> $a \\lt{} b$</summary>\n\nBecause.\n\n</details>",
    ),
    (
        "dropdown with cells, which stands open above them",
        "```{dropdown} Deeper\nWhy.\n```\n\n```{code-cell}\n:tags: [hide-input, deeper]\n1\n```",
        "<details open>\n<summary>Deeper</summary>\n\nWhy.\n\n</details>\n\n1",
    ),
    (
        "dropdown before another cell",
        "```{dropdown} Answer\nWhy.\n```\n\n```{code-cell}\n1\n```",
        "<details>\n<summary>Answer</summary>\n\nWhy.\n\n</details>\n\n1",
    ),
    (
        "nested fences",
        "`````{dropdown} D\n````{note}\n```python\nx = {1: 2}  # {ref}`a`\n```\n````\n`````",
        "<details>\n<summary>D</summary>\n\n> **Note**\n>\n> ```python\n> x = {1: 2}  # {ref}`a`\n"
        "> ```\n\n</details>",
    ),
    (
        "literalinclude",
        "```{literalinclude} ../../src/part.py\n:pyobject: double\n```",
        f"`double`, from [src/part.py]({AT_TAG}/src/part.py):\n\n"
        '```python\ndef double(x):\n    """Twice x."""\n    return 2 * x\n```',
    ),
    (
        "literalinclude by lines",
        "```{literalinclude} ../../src/part.py\n:lines: 9\n:caption: Last\n```",
        f"**Last**\n\nFrom [src/part.py]({AT_TAG}/src/part.py):\n\n```python\nlast = 1\n```",
    ),
    ("code block", "```{code-block} bash\nmake book\n```", "```bash\nmake book\n```"),
    (
        "figure",
        "```{figure} plan.png\n:name: fig-plan\n:alt: A plan\nTwo {sub}`2` rooms.\n```",
        "![A plan](https://github.com/somebody/book/raw/v1.0.0/pages/ch/plan.png)\n\n"
        "*Fig. 3.* Two <sub>2</sub> rooms.",
    ),
    (
        "list-table",
        "```{list-table} Title\n:header-rows: 1\n* - a\n  - b\n* - $|x|$\n  - `p|q`\n    more\n```",
        "**Title**\n\n| a | b |\n| --- | --- |\n| $\\vert{}x\\vert{}$ | `p\\|q` more |",
    ),
    ("table", "```{table} T\n| a |\n|---|\n| 1 |\n```", "**T**\n\n| a |\n|---|\n| 1 |"),
    ("tabs", "````{tab-set}\n```{tab-item} One\nText\n```\n````", "**One**\n\nText"),
    ("in a list", "- item\n\n  ```{note}\n  Text\n  ```", "- item\n\n  > **Note**\n  >\n  > Text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("myst", "markdown"), [row[1:] for row in TRANSLATED], ids=[row[0] for row in TRANSLATED]
)
def test_a_construct_becomes_plain_markdown(book, myst, markdown):
    assert body(book(myst)) == (myst if markdown is None else markdown)


# name, MyST, line counted from its first, words of the error
REFUSED = [
    ("unknown directive", "Text.\n\n```{sidebar}\nx\n```", 3, "{sidebar} is not translated"),
    ("unknown nested", "````{note}\nx\n```{raw} html\n```\n````", 3, "{raw} is not translated"),
    ("unknown role", "Text.\nMore {abbr}`x`.", 2, "the role {abbr} is not translated"),
    ("unknown glue role", "{glue:md}`mean`", 1, "{glue:md} is not translated"),
    ("unknown value", "{glue:text}`median:.1f`", 1, "glued no median"),
    ("bad format", "{glue:text}`word:.1f`", 1, "could not convert"),
    ("unknown key", "{cite}`nobody1999`", 1, "no entry nobody1999"),
    ("unknown label", "{ref}`sec-z`", 1, "no label named sec-z"),
    ("no number", "{numref}`sec-a`", 1, "sec-a has no number"),
    ("unknown equation", "{eq}`eq-z`", 1, "no built page has an equation labelled eq-z"),
    ("unknown page", "{doc}`elsewhere`", 1, "no page named ch/elsewhere"),
    ("missing file", "[x](gone.py)", 1, "no file gone.py"),
    ("image without alt", "![](plan.png)", 1, "has no alt text"),
    ("missing image", "![A plan](gone.png)", 1, "no file gone.png"),
    ("substitution", "a {{ b }}", 1, "a substitution is not translated"),
    ("attributes", "`x`{.class} y", 1, "an attribute list is not translated"),
    ("footnote", "a[^1]", 1, "a footnote is not translated"),
    ("link definition", "[x]: https://y.org", 1, "a link definition"),
    ("definition list", "Term\n: Meaning", 2, "a definition list"),
    ("bare environment", "\\begin{align}\na\n\\end{align}", 1, "a bare LaTeX environment"),
    ("raw image", '<img src="plan.png">', 1, "a raw HTML image"),
    ("open fence", "Text\n\n```{note}\nx", 3, "this fence (```) is never closed"),
    ("backtick in a title", "```{dropdown} Why `x`\ny\n```", 1, "makes it plain text"),
    ("nested cell", "````{note}\n```{code-cell}\n1\n```\n````", 2, "must stand on its own"),
    ("missing include", "```{literalinclude} gone.py\n```", 1, "cannot be translated"),
    (
        "missing object",
        "```{literalinclude} ../../src/part.py\n:pyobject: triple\n```",
        1,
        "triple",
    ),
    ("unknown option", "```{literalinclude} ../../src/part.py\n:colour: red\n```", 1, "colour"),
    ("unknown verdict", '```{claim} a\n:says: "x"\n:verdict: maybe\ny\n```', 1, "maybe"),
    ("open prediction", "```{predict} c1-a\nWhat?\n```", 1, "below a line +++"),
    ("live figure without a still", "```{live} cut\n:title: C\nTry.\n```", 1, "has no still"),
    ("setting without values", "{live}`head 3 <cut>`", 1, "a setting is written"),
    ("minutes of no page", "Text.\n{minutes}`read gone`", 2, "no page gone"),
    ("unknown minutes", "{minutes}`sing literature`", 1, "sing"),
    ("figure without alt", "```{figure} plan.png\nCaption\n```", 1, "no alt text"),
    ("table without a head", "```{list-table}\n* - a\n```", 1, "needs :header-rows: 1"),
    ("uneven table", "```{list-table}\n:header-rows: 1\n* - a\n  - b\n* - c\n```", 1, "lengths"),
    (
        "tag that stops Colab",
        "```{code-cell}\n:tags: [raises-exception]\n1/0\n```",
        1,
        "raises-exc",
    ),
    ("open solution", "```{solution-start} ex-sum\n```\nText", 1, "this solution has no end"),
    ("stray solution end", "```{solution-end}\n```", 1, "never begun"),
    ("exercise without a label", "```{exercise-start} A\n```\n", 1, "label"),
]


@pytest.mark.parametrize(
    ("myst", "line", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_cannot_be_translated_is_an_error_with_file_and_line(book, myst, line, words):
    with pytest.raises(PageError) as caught:
        book(myst)
    first = len(f"{FRONT}\n# Sums\n\n".splitlines())
    assert str(caught.value).startswith(f"{book.root}/pages/ch/sums.md:{first + line}: ")
    assert words in str(caught.value)


def test_a_page_without_a_title_is_an_error(book):
    (book.root / "pages/ch/sums.md").write_text(f"{FRONT}\nText\n")
    with pytest.raises(PageError, match="does not begin with its title"):
        export(read_settings(book.root), Site(book.root / "_build/html", book.root))


EXERCISE = """Some text.

```{code-cell} ipython3
:tags: [hide-input]

x = 1
print(x)
```

## Exercises

```{exercise-start} Sums
:label: ex-sum
```
*Easy.* Add {ref}`sec-a`.
```{code-cell} ipython3
answer = ...
```
```{exercise-end}
```
```{solution-start} ex-sum
:class: dropdown
:label: sol-sum
```
Like this:
```{code-cell} ipython3
answer = 3
assert answer == x + 2
```
Done.
```{solution-end}
```

## Summary

Sums.
"""


def test_a_notebook_has_link_back_install_cell_and_one_cell_for_each_part(book):
    found = [(cell.cell_type, cell.source.split("\n")[0]) for cell in cells(book(EXERCISE))]
    assert found == [
        ("markdown", "# 1. Sums"),
        ("code", BOOTSTRAP.partition("\n")[0]),
        ("markdown", "Some text."),
        ("code", "x = 1"),
        ("markdown", "## Exercises"),
        ("markdown", "### Exercise 4: Sums"),
        ("code", "answer = ..."),
        ("markdown", "<details>"),
        ("markdown", "## Summary"),
    ]  # fmt: skip
    assert f"[the page]({PAGE})" in cells(book(EXERCISE))[0].source


def test_a_solution_is_printed_not_run_and_can_be_found_again(book):
    notebook = nbformat.reads(book(EXERCISE)["sums.ipynb"], as_version=4)
    folded = notebook.cells[7]
    assert folded.metadata["tags"] == ["solution"]
    assert folded.source == (
        "<details>\n<summary>Solution to Exercise 4</summary>\n\nLike this:\n\n```python\n"
        "answer = 3\nassert answer == x + 2\n```\n\nDone.\n\n</details>"
    )
    assert solutions(notebook) == ["answer = 3\nassert answer == x + 2"]


def test_a_hidden_input_stays_hidden(book):
    cell = cells(book(EXERCISE))[3]
    assert cell.metadata == {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}


def test_notebooks_are_valid_without_outputs_and_the_same_every_time(book):
    first, second = book(EXERCISE), book(EXERCISE)
    assert first == second
    notebook = nbformat.reads(first["sums.ipynb"], as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_editing_one_cell_leaves_the_ids_of_the_others_alone(book):
    before = {cell.source: cell.id for cell in cells(book(EXERCISE))}
    edited = "New paragraph.\n\n```{code-cell}\ny = 2\n```\n\n" + EXERCISE
    after = {cell.source: cell.id for cell in cells(book(edited))}
    assert len(set(after.values())) == len(after)
    assert {source: after[source] for source in before} == before


def test_equal_cells_have_different_ids(book):
    twice = "```{code-cell}\nx\n```\n\n```{code-cell}\nx\n```"
    ids = [cell.id for cell in cells(book(twice))]
    assert len(set(ids)) == len(ids) == 4


WHEEL = "vitbook-1.0.0-py3-none-any.whl"


def install_cell(book, monkeypatch, *, lacking, page="Text"):
    """Run the first code cell where some modules are not installed; what it hands to pip."""
    code = TransformerManager().transform_cell(cells(book(page))[1].source)
    asked = []

    class Shell:
        def run_line_magic(self, name, line):
            assert name == "pip"
            asked.append(line)
            lacking.discard("vitbook")

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacking else find_spec(name)
    )
    exec(code, {"get_ipython": Shell})
    return asked


def test_the_install_cell_takes_the_wheel_of_its_own_release_and_leaves_torch_alone(
    book, monkeypatch
):
    assert install_cell(book, monkeypatch, lacking={"vitbook"}) == [
        'install -q --no-deps "{package}"'
    ]
    source = cells(book("Text"))[1].source
    assert f'else "{SITE}/notebooks/{WHEEL}"' in source


def test_the_install_cell_does_nothing_where_the_package_is_installed(book, monkeypatch):
    assert install_cell(book, monkeypatch, lacking=set()) == []


def test_the_first_cell_names_what_else_is_missing(book, monkeypatch):
    with pytest.raises(ModuleNotFoundError, match="pip install scikit-learn safetensors"):
        install_cell(book, monkeypatch, lacking={"sklearn", "safetensors"})


def test_timm_is_looked_for_where_a_cell_imports_it_and_nowhere_else(book, monkeypatch):
    page = "Text\n\n```{code-cell} ipython3\nimport torch\nimport timm\n```\n"
    with pytest.raises(ModuleNotFoundError, match="pip install timm"):
        install_cell(book, monkeypatch, lacking={"timm"}, page=page)
    page = page.replace("timm", "math")
    assert install_cell(book, monkeypatch, lacking={"timm"}, page=page) == []


def test_everything_that_the_package_needs_is_looked_for():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert set(NEEDED.values()) == names - {"numpy"}  # torch and matplotlib bring numpy


def test_the_script_is_plain_python_that_says_what_to_install(book):
    script = book(EXERCISE)["sums.py"]
    compile(script, "sums.py", "exec")
    assert not any(line.startswith("%") for line in script.splitlines())
    assert f"This script needs the package: pip install {SITE}/notebooks/{WHEEL}" in script
    sources = [c.source for c in jupytext.reads(script, fmt="py:percent").cells]
    assert sources[3] == "x = 1\nprint(x)"


def test_two_pages_of_one_name_are_an_error(book):
    book("Text")
    (book.root / "pages/more").mkdir()
    text = (book.root / "pages/ch/sums.md").read_text()
    (book.root / "pages/more/sums.md").write_text(text)
    (book.root / "_toc.yml").write_text(TOC + "  - file: more/sums\n")
    inventory = INVENTORY + "more/sums std:doc -1 more/sums.html 1. More\n"
    head = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# zlib\n"
    path = book.root / "_build/html/objects.inv"
    path.write_bytes(head + zlib.compress(inventory.encode()))
    with pytest.raises(PageError, match="another page is called sums"):
        export(read_settings(book.root), Site(book.root / "_build/html", book.root))


def test_the_command_puts_notebook_script_and_package_beside_each_other(book, capsys):
    book.write("Text")
    folder = book.root / "_build/html/notebooks"
    folder.mkdir()
    (folder / "02_gone.ipynb").write_text("{}")
    (book.root / "book").mkdir()
    (book.root / "book/moved.toml").write_text('[[moved]]\npage = "01_sums"\nto = "ch/sums"\n')
    assert main(["--root", str(book.root)]) == 0
    names = ["01_sums.ipynb", "sums.ipynb", "sums.py", WHEEL]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [path.name for path in notebooks_in(folder)] == ["sums.ipynb"]
    (moved,) = nbformat.reads((folder / "01_sums.ipynb").read_text(), as_version=4).cells
    assert f"[1. Sums, in Colab]({read_settings(book.root).colab_url}sums.ipynb)" in moved.source
    assert not (book.root / "notebooks").exists()

    book.write("{abbr}`x`")
    assert main(["--root", str(book.root)]) == 1
    assert "export_notebooks: pages/ch/sums.md:9: the role" in capsys.readouterr().err


def test_an_unbuilt_book_is_named(book, capsys):
    book("Text")
    (book.root / "_build/html/objects.inv").unlink()
    assert main(["--root", str(book.root)]) == 1
    assert "build the book first" in capsys.readouterr().err


def test_the_pages_address_follows_from_the_repository():
    assert pages_url("https://github.com/Somebody/Book") == "https://somebody.github.io/Book/"
    with pytest.raises(ValueError, match="needs html: baseurl:"):
        pages_url("https://example.org/book")


def test_blocks_know_their_lines():
    source = "a\n\n````{note}\n:class: x\n\nb\n```{tip}\nc\n```\n````\nd"
    text, note, end = read_blocks(source.split("\n"), Path("p.md"), 10)
    assert (text.line, note.line, end.line) == (10, 12, 20)
    assert note.options == {"class": "x"}
    before, tip = note.blocks()
    assert (before.line, tip.line, tip.body_line) == (14, 16, 17)


def test_assignments_are_drawn_anew_only_when_what_draws_them_has_changed(tmp_path, monkeypatch):
    for folder in ("assignments", "book", "src", "tools"):
        (tmp_path / folder).mkdir()
    for name in (*export_notebooks.DRAWS, "assignments/a1_one.md", "src/x.py", "tools/y.py"):
        (tmp_path / name).write_text("first")
    drawn = []

    def student_files(path, settings):
        drawn.append(path.name)
        return {f"{path.stem}.ipynb": path.read_text()}

    monkeypatch.setattr("tools.assignment.public.student_files", student_files)
    settings, file = SimpleNamespace(root=tmp_path), tmp_path / "facts.json"

    def build():
        memory = Memory(file)
        found = export_notebooks.assignments(settings, memory)
        memory.save()
        return found["a1_one.ipynb"]

    assert build() == "first"
    (tmp_path / "book/page.md").write_text("prose")
    assert build() == "first"
    assert len(drawn) == 1
    (tmp_path / "assignments/a1_one.md").write_text("second")
    assert build() == "second"
    for name in ("src/x.py", "tools/y.py", *export_notebooks.DRAWS):
        (tmp_path / name).write_text("second")
        before = len(drawn)
        assert build() == "second"
        assert len(drawn) == before + 1, name
