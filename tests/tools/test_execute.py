"""Executing the chapters: what is run again, what is refused, what reaches the pages."""

import ast
import os
import re
import textwrap

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode

from website.build import chapters
from website.build.chapters import Store, find_chapters
from website.build.dependencies import Sources, chapter_digest, imports
from website.build.execute import execute, main, merge_streams
from website.pages.failures import ELSEWHERE
from website.pages.settings import toc_files

FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""


def page(title, *cells):
    """A chapter in MyST, each cell after a line of prose."""
    parts = [f"{FRONT}# {title}\n"]
    for cell in cells:
        parts.append(f"Some prose.\n\n```{{code-cell}} ipython3\n{textwrap.dedent(cell)}\n```\n")
    return "\n".join(parts)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf8")


FILES = {
    "_config.yml": "execute: {timeout: 60}\n",
    "_toc.yml": "root: index\nparts:\n- chapters:\n  - file: one\n  - file: part/two\n",
    "requirements.txt": "torch==1\n",
    "src/toybook/__init__.py": "",
    "src/toybook/maths.py": "from toybook import deep\n\ndef double(x):\n    return 2 * x\n",
    "src/toybook/deep.py": "from toybook import drawing\n",
    "src/toybook/other.py": "VALUE = 3\n",
    "src/toybook/drawing/__init__.py": '"""Draws."""\n',
    "src/toybook/drawing/js/drawing.js": "draw()",
    "src/toybook/recorded/digits.json": "{}",
    "src/toybook/recorded/digits-small.safetensors": "weights",
    "src/toybook/recorded/pairs.json": "{}",
    "book/index.md": "# A page without code\n",
    "book/one.md": page("One", "from toybook.maths import double", "print(double(21))"),
    "book/part/two.md": page(
        "Two", "from toybook.other import VALUE\nload_record = str\nload_record('digits')"
    ),
    "_build/kernel/matplotlib/fontlist": "",  # no page draws: fonts need not be looked for
}


@pytest.fixture
def repository(tmp_path):
    """A small one: two chapters, a plain page, a package with records."""
    for name, text in FILES.items():
        write(tmp_path / name, text)
    return tmp_path


def digests(root):
    return {chapter.name: chapter.digest for chapter in find_chapters(root, [])}


def changed_by(root, path, text):
    """The chapters whose digest changes when `path` gets `text`."""
    before = digests(root)
    write(root / path, text)
    after = digests(root)
    return {name for name in after if before.get(name) != after[name]}


def test_the_contents_may_nest_parts_chapters_and_sections():
    part = {"caption": "A", "chapters": [{"file": "a", "sections": [{"file": "b/c.md"}]}]}
    toc = {"root": "index", "parts": [part, {"chapters": [{"file": "d"}]}]}
    assert toc_files(toc) == ["index", "a", "b/c", "d"]


COMPUTED = page("One", "from toybook import other\nload_record = str\nload_record('di' + 'gits')")
ROWS = "from toybook.records import load_record\n\ndef rows():\n    load_record('pairs')\n"
BY_A_MODULE = page("One", "from toybook.rows import rows", "rows()")
OPENED = page("One", "open('numbers.csv').read()")
ONE, TWO, ALL = {"one"}, {"part/two"}, {"one", "part/two"}
# what changes: its file, what it becomes, the chapters that are stale, what stands elsewhere before
CHANGES = {
    "code": ("book/one.md", ("double(21)", "double(22)"), ONE, {}),
    "tags": ("book/one.md", ("on3\nprint", "on3\n:tags: [hide-input]\nprint"), ONE, {}),
    "prose": ("book/one.md", ("Some prose", "Better prose"), set(), {}),
    "a page without code": ("book/index.md", "# Other words\n", set(), {}),
    "an imported module": ("src/toybook/maths.py", "def double(x):\n    return 3\n", ONE, {}),
    "a module that it imports": (
        "src/toybook/deep.py", "from toybook import drawing\nprint(1)\n", ONE, {}
    ),
    "a docstring": ("src/toybook/drawing/__init__.py", '"""Paints."""  # well\n', set(), {}),
    "a script beside a module": ("src/toybook/drawing/js/drawing.js", "erase()", ONE, {}),
    "the package's own init": ("src/toybook/__init__.py", "print(1)\n", ALL, {}),
    "a module that nobody imports": ("src/toybook/new.py", "X = 1\n", set(), {}),
    "a record that is loaded": ("src/toybook/recorded/digits.json", "[1]", TWO, {}),
    "a blank in a record": ("src/toybook/recorded/digits.json", "{ }\n", set(), {}),
    "its weights": ("src/toybook/recorded/digits-small.safetensors", "new", TWO, {}),
    "a record that is not loaded": ("src/toybook/recorded/pairs.json", "[1]", set(), {}),
    "a record whose name is computed": (
        "src/toybook/recorded/pairs.json", "[1]", ONE, {"book/one.md": COMPUTED}
    ),
    "a record that a module loads": (
        "src/toybook/recorded/pairs.json", "[1]", ONE,
        {"src/toybook/rows.py": ROWS, "book/one.md": BY_A_MODULE},
    ),
    "a file that a cell opens": (
        "book/numbers.csv", "3,4", ONE, {"book/numbers.csv": "1,2", "book/one.md": OPENED}
    ),
    "a file beside all modules": ("src/toybook/font.bin", "x", ALL, {}),
    "the lock": ("requirements.txt", "torch==2\n", ALL, {}),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "stale", "before"), CHANGES.values(), ids=CHANGES)
def test_only_what_a_chapter_depends_on_makes_it_stale(repository, path, text, stale, before):
    for name, first in before.items():
        write(repository / name, first)
    if isinstance(text, tuple):
        text = (repository / path).read_text("utf8").replace(*text)
    assert changed_by(repository, path, text) == stale


MODULE = """
from functools import cache
from toybook.deep import scale as factor

SIZES = {"small": 2}
ORDER = sorted(SIZES)
EDGES = print(1)

def helper(x):
    return x * factor

@cache
def remembered():
    return 1

def named_in_a_string():
    return 1

@print
def registered():
    return 1

class Base:
    start = 1

class Used(Base):
    def run(self):
        return helper(SIZES["small"]) + getattr(self, "named_in_a_string")() + remembered()
"""
DEFINITIONS = [  # what changes in the module, into what, does it count for who calls Used?
    ("helper(x):\n    return x", "helper(x):\n    return 2 * x", True),
    ('"small": 2', '"small": 3', True),
    ("start = 1", "start = 2", True),
    ("def remembered():\n    return 1", "def remembered():\n    return 2", True),
    ("in_a_string():\n    return 1", "in_a_string():\n    return 2", True),
    ("def registered():\n    return 1", "def registered():\n    return 2", True),
    ("scale as factor", "other as factor", True),
    ("print(1)", "print(2)", True),
    ("ORDER = sorted(SIZES)", "ORDER = list(SIZES)", True),  # who knows what `list` is here?
    ("ORDER = sorted(SIZES)", "ORDER = sorted([1])", False),
    ("class Base", "class Unused:\n    pass\n\nclass Base", False),
    ("class Base", "from toybook import unused\n\nclass Base", False),
    ("scale = 2", "scale = 3", True),  # what the module imports, under its other name
    ("other = 3", "other = 4", False),
]


@pytest.mark.parametrize(("old", "new", "counts"), DEFINITIONS)
def test_of_a_module_counts_what_is_reached_by_name(repository, old, new, counts):
    files = {"maths": MODULE, "deep": "scale = 2\nother = 3\n"}
    for name, text in files.items():
        write(repository / f"src/toybook/{name}.py", text)
    write(repository / "book/one.md", page("One", "from toybook.maths import Used\nUsed().run()"))
    ((name, text),) = ((name, text) for name, text in files.items() if old in text)
    assert text.count(old) == 1
    stale = changed_by(repository, f"src/toybook/{name}.py", text.replace(old, new))
    assert stale == ({"one"} if counts else set())


def test_another_python_makes_every_chapter_stale(repository, monkeypatch):
    before = digests(repository)
    monkeypatch.setattr("website.build.dependencies.platform.python_version", lambda: "3.99.0")
    after = digests(repository)
    assert all(before[name] != after[name] for name in before)


def test_magics_and_relative_imports_are_understood(repository):
    notebook = read_myst_markdown_notebook(
        page("M", "%matplotlib inline\n!ls\nimport toybook.maths")
    )
    sources = Sources(repository)
    assert len(chapter_digest(notebook, repository / "book", sources)) == 64
    tree = ast.parse("from . import deep\nfrom ..up import x")
    assert {"toybook.part.deep", "toybook.up"} <= imports(tree, ["toybook", "part"])


def test_neighbouring_pieces_of_a_stream_become_one():
    kinds = ["stdout", "stdout", None, "stdout", "stderr"]
    outputs = [
        NotebookNode(output_type="stream", name=name, text=name)
        if name
        else NotebookNode(output_type="display_data", data={})
        for name in kinds
    ]
    merged = [output.get("text") for output in merge_streams(outputs)]
    assert merged == ["stdoutstdout", None, "stdout", "stderr"]


def run(root, **options):
    settings = {"pages": [], "jobs": 2, "timeout": 60, **options}
    return execute(root, root / "_build", **settings)


def outputs_of(root, name):
    """What the page builder will find in the cache for one chapter."""
    chapter = next(c for c in find_chapters(root, []) if c.name == name)
    store = Store(root / "_build" / ".jupyter_cache")
    _, notebook = store.cache.merge_match_into_notebook(chapter.notebook)
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


MEET = """
import os, time
from pathlib import Path
Path("{mine}").write_text("here")
for _ in range(600):
    if Path("{other}").exists():
        break
    time.sleep(0.1)
assert Path("{other}").exists(), "nobody runs beside me"
print(os.environ["OMP_NUM_THREADS"], os.environ["PYTHONHASHSEED"], Path.cwd().name)
"""


def test_a_page_is_read_and_run_again_only_when_something_changed(repository, monkeypatch):
    """Or when its cells read another page, or their module changed while they ran."""
    edit = "open('../../src/toybook/other.py', 'a').write('print(3)\\n')"
    write(repository / "book/part/two.md", page("Two", "import toybook.other", edit))
    write(repository / "_toc.yml", FILES["_toc.yml"] + "  - file: three\n")
    write(repository / "book/three.md", page("Three", "print(open('words.md').read())"))
    write(repository / "book/words.md", "# Words\n")
    read = []
    real = chapters.read_myst_markdown_notebook

    def noted(text, **options):
        read.append(options["path"].stem)
        return real(text, **options)

    def stale():
        store = Store(repository / "_build/.jupyter_cache")
        found = find_chapters(repository, [], store.inputs)
        return {one.name for one in found if not store.is_fresh(one)}

    monkeypatch.setattr(chapters, "read_myst_markdown_notebook", noted)
    assert run(repository) == []
    assert stale() == {"part/two"}
    write(repository / "book/part/two.md", FILES["book/part/two.md"])
    assert run(repository) == []
    read.clear()
    assert run(repository) == []
    assert read == ["three"]
    write(repository / "book/one.md", FILES["book/one.md"] + "More words.\n")
    assert run(repository) == []
    assert read == ["three", "one", "three"]
    write(repository / "book/words.md", "# Other words\n")
    assert stale() == {"three"}
    write(repository / "_toc.yml", "root: index\nchapters:\n- file: one\n")
    write(repository / "src/toybook/deep.py", "X = 2\n")
    assert stale() == {"one"}
    monkeypatch.setattr(
        "website.build.execute.IPC", False
    )  # where a kernel cannot listen on a file
    assert run(repository) == []
    assert outputs_of(repository, "one")[1][0].text == "42\n"
    kept = (repository / "_build/.jupyter_cache/executed").glob("*/base.ipynb")
    assert len([*kept]) == 1  # what no chapter uses leaves the cache


def test_two_that_run_side_by_side_keep_what_the_other_has_run(repository):
    one, two = find_chapters(repository, [])
    book, preview = (Store(repository / "_build" / ".jupyter_cache") for _ in range(2))
    book.keep(one)
    preview.keep(two)
    book.forget(one)
    assert Store(repository / "_build" / ".jupyter_cache").state.keys() == {two.name}


def test_two_chapters_run_side_by_side_and_are_not_run_again(repository, capfd):
    here, there = repository / "one.txt", repository / "two.txt"
    write(repository / "book/one.md", page("One", MEET.format(mine=here, other=there), "1 + 1"))
    write(repository / "book/part/two.md", page("Two", MEET.format(mine=there, other=here)))
    assert run(repository) == []
    first = capfd.readouterr().out
    assert "3/3" in first  # one bar over the cells of both
    assert "one  cell 2/2" not in first
    assert "slowest:" in first
    (printed,), (value,) = outputs_of(repository, "one")
    assert printed.text == "1 0 book\n"
    assert value.data["text/plain"] == "2"
    assert outputs_of(repository, "part/two")[0][0].text == "1 0 part\n"
    assert run(repository) == []
    assert "nothing to execute" in capfd.readouterr().out


HERE, HELD = "On this machine this cell", "This did not hold on this machine:"
WHERE = "[Errno 2] No such file or directory:"
SLOW, KILLED = "import time\ntime.sleep(60)", "import os\nos._exit(9)"
LOOP = "for k in range(9):\n    assert k > 9"
FOUND = ["k > 9; found 0 > 9", "k > 9; found 1 > 9", "k > 9; found 2 > 9, and 6 times more"]
NOT_INT = "ended with ValueError: invalid literal for int() with base 10: 'x'"
# a cell: what is told of which of its lines, what a reader is told
FAILING = {
    "x = 58.3\nassert x > 60\nprint(x)": (
        [(2, "did not hold: x > 60; found 58.3 > 60")],
        [f"{HELD} x > 60; found 58.3 > 60.", "58.3\n"],
    ),
    "x = 1\nraise ValueError('the reason')": (
        [(2, "ended with ValueError: the reason")],
        [f"{HERE} ended with ValueError: the reason."],
    ),
    "def f(x):\n    assert x\nf(0)": (
        [(3, "ended with AssertionError at assert x")],
        [f"{HERE} ended with AssertionError at assert x."],
    ),
    "open('/no/such/file')": (
        [(1, f"ended with FileNotFoundError: {WHERE} '/no/such/file'")],
        [f"{HERE} ended with FileNotFoundError: {WHERE} 'file'."],
    ),
    "import warnings\nwarnings.warn('do not do this')": (
        [(1, "wrote to stderr, which would appear on the page: UserWarning: do not do this")],
        [f"{HERE} wrote what no page should show: UserWarning: do not do this."],
    ),
    "print('half')\nassert 1 > 2\nint('x')": (
        [(3, NOT_INT), (2, "did not hold: 1 > 2; found 1 > 2")],
        ["half\n", f"{HELD} 1 > 2; found 1 > 2.", f"{HERE} {NOT_INT}."],
    ),
    LOOP: ([(2, f"did not hold: {one}") for one in FOUND], [f"{HELD} {one}." for one in FOUND]),
    "y = 1": ([], [f"{HELD} 3 > 4; found 3 > 4."]),  # of the cell below, which is not shown
    "---\ntags: [remove-cell]\n---\nassert 3 > 4": ([(4, "did not hold: 3 > 4; found 3 > 4")], []),
    SLOW: (
        [(1, "took longer than 3 s; move long runs to a recorded experiment")],
        [f"{HERE} took longer than 3 seconds."],
    ),
    KILLED: (
        [(1, "the Python process died (out of memory, or a crash in compiled code)")],
        ["On this machine the Python process died in this cell."],
    ),
}


LINE = 17  # of the page, with which the second cell begins
TOC = "root: index\nchapters: [{file: many}, {file: slow}, {file: killed}, {file: good}]\n"


def texts(outputs):
    return [output.get("text") or output.data["text/plain"] for output in outputs]


def test_what_fails_in_a_cell_is_told_each_time_and_costs_only_the_cell(
    repository, capfd, monkeypatch
):
    """A cell that ends the process costs those below it, and no other page."""
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    cells = {"many": [*FAILING][:-2], "slow": [SLOW], "killed": [KILLED]}
    write(repository / "_config.yml", "execute: {timeout: 3}\n")
    write(repository / "_toc.yml", TOC)
    write(repository / "book/good.md", page("Good", "print('fine')"))
    failures = []
    for name, codes in cells.items():
        text = page(name, "print('before')", *codes, "print('after')")
        write(repository / f"book/{name}.md", text)
        first = {code: text[: text.index(f"\n{code}\n")].count("\n") + 2 for code in codes}
        failures += [
            f"book/{name}.md, line {first[code] + line - 1}: {told}"
            for code in codes
            for line, told in FAILING[code][0]
        ]
    for attempt in (1, 2):
        if attempt == 1:
            assert sorted(map(str, run(repository, timeout=3))) == sorted(failures)
        else:
            assert main(["--root", str(repository)]) == 1
        printed = capfd.readouterr()
        assert f"{5 - attempt} of 4 chapters" in printed.out
        assert all(f"FAILED {failure}" in printed.out for failure in failures)
        for name, codes in cells.items():
            before, *found, after = outputs_of(repository, name)
            assert texts(before) == ["before\n"]
            assert [texts(one) for one in found] == [FAILING[code][1] for code in codes]
            ended = f"This cell was not run on this machine: the cell in line {LINE} ended the run."
            assert texts(after) == (["after\n"] if name == "many" else [ended])
            if name == "many":
                assert found[[*FAILING].index("y = 1")][0].metadata == {ELSEWHERE: True}
    head, *lines, processor = printed.err.splitlines()[-len(failures) - 2 :]
    assert head == f"{len(failures)} failures on this machine:"
    assert lines == [f"  {failure}" for failure in failures]
    assert re.fullmatch(
        r"Processor: .+, PyTorch uses \w+ \(ATEN_CPU_CAPABILITY=default\)", processor
    )
    assert outputs_of(repository, "good")[0][0].text == "fine\n"
    state = Store(repository / "_build" / ".jupyter_cache").state
    assert state["killed"]["failed"] == failures[-1:]
    assert "failed" not in state["good"]
    for name in cells:  # the same cells on pages that run side by side
        write(repository / f"book/{name}.md", page(name, "print('before')", "print('mended')"))
    assert run(repository) == []
    assert all(outputs_of(repository, name)[1][0].text == "mended\n" for name in cells)


def test_a_failure_is_printed_when_it_happens_and_who_asks_gets_a_line_for_each_cell(
    repository, capfd
):
    write(repository / "book/part/two.md", page("Two", "assert 1 > 2"))  # which runs first
    execute(repository, repository / "_build", [], jobs=1, timeout=60, verbose=True)
    lines = capfd.readouterr().out.splitlines()
    (failed,) = (at for at, line in enumerate(lines) if "FAILED book/part/two.md, line 11" in line)
    (last,) = (at for at, line in enumerate(lines) if "one  cell 1" in line)
    assert failed < last


def test_a_page_whose_kernel_does_not_start_is_kept_with_a_sentence_in_each_cell(
    repository, monkeypatch
):
    monkeypatch.setattr("website.build.execute.COLLECT", "1 / 0")
    Store(repository / "_build" / ".jupyter_cache").keep(find_chapters(repository, [])[1])
    (failure,) = run(repository, pages=[repository / "book/one.md"])
    assert (failure.page, failure.line) == ("book/one.md", 1)
    assert "could not be run: RuntimeError: 1 / 0: division by zero" in str(failure)
    assert all("was not run" in texts(cell)[0] for cell in outputs_of(repository, "one"))
    kept = Store(repository / "_build" / ".jupyter_cache").state
    assert "part/two" in kept  # who runs one page keeps what is known of the others


def test_a_missing_page_of_the_contents_is_named(repository):
    os.remove(repository / "book/one.md")
    with pytest.raises(SystemExit, match=r"one\.md"):
        run(repository)
