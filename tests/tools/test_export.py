"""The exporter: every construct of the pages as plain Markdown, everything else an error."""

import importlib.metadata
import importlib.util
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace

import jupytext
import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from vitbook.book.needed import NEEDED
from website.build import export_notebooks
from website.build.export_notebooks import export, main
from website.build.site import Memory
from website.notebooks.notebook import BOOTSTRAP, FOLDED
from website.pages.moved import notebooks_in
from website.pages.myst import PageError
from website.pages.settings import pages_url, read_settings

SITE = "https://somebody.github.io/book/v1.0.0"
AT_TAG = "https://github.com/somebody/book/blob/v1.0.0"
FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
KNOWN = {  # as website/notebooks/sphinx_targets.py writes it
    "pages": {
        "ch/sums": "1. Sums",
        "ch/literature": "Literature",
        "ch/sums_depth_why": "1, in depth: why",
        "more/sums": "1. More",
    },
    "labels": {
        "sec-a": ["ch/sums", "sec-a", "Adding up", ""],
        "fig-plan": ["ch/sums", "fig-plan", "The plan", "Fig. 3"],
        "ex-sum": ["ch/sums", "ex-sum", "Exercise", "Exercise 4"],
    },
    "equations": {"eq-sum": ["ch/sums", "equation-eq-sum", "(7)"]},
    "literature": {
        "vaswani2017": ["ch/literature", "cite-vaswani2017", "Vaswani et al.", "2017"],
        "pair2020": ["ch/literature", "cite-pair2020", "Alpha and van der Beta", "2020"],
    },
    "unconfirmed": ["claim-fallen"],
    "not_computed": {"ch/sums": ["lost"]},
}
TOC = "root: ch/literature\nparts:\n- caption: I Sums\n  chapters:\n  - file: ch/sums\n"
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
        "  path_to_book: pages\n",
        "_toc.yml": TOC,
        "pages/ch/literature.md": "# Literature\n\n```{bibliography}\n```\n",
        "pages/ch/plan.png": "plan",
        "src/part.py": PART,
        "src/vitbook/__init__.py": "",
        "pyproject.toml": PROJECT,
        "_build/html/index.html": "<html></html>",
        "_build/targets.json": json.dumps(KNOWN),
        "_build/jupyter_execute/ch/sums.glue.json": json.dumps(
            {"mean": {"data": {"text/plain": "0.12345"}}, "word": {"data": {"text/plain": "'hi'"}}}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def write(markdown):
        (tmp_path / "pages/ch/sums.md").write_text(f"{FRONT}\n# Sums\n\n{markdown}\n")

    def exported(markdown):
        write(markdown)
        return export(read_settings(tmp_path))

    exported.root, exported.write = tmp_path, write
    return exported


def cells(files, stem="sums"):
    return nbformat.reads(files[f"{stem}.ipynb"], as_version=4).cells


def body(files):
    """What stands between the set-up and the list of what is still open."""
    found = [cell.source for cell in cells(files)[2:]]
    return "\n\n".join(one for one in found if not one.startswith("#@title What is still open"))


PAGE = f"{SITE}/ch/sums.html"
LITERATURE = f"{SITE}/ch/literature.html"
VASWANI = f"{LITERATURE}#cite-vaswani2017"
DEEPER = f"{SITE}/ch/sums_depth_why.html"
ADDING = f"[Adding up]({PAGE}#sec-a)"
# MyST: Markdown, or None where nothing changes
TRANSLATED = {
    "Just *text*, `code` and [a link](https://x.org).": None,
    "{glue:text}`mean:.2f`": "0.12",
    "{glue:text}`lost:.2f`": "?",  # not computed in this build
    "{cite}`vaswani2017, pair2020`":
        f"([Vaswani et al., 2017]({VASWANI}); "
        f"[Alpha and van der Beta, 2020]({LITERATURE}#cite-pair2020))",
    "{cite:t}`vaswani2017`": f"[Vaswani et al. (2017)]({VASWANI})",
    "{ref}`ex-sum`": f"[Exercise 4]({PAGE}#ex-sum)",
    "{eq}`eq-sum`": f"[(7)]({PAGE}#equation-eq-sum)",
    "{chapter}`sec-a`": f"[chapter 1]({PAGE}#sec-a)",
    "{doc}`all\nbooks <literature>`": f"[all books]({LITERATURE})",
    "`` {ref}`x` `` and $\\{a\\}$": None,
    "[](literature.md)": f"[Literature]({LITERATURE})",
    "[here](#sec-a)": f"[here]({PAGE}#sec-a)",
    "[code](../../src/part.py)": f"[code]({AT_TAG}/src/part.py)",
    "![A plan](plan.png)":
        "![A plan](https://github.com/somebody/book/raw/v1.0.0/pages/ch/plan.png)",
    "costs $a_b$ or $5$": None,
    "$$\na\n$$ (eq-sum)": "$$\na \\tag{7}\n$$",
    "- item\n\n  $$\n  a\n  $$": None,
    "(sec-a)=\nText\n\n% a note\n\n+++\n\nMore": "Text\n\nMore",
    "```{admonition} Try\n:class: goals\nWhat?\n```": "> **Try**\n>\n> What?",
    "```{predict} sums-sum\n:choices: $1$ | {glue:text}`mean:.2f`\n:answer: $1$\nHow many?\n\n"
    "- Or\n+++\nSee {ref}`sec-a`.\n```":
        "> **Predict, then run**\n>\n> How many?\n>\n> - Or\n>\n"
        "> + *choice 1*: $1$\n> + *choice 2*: 0.12\n\n"
        '#@title What do you expect? Choice 1 to 2 { run: "auto" }\n'
        'my_guess = 0  #@param [0, 1, 2] {type:"raw"}\npredict("sums-sum", my_guess, "MS8y")\n\n'
        "<details>\n"
        f"<summary>What happened</summary>\n\n**$1$**\n\nSee {ADDING}.\n\n</details>",
    "```{predict} sums-sum\n:number: 2 +- 1\n:track: 0 to 4\n:unit: %\nHow many?\n+++\nSo.\n```":
        "> **Predict, then run**\n>\n> How many?\n\n"
        '#@title What do you expect? A number, in % { run: "auto" }\n'
        'my_guess = None  #@param {type:"raw"}\npredict("sums-sum", my_guess, "MiAxICU=")\n\n'
        "<details>\n<summary>What happened</summary>\n\n**2 %**\n\nSo.\n\n</details>",
    "```{live} cut\n:title: Cut\nTry it. See it.\n+++\nIt stays {glue:text}`mean:.2f`.\n```":
        "> **Cut**\n>\n> It stays 0.12.\n>\n"
        f"> The live figure is on the book's page [1. Sums]({PAGE}#live-cut).",
    "```{live} cut\n:title: Cut\n:still: above\nTry it.\n+++\nIt tells 3.\n```":
        "> **Cut**\n>\n> Try it.\n>\n"
        f"> The live figure is on the book's page [1. Sums]({PAGE}#live-cut).",
    "```{goals} add\n{chapter}`sec-a`\n```":
        f"**After it** you add. **Before it** [chapter 1]({PAGE}#sec-a).",
    "Look at {live}`head 3 <cut head=3>`.": f"Look at [head 3]({PAGE}#live-cut).",
    "```{in-depth} sec-a\nWhy?\n```":
        "> **In depth**\n>\n> Why?\n>\n"
        f"> From {ADDING}; the chapters do without it. Read 5 minutes.",
    "```{start} sums_depth_why literature\n```":
        f"[1, in depth: why]({DEEPER}) · [Literature]({LITERATURE})",
    "```{chapter-cards}\n1 | Why? | 1\n```":
        f"The list of chapters is on the book's page [1. Sums]({PAGE}).",
    "{in-depth}`sums_depth_why`": f"[in depth: why]({DEEPER})",
    "{minutes}`this page`.": "Read 5 minutes.",
    "{minutes}`hours literature`": "0.5",
    '```{claim} sums\n:says: "They are $1$"\n:truth: They are $2$.\n:verdict: false\n'
    ':refuted-by: a sum of $1$.\nSo.\n```':
        "> **Claim:** “They are $1$”\n>\n> **Verdict: false.** **They are $2$.** So.\n>\n"
        "> *Would be refuted by:* a sum of $1$.",
    "```{claim} fallen\n:says: x\n:verdict: open\nSo.\n```":
        "> **Claim:** “x”\n>\n> **Verdict: open.** **Not confirmed on the machine that built the "
        "book.** So.",
    "```{dropdown} Deeper: *why* $a < b$\nBecause.\n```":
        "<details>\n<summary>Deeper: <em>why</em> $a \\lt{} b$</summary>\n\nBecause.\n\n</details>",
    "```{dropdown} Deeper\nWhy.\n```\n\n```{code-cell}\n:tags: [hide-input, deeper]\n1\n```":
        "<details open>\n<summary>Deeper</summary>\n\nWhy.\n\n</details>\n\n"
        "#@title Done for this section: Sums\n1",
    "`````{dropdown} D\n````{dropdown} N\n```python\nx = {1: 2}  # {ref}`a`\n```\n````\n`````":
        "<details>\n<summary>D</summary>\n\n<details>\n<summary>N</summary>\n\n"
        "```python\nx = {1: 2}  # {ref}`a`\n```\n\n</details>\n\n</details>",
    "```{literalinclude} ../../src/part.py\n:pyobject: double\n```":
        f'`double`, from [src/part.py]({AT_TAG}/src/part.py):\n\n```python\ndef double(x):\n'
        '    """Twice x."""\n    return 2 * x\n```',
    "```{code-block} bash\nmake book\n```": "```bash\nmake book\n```",
    "```{figure} plan.png\n:name: fig-plan\n:alt: A plan\nTwo {ref}`sec-a` rooms.\n```":
        "![A plan](https://github.com/somebody/book/raw/v1.0.0/pages/ch/plan.png)\n\n"
        f"*Fig. 3.* Two {ADDING} rooms.",
    "```{list-table} Title\n:header-rows: 1\n* - a\n  - b\n* - $|x|$\n  - `p|q`\n    more\n```":
        "**Title**\n\n| a | b |\n| --- | --- |\n| $\\vert{}x\\vert{}$ | `p\\|q` more |",
}  # fmt: skip


@pytest.mark.parametrize(("myst", "markdown"), TRANSLATED.items())
def test_a_construct_becomes_plain_markdown(book, myst, markdown):
    assert body(book(myst)) == (myst if markdown is None else markdown)


# MyST: line counted from its first, words of the error
REFUSED = {
    "````{dropdown} T\nx\n```{raw} html\n```\n````": (3, "{raw} is not translated"),
    "Text.\nMore {abbr}`x`.": (2, "the role {abbr} is not translated"),
    "{glue:md}`mean`": (1, "{glue:md} is not translated"),
    "{glue:text}`median:.1f`": (1, "glued no median"),
    "{glue:text}`word:.1f`": (1, "could not convert"),
    "{ref}`sec-z`": (1, "no label named sec-z"),
    "```{figure} plan.png\n:name: sec-a\n:alt: A plan\n```": (1, "sec-a has no number"),
    "{doc}`elsewhere`": (1, "no page named ch/elsewhere"),
    "[x](gone.py)": (1, "no file gone.py"),
    "![](plan.png)": (1, "has no alt text"),
    "a[^1]\n\n[^1]: b": (1, "a footnote is not translated"),
    "Text\n<project:#a>": (2, "a MyST autolink"),
    "Text\n\n    code": (3, "code by indentation"),
    "\\begin{align}\na\n\\end{align}": (1, "a bare LaTeX environment"),
    '<img src="plan.png">': (1, "a raw HTML image"),
    "Text\n\n```{dropdown} T\nx": (3, "this fence (```) is never closed"),
    "```{dropdown} Why `x`\ny\n```": (1, "makes it plain text"),
    "````{dropdown} T\n```{code-cell}\n1\n```\n````": (2, "must stand on its own"),
    "```{literalinclude} ../../src/part.py\n:pyobject: triple\n```": (1, "triple"),
    '```{claim} a\n:says: "x"\n:verdict: maybe\ny\n```': (1, "maybe"),
    "```{live} cut\n:title: C\nTry.\n```": (1, "has no still"),
    "Text.\n{minutes}`hours gone`": (2, "no page gone"),
    "```{figure} plan.png\nCaption\n```": (1, "no alt text"),
    "```{list-table}\n:header-rows: 1\n* - a\n  - b\n* - c\n```": (1, "lengths"),
    "```{code-cell}\n:tags: [raises-exception]\n1/0\n```": (1, "raises-exc"),
    "```{solution-start} ex-sum\n```\nText": (1, "this solution has no end"),
    "```{exercise-start} A\n```\n": (1, "label"),
}  # fmt: skip


@pytest.mark.parametrize(("myst", "found"), REFUSED.items())
def test_what_cannot_be_translated_is_an_error_with_file_and_line(book, myst, found):
    line, words = found
    with pytest.raises(PageError) as caught:
        book(myst)
    first = len(f"{FRONT}\n# Sums\n\n".splitlines())
    assert str(caught.value).startswith(f"{book.root}/pages/ch/sums.md:{first + line}: ")
    assert words in str(caught.value)


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


def test_notebook_and_script_have_an_opening_a_setup_and_one_cell_for_each_part(book):
    """Valid, without outputs, the same every time; a solution has names of its own."""
    files = book(EXERCISE)
    assert files == book(EXERCISE)
    notebook = nbformat.reads(files["sums.ipynb"], as_version=4)
    nbformat.validate(notebook)
    found = notebook.cells
    assert [(cell.cell_type, cell.source.split("\n")[0]) for cell in found] == [
        ("markdown", "# 1. Sums"),
        ("code", BOOTSTRAP.partition("\n")[0]),
        ("markdown", "Some text."),
        ("code", "#@title Computed for later: x"),
        ("markdown", "## Exercises"),
        ("markdown", "### Exercise 4: Sums"),
        ("code", "answer = ..."),
        ("markdown", "<details>"),
        ("code", "#@title Solution to Exercise 4 (your own answer stays)"),
        ("markdown", "## Summary"),
    ]  # fmt: skip
    assert f"Read 5 minutes. [The page]({PAGE})" in found[0].source
    assert all(found[at].metadata == FOLDED for at in (1, 3))
    assert "<summary>Solution to Exercise 4, in words</summary>\n\nLike this:" in found[7].source
    assert found[8].metadata == {**FOLDED, "tags": ["hide-input", "solution"]}
    code = [cell for cell in found if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    script = files["sums.py"]  # plain Python
    compile(script, "sums.py", "exec")
    assert not any(line.startswith("%") for line in script.splitlines())
    assert f"This script needs the package: pip install {SITE}/notebooks/{WHEEL}" in script
    sources = [c.source for c in jupytext.reads(script, fmt="py:percent").cells]
    assert sources[3] == "#@title Computed for later: x\nx = 1\nprint(x)"


# cells of a page: the notebook's cells of code below the set-up, a line --- between them
CUT = {
    "a check is a cell, and tells no prediction's answer": (
        """```{code-cell}
import math
from vitbook.book.glue import glue
```

## Adding

```{code-cell}
import json
x = 1
# check: they are *equal*
assert x == 1
glue(x=x)
```

```{predict} sums-one
:choices: no | yes
:answer: yes
Will it?
+++
So.
```

```{code-cell}
:tags: [hide-input]
glue(x=x)
show(x, alt="A", caption="How it is: one" + f" and {x}.")
# check: it will
assert x < 2
```

## More

```{claim} sums
:says: "One is $1$."
:verdict: false
So.
```

```{code-cell}
y = 2
assert y > x
```

```{code-cell}
show_table([], caption=f"{x} rows of many, one each")
```
""",
        """x = 1
---
#@title Check: they are equal
assert x == 1
---
#@title What do you expect? Choice 1 to 2 { run: "auto" }
my_guess = 0  #@param [0, 1, 2] {type:"raw"}
predict("sums-one", my_guess, "PjIvMg==")
---
#@title Figure: How it is
result_of("sums-one")
show(x, alt="A", caption="How it is: one" + f" and {x}.")
---
#@title Check of this section: Adding
assert x < 2
---
#@title Check: One is 1
y = 2
assert y > x
---
"""
        "#@title Table 1.1: More"
        """
show_table([], caption=f"{x} rows of many, one each")
---
#@title What is still open
still_open({"sums-one": "Adding"},
           {})""",
    ),
    "a solution knows the names of those before it, and changes no others": (
        """```{code-cell}
def my_sum(x):
    return ...
x = 2
```

```{solution-start} ex-sum
```
```{code-cell}
def my_sum(x, y=x):
    return [x for x in (x, y)][0] + x
x = my_sum(1)
```
```{solution-end}
```

```{solution-start} ex-sum
```
```{code-cell}
z = f"{my_sum(3)}"
```
```{solution-end}
```
""",
        """def my_sum(x):
    return ...
x = 2
---
#@title Solution to Exercise 4 (your own answer stays)
def solution_sum(x, y=solution_x):
    return [x for x in (x, y)][0] + x
solution_x = solution_sum(1)
---
#@title Solution to Exercise 4 (your own answer stays)
z = f'{solution_sum(3)}'""",
    ),
}


@pytest.mark.parametrize(("page", "wanted"), CUT.values(), ids=CUT)
def test_the_cells_of_a_page_are_cut_named_and_folded(book, page, wanted):
    code = [cell for cell in cells(book(page))[2:] if cell.cell_type == "code"]
    assert "\n---\n".join(cell.source for cell in code) == wanted
    folded = [cell.source.startswith("#@title") for cell in code]
    assert [cell.metadata.get("cellView") == "form" for cell in code] == folded


def test_the_setup_has_each_import_once_and_none_that_another_cell_shadows(book):
    page = """```{code-cell}
import math
from torch import nn
```

```{code-cell}
from torch.nn import functional
from torch.nn import Linear
import json
x = json = 2
```
"""
    _, setup, *rest = cells(book(page))
    assert (
        "import math\nfrom torch import nn\n\nfrom torch.nn import functional, Linear"
        in setup.source
    )
    assert [cell.source for cell in rest] == ["import json\nx = json = 2"]


RUNS = """
[tool.hatch.build.targets.wheel.force-include]
"website/live/cut.js" = "vitbook/live/cut.js"
"website/live/cut_data.py" = "vitbook/live/cut_data.py"
"""


def test_a_live_figure_that_the_package_has_runs_in_the_notebook(book):
    asked = "```{predict} sums-sum\n:choices: 1 | 2\n:answer: 1\nWhich?\n+++\nSo.\n```\n\n"
    shown = "```{code-cell}\nshow(1)\n```\n\n"
    figure = "```{live} cut\n:title: Cut\n:data: cut-data\nTry it.\n+++\nIt stays “3”.\n```\n\n"
    page = asked + shown + figure + "Look at {live}`head 3 <cut head=3>`, {live}`so <gone a=b>`."
    assert "show_live" not in "".join(cell.source for cell in cells(book(page)))
    (book.root / "pyproject.toml").write_text(PROJECT + RUNS)
    _, setup, *_, words, run, after, _ = cells(book(page))
    assert "from vitcheck.notebook import set_up, predict, result_of, show_live" in setup.source
    where = f"> The live figure is below, and on the book's page [1. Sums]({PAGE}#live-cut)."
    assert words.source.endswith(f"> **Cut**\n>\n> Try it.\n>\n{where}")
    assert run.source == (
        '#@title The live figure: Cut\nresult_of("sums-sum", again=True)\nshow_live("cut", '
        'title="Cut", sets={"head 3": {"head": "3"}}, data="cut-data",\n'
        f'          still="It stays “3”.",\n          page="{PAGE}#live-cut")'
    )
    assert run.metadata["jupyter"] == {"source_hidden": True}
    assert after.source == f"Look at *head 3*, [so]({PAGE}#live-gone)."  # a button above; a link
    unshown = cells(book(asked + figure))[-2].source  # what is no result is not closed
    assert "show_live(" in unshown
    assert "result_of(" not in unshown


def test_the_first_link_to_another_page_offers_its_notebook(book):
    (book.root / "_toc.yml").write_text(TOC + "  - file: more/sums2\n")
    (book.root / "pages/more").mkdir()
    (book.root / "pages/more/sums2.md").write_text(f"{FRONT}\n# More\n\nText\n")
    known = {**KNOWN, "pages": {**KNOWN["pages"], "more/sums2": "2. More"}}
    (book.root / "_build/targets.json").write_text(json.dumps(known))
    colab = f"{read_settings(book.root).colab_url}sums2.ipynb"
    more = f"[2. More]({SITE}/more/sums2.html)"
    assert body(book("{doc}`../more/sums2`, {doc}`../more/sums2` and {doc}`literature`")) == (
        f"{more} ([notebook]({colab})), {more} and [Literature]({LITERATURE})"
    )


def test_editing_one_cell_leaves_the_ids_of_the_others_alone_and_equal_cells_differ(book):
    before = {cell.source: cell.id for cell in cells(book(EXERCISE))}
    twice = "```{code-cell}\ny = 2\n```\n\n" * 2
    after = cells(book(f"New paragraph.\n\n{twice}{EXERCISE}"))
    assert len({cell.id for cell in after}) == len(after) == len(before) + 3
    assert {cell.source: cell.id for cell in after}.items() >= before.items()


WHEEL = "vitbook-1.0.0-py3-none-any.whl"

TIMM = "Text\n\n```{code-cell} ipython3\nimport torch\nimport timm\n```\n"


def test_the_first_cell_installs_the_package_and_names_what_else_is_missing(book, monkeypatch):
    asked, lacking = [], set()

    class Shell:
        def run_line_magic(self, name, line):
            asked.append(f"{name} {line}")
            lacking.difference_update({"vitbook", "vitbook 1.0.0"})

    def distributions(real=importlib.metadata.distributions, **wanted):
        if wanted != {"name": "vitbook"}:
            return real(**wanted)
        version = "0.9.0" if "vitbook 1.0.0" in lacking else "1.0.0"
        return [] if "vitbook" in lacking else [SimpleNamespace(version=version)]

    def asks(page, *missing):
        asked.clear()
        lacking.update(missing)
        source = cells(book(page))[1].source.partition("\nfrom vitcheck.notebook")[0]
        assert f'else "{SITE}/notebooks/{WHEEL}"' in source  # of its own release
        exec(TransformerManager().transform_cell(source), {"get_ipython": Shell})
        return asked

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacking else real(name)
    )
    monkeypatch.setattr(importlib.metadata, "distributions", distributions)
    assert asks("Text", "vitbook 1.0.0") == ['pip install -q --no-deps "{package}"']  # another one
    assert asks("Text", "vitbook") == ['pip install -q --no-deps "{package}"']
    assert asks("Text", "timm") == []  # no cell imports it
    with pytest.raises(ModuleNotFoundError, match="pip install timm"):
        asks(TIMM)
    with pytest.raises(ModuleNotFoundError, match="pip install scikit-learn safetensors"):
        asks("Text", "sklearn", "safetensors")


def test_everything_that_the_package_needs_is_looked_for():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert set(NEEDED.values()) == names - {"numpy"}  # torch and matplotlib bring numpy


def test_a_page_without_a_title_two_of_one_name_and_an_unbuilt_book_are_errors(book, capsys):
    def said():
        assert main(book.root) == 1
        return capsys.readouterr().err

    page = book.root / "pages/ch/sums.md"
    page.write_text(f"{FRONT}\nText\n")
    assert "does not begin with its title" in said()
    book.write("{abbr}`x`")
    assert "export_notebooks: pages/ch/sums.md:9: the role" in said()
    book.write("```{code-cell}\npredict = 1\n```")
    assert "binds predict" in said()
    book.write("Text")
    (book.root / "pages/more").mkdir()
    shutil.copy(page, book.root / "pages/more")
    (book.root / "_toc.yml").write_text(TOC + "  - file: more/sums\n")
    assert "another page is called sums" in said()
    (book.root / "_build/targets.json").unlink()
    assert "build the book first" in said()


def test_the_command_puts_notebook_script_and_package_beside_each_other(book):
    book.write("Text")
    folder = book.root / "_build/html/notebooks"
    folder.mkdir()
    (folder / "02_gone.ipynb").write_text("{}")
    (book.root / "book").mkdir()
    (book.root / "book/moved.toml").write_text('[[moved]]\npage = "01_sums"\nto = "ch/sums"\n')
    assert main(book.root) == 0
    names = ["01_sums.ipynb", "sums.ipynb", "sums.py", WHEEL]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [path.name for path in notebooks_in(folder)] == ["sums.ipynb"]
    (moved,) = nbformat.reads((folder / "01_sums.ipynb").read_text(), as_version=4).cells
    assert f"[1. Sums, in Colab]({read_settings(book.root).colab_url}sums.ipynb)" in moved.source
    assert not (book.root / "notebooks").exists()


def test_the_pages_address_follows_from_the_repository():
    assert pages_url("https://github.com/Somebody/Book") == "https://somebody.github.io/Book/"
    with pytest.raises(ValueError, match="needs html: baseurl:"):
        pages_url("https://example.org/book")


def test_assignments_are_drawn_anew_only_when_what_draws_them_has_changed(tmp_path, monkeypatch):
    draws = ("assignments/a1_one.md", "src/x.py", "website/y.py", *export_notebooks.DRAWS)
    for name in draws:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("first")
    drawn = []
    monkeypatch.setattr(
        "website.assignments.public.student_files",
        lambda path, settings: drawn.append(path) or {"a1_one.ipynb": path.read_text()},
    )

    def draws_anew():
        before, memory = len(drawn), Memory(tmp_path / "facts.json")
        found = export_notebooks.assignments(SimpleNamespace(root=tmp_path), memory)
        memory.save()
        assert found["a1_one.ipynb"] == (tmp_path / draws[0]).read_text()
        return len(drawn) > before

    assert draws_anew()
    (tmp_path / "page.md").write_text("prose")
    assert not draws_anew()
    for name in draws:
        (tmp_path / name).write_text("second")
        assert draws_anew(), name


def test_a_notebook_is_written_anew_when_its_page_or_what_it_takes_has_changed(book, monkeypatch):
    written, exporter = [], export_notebooks.Exporter
    monkeypatch.setattr(
        export_notebooks, "Exporter", lambda *args: written.append(1) or exporter(*args)
    )
    file, glued = book.root / "facts.json", "_build/jupyter_execute/ch/sums.glue.json"

    def made():
        before, memory = len(written), Memory(file)
        files = export(read_settings(book.root), memory)
        memory.save()
        assert files == export(read_settings(book.root))  # as it is without a memory
        return len(written) - before - 1

    book.write("Mean {glue:text}`mean:.2f`.\n\n```{code-cell}\n1 + 1\n```")
    assert (made(), made()) == (1, 0)
    for name, old, new in (
        ("pages/ch/sums.md", "Mean", "The mean"),
        (glued, "0.12345", "0.5"),
        ("_build/targets.json", "Literature", "What to read"),
        ("_config.yml", "The Book", "A Book"),
        ("src/vitbook/__init__.py", "", "x = 1\n"),
    ):
        path = book.root / name
        path.write_text(path.read_text().replace(old, new, 1))
        assert (name, made(), made()) == (name, 1, 0)
    (book.root / "pages/ch/literature.md").write_text("# Literature\n\nOther words.\n")
    assert made() == 0
    book.write("{minutes}`hours literature`\n\n```{code-cell}\n1 + 1\n```")
    assert (made(), made()) == (1, 1)  # it counts another page
