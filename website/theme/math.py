"""Formulas are set while the book is built: KaTeX runs here, in QuickJS, and no page runs it.

A reader's browser gets what KaTeX makes of a formula: boxes for the eye, MathML for a screen
reader. It needs no script for it, only KaTeX's style sheet and fonts (``_static/vendor/katex``), on
pages that hold a formula. KaTeX is strict: what it cannot set, or what LaTeX would set otherwise,
is a warning with page and line, so the build fails. What was set once is kept between builds
(`kept`).
"""

import re
from functools import cache
from pathlib import Path

import quickjs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from website.theme.kept import Kept
from website.theme.page import Page, each_page, warn

KATEX = Path(__file__).resolve().parent / "vendor" / "katex" / "katex.min.js"
STYLE = "vendor/katex/katex.min.css"
# QuickJS hands over a string that was joined anew, but none that is still in pieces.
SET = """(tex, display) =>
  [katex.renderToString(tex, {displayMode: display, strict: "error"})].join("")"""
# The TeX again, for nobody here, and an attribute without a value, of which Firefox complains.
LEFT_OUT = re.compile(r'<annotation .*?</annotation>| columnspacing=""', re.DOTALL)

formulas = Kept("formulas.json", [KATEX, Path(__file__)])


@cache
def engine() -> quickjs.Object:
    """KaTeX's function of a formula; loading it takes 25 ms."""
    context = quickjs.Context()
    context.set_max_stack_size(4 * 1024 * 1024)
    context.eval(KATEX.read_text("utf8"))
    return context.eval(SET)


def typeset(tex: str, display: bool) -> str:
    """A formula as HTML with MathML.

    Args:
        tex: what stands between the dollar signs.
        display: on lines of its own, not within the text.

    Raises:
        ValueError: KaTeX cannot set it.
    """
    try:
        return formulas.of((tex, display), lambda: LEFT_OUT.sub("", engine()(tex, display)))
    except quickjs.JSException as error:
        raise ValueError(str(error).splitlines()[0]) from None


def aligned(tex: str) -> str:
    """Lines that end in ``\\\\`` without an environment of their own are set below each other."""
    alone = r"\\" in tex and not tex.lstrip().startswith(r"\begin")
    return rf"\begin{{split}}{tex}\end{{split}}" if alone else tex


def formula(self: HTML5Translator, node: nodes.Element, tex: str, display: bool) -> str:
    try:
        return typeset(tex.strip(), display)
    except ValueError as error:
        warn(f"{error} (the formula: {tex})", place(node))
        return self.encode(tex)


def place(node: nodes.Element) -> nodes.Element:
    """The nearest element around this one, or itself, whose line is known."""
    above: nodes.Element | None = node
    while above is not None and above.line is None:
        above = above.parent
    return above or node


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(formula(self, node, node.astext(), display=False) + "</span>")
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    self.body.append(formula(self, node, aligned(node.astext()), display=True))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def add_style(page: Page) -> None:
    if 'class="katex' in page.context.get("body", ""):
        page.app.add_css_file(STYLE)


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    formulas.connect(app)
    each_page(app, add_style)
