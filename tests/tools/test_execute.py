"""Executing the chapters: what is run again, what is refused, what reaches the pages."""

import ast
import os
import re
import textwrap
from pathlib import Path

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode

from tools import chapters
from tools.chapters import Store, find_chapters
from tools.dependencies import Sources, chapter_digest, imports
from tools.execute import execute, main, merge_streams
from tools.failures import ELSEWHERE, failures_in
from tools.settings import toc_files

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


@pytest.fixture
def repository(tmp_path):
    """A small repository: two chapters, a plain page, a package with records."""
    write(tmp_path / "_config.yml", "execute: {timeout: 60}\n")
    write(
        tmp_path / "_toc.yml",
        "format: jb-book\nroot: index\nparts:\n- chapters:\n  - file: one\n  - file: part/two\n",
    )
    write(tmp_path / "requirements.txt", "torch==1\n")
    package = tmp_path / "src" / "toybook"
    write(package / "__init__.py", "")
    write(package / "maths.py", "from toybook import deep\n\ndef double(x):\n    return 2 * x\n")
    write(package / "deep.py", "from toybook import drawing\n")
    write(package / "other.py", "VALUE = 3\n")
    write(package / "drawing" / "__init__.py", '"""Draws."""\n')
    write(package / "drawing" / "js" / "drawing.js", "draw()")
    write(package / "recorded" / "digits.json", "{}")
    write(package / "recorded" / "digits-small.safetensors", "weights")
    write(package / "recorded" / "pairs.json", "{}")
    write(tmp_path / "book" / "index.md", "# A page without code\n")
    write(
        tmp_path / "book" / "one.md",
        page("One", "from toybook.maths import double", "print(double(21))"),
    )
    write(
        tmp_path / "book" / "part" / "two.md",
        page("Two", "from toybook.other import VALUE\nload_record = str\nload_record('digits')"),
    )
    return tmp_path


def digests(root):
    return {chapter.name: chapter.digest for chapter in find_chapters(root, [])}


def changed_by(root, path, text):
    """The chapters whose digest changes when `path` gets `text`."""
    before = digests(root)
    write(root / path, text)
    after = digests(root)
    return {name for name in after if before.get(name) != after[name]}


def test_chapters_are_the_pages_with_code_in_the_order_of_the_contents(repository):
    assert list(digests(repository)) == ["one", "part/two"]


def test_the_contents_may_nest_parts_chapters_and_sections():
    part = {"caption": "A", "chapters": [{"file": "a", "sections": [{"file": "b/c.md"}]}]}
    toc = {"root": "index", "parts": [part, {"chapters": [{"file": "d"}]}]}
    assert toc_files(toc) == ["index", "a", "b/c", "d"]


CHANGES = [
    ("prose", "book/one.md", None, set()),
    ("a page without code", "book/index.md", "# Other words\n", set()),
    ("an imported module", "src/toybook/maths.py", "def double(x):\n    return 3 * x\n", {"one"}),
    (
        "a module that a module imports",
        "src/toybook/deep.py",
        "from toybook import drawing\nprint(1)\n",
        {"one"},
    ),
    ("a docstring", "src/toybook/drawing/__init__.py", '"""Paints."""  # well\n', set()),
    ("a script beside a module", "src/toybook/drawing/js/drawing.js", "erase()", {"one"}),
    ("the package's own init", "src/toybook/__init__.py", "print(1)\n", {"one", "part/two"}),
    ("a module that nobody imports", "src/toybook/new.py", "X = 1\n", set()),
    ("a record that is loaded", "src/toybook/recorded/digits.json", "[1]", {"part/two"}),
    ("a blank in a record", "src/toybook/recorded/digits.json", "{ }\n", set()),
    ("its weights", "src/toybook/recorded/digits-small.safetensors", "new", {"part/two"}),
    ("a record that is not loaded", "src/toybook/recorded/pairs.json", "[1]", set()),
    ("a file beside all modules", "src/toybook/font.bin", "x", {"one", "part/two"}),
    ("the lock", "requirements.txt", "torch==2\n", {"one", "part/two"}),
]


@pytest.mark.parametrize(
    ("path", "text", "stale"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_only_what_a_chapter_depends_on_makes_it_stale(repository, path, text, stale):
    if text is None:
        text = (repository / path).read_text("utf8").replace("Some prose", "Better prose")
    assert changed_by(repository, path, text) == stale


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("double(21)", "double(22)"),
        lambda text: text.replace("ython3\nprint", "ython3\n:tags: [hide-input]\nprint"),
    ],
    ids=["code", "tags"],
)
def test_a_cell_whose_code_or_tags_change_makes_its_chapter_stale(repository, edit):
    text = edit((repository / "book/one.md").read_text("utf8"))
    assert changed_by(repository, "book/one.md", text) == {"one"}


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
]


@pytest.mark.parametrize(("old", "new", "counts"), DEFINITIONS)
def test_of_a_module_counts_what_is_reached_by_name(repository, old, new, counts):
    write(repository / "src/toybook/deep.py", "scale = 2\nother = 3\n")
    write(repository / "src/toybook/maths.py", MODULE)
    write(repository / "book/one.md", page("One", "from toybook.maths import Used\nUsed().run()"))
    assert MODULE.count(old) == 1
    stale = changed_by(repository, "src/toybook/maths.py", MODULE.replace(old, new))
    assert stale == ({"one"} if counts else set())


def test_what_an_imported_name_stands_for_counts_under_its_other_name(repository):
    write(repository / "src/toybook/deep.py", "scale = 2\nother = 3\n")
    write(repository / "src/toybook/maths.py", MODULE)
    write(repository / "book/one.md", page("One", "from toybook.maths import Used\nUsed().run()"))
    assert changed_by(repository, "src/toybook/deep.py", "scale = 2\nother = 4\n") == set()
    assert changed_by(repository, "src/toybook/deep.py", "scale = 3\nother = 4\n") == {"one"}


def test_another_python_makes_every_chapter_stale(repository, monkeypatch):
    before = digests(repository)
    monkeypatch.setattr("tools.dependencies.platform.python_version", lambda: "3.99.0")
    after = digests(repository)
    assert all(before[name] != after[name] for name in before)


def test_a_record_may_be_loaded_by_a_module_that_a_page_imports(repository):
    loads = "from toybook.records import load_record\n\ndef rows():\n    load_record('pairs')\n"
    write(repository / "src" / "toybook" / "rows.py", loads)
    write(repository / "book" / "one.md", page("One", "from toybook.rows import rows", "rows()"))
    assert changed_by(repository, "src/toybook/recorded/pairs.json", "[2]") == {"one"}


def test_a_record_whose_name_is_computed_may_be_any_record(repository):
    text = page("One", "from toybook import other\nload_record = str\nload_record('di' + 'gits')")
    write(repository / "book/one.md", text)
    assert changed_by(repository, "src/toybook/recorded/pairs.json", "[2]") == {"one"}


def test_a_file_beside_the_chapter_that_a_cell_opens_counts(repository):
    write(repository / "book/numbers.csv", "1,2")
    write(repository / "book/one.md", page("One", "open('numbers.csv').read()"))
    assert changed_by(repository, "book/numbers.csv", "3,4") == {"one"}


def test_magics_and_relative_imports_are_understood(repository):
    notebook = read_myst_markdown_notebook(
        page("M", "%matplotlib inline\n!ls\nimport toybook.maths")
    )
    sources = Sources(repository)
    assert len(chapter_digest(notebook, repository / "book", sources)) == 64
    tree = ast.parse("from . import deep\nfrom ..up import x")
    assert {"toybook.part.deep", "toybook.up"} <= imports(tree, ["toybook", "part"])


def test_neighbouring_pieces_of_a_stream_become_one():
    def stream(name, text):
        return NotebookNode(output_type="stream", name=name, text=text)

    figure = NotebookNode(output_type="display_data", data={})
    outputs = [stream("stdout", "a"), stream("stdout", "b"), figure, stream("stdout", "c")]
    merged = merge_streams(outputs)
    assert [output.get("text") for output in merged] == ["ab", None, "c"]


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


def test_a_page_of_which_nothing_changed_is_not_read_again(repository, monkeypatch):
    assert run(repository) == []
    read = []
    real = chapters.read_myst_markdown_notebook

    def noted(text, **options):
        read.append(options["path"].stem)
        return real(text, **options)

    monkeypatch.setattr(chapters, "read_myst_markdown_notebook", noted)
    assert run(repository) == []
    assert read == []
    write(repository / "book/one.md", (repository / "book/one.md").read_text() + "More words.\n")
    assert run(repository) == []
    assert read == ["one"]
    write(repository / "src/toybook/deep.py", "X = 2\n")
    assert run(repository) == []
    assert read == ["one", "one", "two"]


def test_where_a_kernel_cannot_listen_on_a_file_it_listens_on_a_port(repository, monkeypatch):
    monkeypatch.setattr("tools.execute.IPC", False)
    assert run(repository, pages=[repository / "book/one.md"]) == []
    assert outputs_of(repository, "one")[1][0].text == "42\n"


def test_two_that_run_side_by_side_keep_what_the_other_has_run(repository):
    one, two = find_chapters(repository, [])
    book, preview = (Store(repository / "_build" / ".jupyter_cache") for _ in range(2))
    book.keep(one)
    preview.keep(two)
    book.forget(one)
    assert Store(repository / "_build" / ".jupyter_cache").state.keys() == {two.name}


def test_a_page_whose_cells_read_another_page_is_read_each_time(repository):
    write(repository / "book/words.md", "# Words\n")
    write(repository / "book/one.md", page("One", "print(open('words.md').read())"))
    assert run(repository) == []
    write(repository / "book/words.md", "# Other words\n")
    store = Store(repository / "_build" / ".jupyter_cache")
    fresh = {one.name: store.is_fresh(one) for one in find_chapters(repository, [], store.inputs)}
    assert fresh == {"one": False, "part/two": True}


def test_a_chapter_is_stale_whose_module_changed_while_its_cells_ran(repository):
    edit = "open('../src/toybook/maths.py', 'a').write('print(3)\\n')"
    write(repository / "book/one.md", page("One", "import toybook.maths", edit))
    assert run(repository) == []
    store = Store(repository / "_build" / ".jupyter_cache")
    fresh = {one.name: store.is_fresh(one) for one in find_chapters(repository, [], store.inputs)}
    assert not fresh["one"]


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

    prose = (repository / "book/one.md").read_text("utf8").replace("Some prose", "Other prose")
    write(repository / "book/one.md", prose)
    assert run(repository) == []
    assert "nothing to execute" in capfd.readouterr().out


def test_who_asks_for_more_gets_a_line_for_each_cell(repository, capfd):
    write(repository / "book/one.md", page("One", "1 + 1", "1 + 2"))
    execute(repository, repository / "_build", [repository / "book/one.md"], 1, 20, verbose=True)
    assert "one  cell 2/2" in capfd.readouterr().out


SLOW = "import time\ntime.sleep(60)"
# name, the cell that fails, the line in it, what is told, what a reader is told, do cells follow?
FAILING = [
    (
        "check",
        "x = 58.3\nassert x > 60\nprint(x)",
        2,
        "did not hold: x > 60; found 58.3 > 60",
        "This did not hold on this machine: x > 60; found 58.3 > 60.",
        True,
    ),
    (
        "exception",
        "x = 1\nraise ValueError('the reason')",
        2,
        "ended with ValueError: the reason",
        "On this machine this cell ended with ValueError: the reason.",
        True,
    ),
    (
        "bare-assertion",
        "def f(x):\n    assert x\nf(0)",
        3,
        "ended with AssertionError at assert x",
        "On this machine this cell ended with AssertionError at assert x.",
        True,
    ),
    (
        "path",
        "open('/no/such/file')",
        1,
        "ended with FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
        "On this machine this cell ended with FileNotFoundError: [Errno 2] No such file or "
        "directory: 'file'.",
        True,
    ),
    (
        "stderr",
        "import warnings\nwarnings.warn('do not do this')",
        1,
        "wrote to stderr, which would appear on the page: UserWarning: do not do this",
        "On this machine this cell wrote what no page should show: UserWarning: do not do this.",
        True,
    ),
    (
        "time-out",
        SLOW,
        1,
        "took longer than 3 s; move long runs to a recorded experiment",
        "On this machine this cell took longer than 3 seconds.",
        False,
    ),
    (
        "killed",
        "import os\nos._exit(9)",
        1,
        "the Python process died (out of memory, or a crash in compiled code)",
        "On this machine the Python process died in this cell.",
        False,
    ),
]
LINE = 17  # of the page, with which the second cell begins


def texts(outputs):
    return [output.get("text") or output.data["text/plain"] for output in outputs]


@pytest.mark.parametrize("case", FAILING, ids=[row[0] for row in FAILING])
def test_what_fails_in_a_cell_is_told_each_time_and_costs_only_the_cell(repository, capfd, case):
    name, code, line, told, sentence, goes_on = case
    write(repository / "_toc.yml", f"root: index\nchapters:\n- file: {name}\n- file: good\n")
    write(repository / "book/good.md", page("Good", "print('fine')"))
    write(repository / f"book/{name}.md", page(name, "print('before')", code, "print('after')"))
    for attempt in range(2):
        (failure,) = run(repository, timeout=3)
        assert str(failure) == f"book/{name}.md, line {LINE + line - 1}: {told}", attempt
        printed = capfd.readouterr().out
        assert f"FAILED {failure}" in printed
        assert "1 of 2 chapters" in printed if attempt else "2 of 2 chapters" in printed
        before, at, after = map(texts, outputs_of(repository, name))
        assert before == ["before\n"]
        assert sentence in at
        assert not any("Traceback" in text for text in at)
        not_run = f"This cell was not run on this machine: the cell in line {LINE} ended the run."
        assert after == (["after\n"] if goes_on else [not_run])
    assert outputs_of(repository, "good")[0][0].text == "fine\n"
    state = Store(repository / "_build" / ".jupyter_cache").state
    assert state[name]["failed"] == [str(failure)]
    assert "failed" not in state["good"]

    write(repository / f"book/{name}.md", page(name, "print('before')", "print('mended')"))
    assert run(repository, pages=[repository / f"book/{name}.md"]) == []
    assert outputs_of(repository, name)[1][0].text == "mended\n"


def test_a_failure_is_printed_when_it_happens(repository, capfd):
    done = repository / "done.txt"
    wait = "import time\nfrom pathlib import Path\ntime.sleep(2)\nPath({!r}).touch()"
    write(repository / "book/one.md", page("One", "assert 1 > 2"))
    write(repository / "book/part/two.md", page("Two", "print(2)", wait.format(str(done))))
    execute(repository, repository / "_build", [], jobs=1, timeout=60, verbose=True)
    lines = capfd.readouterr().out.splitlines()
    (failed,) = (at for at, line in enumerate(lines) if "FAILED book/one.md, line 11" in line)
    (last,) = (at for at, line in enumerate(lines) if "part/two  cell 2/2" in line)
    assert failed < last
    assert done.exists()


def test_what_stands_in_the_cell_before_it_failed_is_kept(repository):
    write(repository / "book/one.md", page("One", "print('half')\nassert 1 > 2\nint('x')"))
    told = [str(one).partition(": ")[2] for one in run(repository)]
    assert told == [
        "ended with ValueError: invalid literal for int() with base 10: 'x'",
        "did not hold: 1 > 2; found 1 > 2",
    ]
    (outputs,) = outputs_of(repository, "one")
    assert outputs[0].text == "half\n"
    assert len(failures_in(outputs)) == 2


def test_a_check_that_fails_in_a_loop_is_told_three_times_and_counted(repository):
    write(repository / "book/one.md", page("One", "for k in range(9):\n    assert k > 9"))
    told = [str(one).partition("; found ")[2] for one in run(repository)]
    assert told == ["0 > 9", "1 > 9", "2 > 9, and 6 times more"]
    assert texts(outputs_of(repository, "one")[0])[2].endswith("found 2 > 9, and 6 times more.")


def test_what_fails_in_a_cell_that_is_not_shown_is_told_in_the_one_before_it(repository):
    hidden = "---\ntags: [remove-cell]\n---\nassert 1 > 2"
    write(repository / "book/one.md", page("One", "x = 1", hidden, "x = 3"))
    (failure,) = run(repository)
    assert failure.line == 20
    first, second, third = outputs_of(repository, "one")
    assert (second, third) == ([], [])
    assert first[0].metadata == {ELSEWHERE: True}


def test_a_page_whose_kernel_does_not_start_is_kept_with_a_sentence_in_each_cell(
    repository, monkeypatch
):
    monkeypatch.setattr("tools.execute.COLLECT", "1 / 0")
    failures = run(repository)
    assert [(one.page, one.line) for one in failures] == [
        ("book/one.md", 1),
        ("book/part/two.md", 1),
    ]
    assert "could not be run: RuntimeError: 1 / 0: division by zero" in str(failures[0])
    assert all("was not run" in texts(cell)[0] for cell in outputs_of(repository, "one"))


def test_the_command_ends_with_what_failed_where_and_on_which_processor(
    repository, capfd, monkeypatch
):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    write(repository / "book/one.md", page("One", "assert 1 > 2"))
    assert main(["--root", str(repository)]) == 1
    head, failure, processor = capfd.readouterr().err.splitlines()[-3:]
    assert head == "1 failure on this machine:"
    assert failure == "  book/one.md, line 11: did not hold: 1 > 2; found 1 > 2"
    assert re.fullmatch(
        r"Processor: .+, PyTorch uses \w+ \(ATEN_CPU_CAPABILITY=default\)", processor
    )


def test_a_missing_page_of_the_contents_is_named(repository):
    os.remove(repository / "book/one.md")
    with pytest.raises(SystemExit, match=r"one\.md"):
        run(repository)


def test_what_no_chapter_uses_leaves_the_cache(repository):
    write(repository / "_toc.yml", "root: index\nchapters:\n- file: one\n")
    write(repository / "book/one.md", page("One", "print(1)"))
    assert run(repository) == []
    write(repository / "book/one.md", page("One", "print(2)"))
    assert run(repository) == []
    kept = Path(repository / "_build/.jupyter_cache/executed").glob("*/base.ipynb")
    assert len(list(kept)) == 1
