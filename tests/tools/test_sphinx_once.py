"""What Sphinx asks again and again is answered once, and the answers are the same."""

import pybtex.plugin
import pytest
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import highlighting
from sphinx.highlighting import PygmentsBridge

from tools.sphinx_once import worked_out_once

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
