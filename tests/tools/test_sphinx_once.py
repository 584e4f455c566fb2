"""What Sphinx asks again and again is answered once, and the answers are the same."""

import pybtex.plugin
import pytest
from docutils import nodes
from pybtex.database import parse_string
from pybtex.plugin import find_plugin
from pybtex.style.formatting import BaseStyle
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import highlighting
from sphinx.highlighting import PygmentsBridge

from tools.sphinx_once import walk, worked_out_once

CODE = "x = [1, 'two']  # three\n"


def coloured(file, *blocks):
    """The blocks as HTML, and how many of them Pygments was asked for."""
    asked = []
    real = highlighting.highlight

    def counted(code, lexer, formatter):
        asked.append(code)
        return real(code, lexer, formatter)

    highlighting.highlight = counted
    try:
        with worked_out_once(file):
            bridge = PygmentsBridge("html", "sphinx")
            found = [
                bridge.highlight_block(code, lang, **settings) for code, lang, settings in blocks
            ]
    finally:
        highlighting.highlight = real
    return found, len(asked)


def test_code_is_coloured_once_for_all_builds(tmp_path):
    bridge, file = PygmentsBridge("html", "sphinx"), tmp_path / "colours.json"
    plain = bridge.highlight_block(CODE, "python")
    assert coloured(file, (CODE, "python", {}), (CODE, "python", {})) == ([plain, plain], 1)
    assert coloured(file, (CODE, "python", {})) == ([plain], 0)


@pytest.mark.parametrize(
    "other",
    [
        (CODE + "y", "python", {}),
        (CODE, "javascript", {"force": True}),
        (CODE, "python", {"linenos": "table"}),
        (CODE, "python", {"hl_lines": [1]}),
    ],
    ids=["code", "language", "numbers", "lines"],
)
def test_all_that_colours_depend_on_counts(tmp_path, other):
    file = tmp_path / "colours.json"
    [plain], _ = coloured(file, (CODE, "python", {}))
    [found], asked = coloured(file, other)
    assert asked == 1
    assert found == PygmentsBridge("html", "sphinx").highlight_block(other[0], other[1], **other[2])
    assert found != plain


def test_a_style_of_another_name_counts(tmp_path):
    file = tmp_path / "colours.json"
    with worked_out_once(file):
        for style in ("default", "monokai"):
            highlighting.highlight(CODE, PythonLexer(), HtmlFormatter(style=style, noclasses=True))
    text = file.read_text()
    assert "#F8F8F2" in text.upper()
    assert text.count("highlight") == 2


def test_code_that_is_not_understood_is_complained_of_each_time(tmp_path):
    broken = ("x = 1 ? 2\n", "python", {})
    assert coloured(tmp_path / "colours.json", broken)[1] == 2  # strictly, then leniently
    assert coloured(tmp_path / "colours.json", broken)[1] == 1  # strictly again, and it fails again


def test_a_file_that_was_half_written_is_none(tmp_path):
    (tmp_path / "colours.json").write_text('{"a": ')
    assert coloured(tmp_path / "colours.json", (CODE, "python", {}))[1] == 1


def test_the_other_answer_is_the_same_and_all_is_as_before_afterwards(tmp_path):
    names = (pybtex.plugin, "entry_points"), (highlighting, "highlight")
    before = [getattr(place, name) for place, name in names]
    with worked_out_once(tmp_path / "colours.json"):
        plain = [pybtex.plugin.find_plugin("pybtex.backends", "plaintext") for _ in "ab"]
    assert plain[0] is plain[1] is pybtex.plugin.find_plugin("pybtex.backends", "plaintext")
    assert [getattr(place, name) for place, name in names] == before


@pytest.mark.parametrize("change", ["nothing", "replace", "remove", "insert", "empty"])
def test_a_tree_is_walked_as_docutils_walks_it(change):
    def tree(depth=4, at=""):
        name = f"{at}{depth}"
        parts = [tree(depth - 1, name + str(i)) for i in range(3)] if depth else [nodes.Text(name)]
        return (nodes.section, nodes.paragraph)[depth % 2](name, *parts, ids=[name])

    def visited(walked, whole):
        seen = []
        for node in walked:
            seen.append(node["ids"][0])
            if node["ids"][0].endswith("1") and node.parent is not None and len(seen) % 3 == 0:
                if change == "replace":
                    node.replace_self(nodes.paragraph("", *node.children, ids=["new"]))
                elif change == "remove":
                    node.parent.remove(node)
                elif change == "insert":
                    node.parent.insert(0, nodes.paragraph("", "x", ids=["before"]))
                elif change == "empty":
                    node.children = []
        return seen, whole.pformat()

    one, other = tree(), tree()
    found = visited(one._fast_findall(nodes.paragraph), one)
    assert len(found[0]) > 10
    assert visited(walk(other, nodes.paragraph), other) == found


BIB = "@book{{a, title = {{{title}}}, author = {{Ann Ash}}, year = {{2020}}, publisher = {{X}}}}"


def formatted(file, title="On {Patches}", style="alpha"):
    """The entry as HTML, twice with different labels, and how often pybtex was asked."""
    asked = []
    real = BaseStyle.format_entry

    def counted(*arguments):
        asked.append(arguments)
        return real(*arguments)

    BaseStyle.format_entry = counted
    try:
        with worked_out_once(file):
            made = find_plugin("pybtex.style.formatting", style)()
            (entry,) = parse_string(BIB.format(title=title), "bibtex").entries.values()
            found = [made.format_entry(label, entry) for label in ("1", "2")]
    finally:
        BaseStyle.format_entry = real
    return [(one.key, one.label, one.text.render_as("html")) for one in found], len(asked)


def test_an_entry_of_the_literature_is_set_once_for_all_builds(tmp_path):
    file = tmp_path / "colours.json"
    (entry,) = parse_string(BIB.format(title="On {Patches}"), "bibtex").entries.values()
    plain = find_plugin("pybtex.style.formatting", "alpha")().format_entry("1", entry)
    found, asked = formatted(file)
    assert found == [("a", label, plain.text.render_as("html")) for label in ("1", "2")]
    assert asked == 1
    assert formatted(file) == (found, 0)


@pytest.mark.parametrize("other", [{"title": "On Tokens"}, {"style": "plain"}])
def test_all_that_an_entry_depends_on_counts(tmp_path, other):
    formatted(tmp_path / "colours.json")
    assert formatted(tmp_path / "colours.json", **other)[1] == 1


def test_entries_that_were_half_written_are_none(tmp_path):
    (tmp_path / "colours.entries").write_bytes(b"\x80\x04\x95")
    assert formatted(tmp_path / "colours.json")[1] == 1
