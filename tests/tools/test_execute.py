"""Executing the chapters: what is run again, what is refused, what reaches the pages."""

import ast
import os
import textwrap
from pathlib import Path

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode

from tools import chapters
from tools.chapters import Store, find_chapters
from tools.dependencies import Sources, chapter_digest, imports
from tools.execute import execute, merge_streams
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
        "from toybook import drawing\nX = 1\n",
        {"one"},
    ),
    ("a docstring", "src/toybook/drawing/__init__.py", '"""Paints."""  # well\n', set()),
    ("a script beside a module", "src/toybook/drawing/js/drawing.js", "erase()", {"one"}),
    ("the package's own init", "src/toybook/__init__.py", "X = 1\n", {"one", "part/two"}),
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


def test_a_page_whose_cells_read_another_page_is_read_each_time(repository):
    write(repository / "book/words.md", "# Words\n")
    write(repository / "book/one.md", page("One", "print(open('words.md').read())"))
    assert run(repository) == []
    write(repository / "book/words.md", "# Other words\n")
    store = Store(repository / "_build" / ".jupyter_cache")
    fresh = {one.name: store.is_fresh(one) for one in find_chapters(repository, [], store.inputs)}
    assert fresh == {"one": False, "part/two": True}


def test_a_chapter_is_stale_whose_module_changed_while_its_cells_ran(repository):
    edit = "open('../src/toybook/maths.py', 'a').write('Y = 3\\n')"
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


BROKEN = [
    ("exception", "x = 1\nraise ValueError('the reason')", ["ValueError", "the reason"]),
    ("stderr", "import warnings\nwarnings.warn('do not do this')", ["stderr", "do not do this"]),
    ("time-out", "import time\ntime.sleep(60)", ["longer than 3 s"]),
    ("crash", "import os\nos._exit(9)", ["process died"]),
]


def test_a_failing_cell_fails_every_time_with_its_source_and_reason(repository):
    contents = "root: index\nchapters:\n" + "".join(f"- file: {row[0]}\n" for row in BROKEN)
    write(repository / "_toc.yml", contents + "- file: good\n")
    write(repository / "book/good.md", page("Good", "print('fine')"))
    for name, code, _ in BROKEN:
        write(repository / f"book/{name}.md", page(name, "print('before')", code))
    for attempt in range(2):
        reports = run(repository, timeout=3)
        assert len(reports) == len(BROKEN), attempt
        for name, code, words in BROKEN:
            report = next(report for report in reports if f"FAILED {name}, cell 2/2" in report)
            assert code in report
            assert all(word in report for word in words)
            with pytest.raises(KeyError):
                outputs_of(repository, name)
    assert outputs_of(repository, "good")[0][0].text == "fine\n"

    name, code, _ = BROKEN[0]
    write(repository / f"book/{name}.md", page(name, "print('before')", "print('mended')"))
    assert run(repository, pages=[repository / f"book/{name}.md"]) == []
    assert outputs_of(repository, name)[1][0].text == "mended\n"


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
