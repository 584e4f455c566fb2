"""Every page is light: elements, scripts and files that no page uses are left out.

- Letters of code that have the colour of their block anyway (names, brackets, spaces) get no
  element of their own: half of a chapter's elements were such.
- The signatures of the package's page keep the elements that a style asks for, an eighth of them.
- The typefaces that a page begins with are fetched first, so that nothing moves when they come.
- A script that works on one kind of thing is left out where a page holds none, and the scripts of
  the theme are left out everywhere: ``_static/frame.js``, ``place/`` and ``book.js`` do what is
  needed of them. The others wait until the page is read.
- After the last page, files that no page loads go from the site: icon scripts, source maps,
  translations.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygments import highlight
from pygments.filters import ErrorToken
from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Token, Whitespace
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.highlighting import PygmentsBridge

from website.theme.kept import Kept
from website.theme.page import Page, each_page

if TYPE_CHECKING:
    from sphinx.builders.html._assets import _JavaScript

FONTS = ["source-sans-3-latin", "source-serif-4-latin"]
CODE_FONTS = ["source-code-pro-latin"]
FORMULA_FONTS = ["KaTeX_Main-Regular", "KaTeX_Math-Italic"]
WORKS_ON = {"design-tabs.js": "sd-tab-", "clipboard.min.js": "<pre", "copybutton.js": "<pre"}
OF_THE_THEME = {"doctools.js", "sphinx-book-theme.js"}
WAITING = {"documentation_options.js", *WORKS_ON, "frame.js", "book.js", "report.js"}
NEVER_LOADED = ["scripts", "doctools.js", "**/*.map", "locales", "images", "vendor/fontawesome"]
SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
SPAN = re.compile(r"(</?span[^>]*>)")
LONG = 24  # letters of code without a space that a phone shows on one line
LETTER = re.compile(r"<[^>]*>|&\w+;|&#\d+;|.", re.DOTALL)  # or what stands for one, or a tag

coloured = Kept("code.json", [Path(__file__)])


class PlainFormatter(HtmlFormatter):
    """Pygments' HTML, in which plain words are plain text."""

    def _get_css_classes(self, ttype: Token) -> str:
        return "" if ttype in {Name, Punctuation, Whitespace} else super()._get_css_classes(ttype)


class PlainBridge(PygmentsBridge):
    """What Sphinx colours code with; a block that was coloured once is kept between builds."""

    html_formatter = PlainFormatter

    def highlight_block(
        self,
        source: str,
        lang: str,
        opts: dict | None = None,
        force: bool = False,
        location: Any = None,
        **kwargs: Any,
    ) -> str:
        lexer = self.get_lexer(source, lang, opts, force, location)
        formatter = self.get_formatter(**kwargs)
        about = (source, lang, opts, force, kwargs)
        try:
            return coloured.of(about, lambda: breakable(highlight(source, lexer, formatter)))
        except ErrorToken:  # Sphinx warns, and does what it can
            return super().highlight_block(source, lang, opts, force, location, **kwargs)


def breakable(code: str) -> str:
    """Coloured code in which long words may go on in the next line: behind a bracket that opens, a
    comma or an equals sign, and before the dot of a method. Names stay whole."""
    made: list[str] = []
    word: list[str] = []
    places: list[int] = []  # in the word
    letters, before = 0, ""
    for one in [*LETTER.findall(code), " "]:
        tag = one.startswith("<")
        opened = before in {"(", "[", "{", ",", "="} and one not in {")", "]", "}", "="}
        if not tag and (opened or (one == "." and (before.isidentifier() or before in {")", "]"}))):
            places.append(len(word))
        if tag or not one.isspace():
            word.append(one)
            letters += not tag
            before = before if tag else one
            continue
        if letters > LONG:
            for at in reversed(places):
                word.insert(at, "<wbr>")
        made += [*word, one]
        word, places, letters, before = [], [], 0, ""
    return "".join(made[:-1])


def colour(app: Sphinx) -> None:
    if isinstance(app.builder, StandaloneHTMLBuilder):
        bridge = PlainBridge("html")
        bridge.formatter_args = app.builder.highlighter.formatter_args
        app.builder.highlighter = bridge


def plain_signatures(page: Page) -> None:
    if "body" in page.context:
        page.context["body"] = SIGNATURE.sub(plain_signature, page.context["body"])


def plain_signature(signature: re.Match[str]) -> str:
    """Without the spans that only say what kind of word they hold."""
    kept: list[bool] = []
    made = []
    for part in SPAN.split(signature[0]):
        if part.startswith("<span"):
            kept.append('class="sig-' in part)
        if not SPAN.fullmatch(part) or kept[-1]:
            made.append(part)
        if part == "</span>":
            kept.pop()
    return "".join(made)


def add_fonts(page: Page) -> None:
    """Links that let a browser fetch the fonts before it has read the style sheets. They stand
    behind sheets and scripts: the first picture waits for those, not for a font."""
    context = page.context
    is_front = "front-start" in context.get("body", "")  # where all code is folded
    fonts = FONTS if is_front else FONTS + CODE_FONTS
    names = [f"vendor/fonts/{name}-wght-normal" for name in fonts]
    if 'class="katex' in context.get("body", ""):
        names += [f"vendor/katex/fonts/{name}" for name in FORMULA_FONTS]
    links = (
        f'<link rel="preload" href="{context["pathto"](f"_static/{name}.woff2", resource=True)}" '
        'as="font" type="font/woff2" fetchpriority="low" crossorigin>'
        for name in names
    )
    context["preloads"] = context.get("preloads", "") + "\n".join(links)


def drop_scripts(page: Page) -> None:
    body, files = page.context.get("body", ""), page.context["script_files"]
    files[:] = [file for file in files if is_needed(file, body)]
    for file in files:
        if name_of(file) in WAITING:
            file.attributes["defer"] = "defer"


def is_needed(file: _JavaScript, body: str) -> bool:
    name = name_of(file)
    if name in OF_THE_THEME or "DOCUMENTATION_OPTIONS.pagename" in file.attributes.get("body", ""):
        return False
    return WORKS_ON.get(name, "") in body


def name_of(file: _JavaScript) -> str:
    return Path(str(file.filename or "")).name


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """After the last page."""
    static = Path(app.outdir) / "_static"
    if exception or app.builder.format != "html":
        return
    for pattern in NEVER_LOADED:
        for path in [*static.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def setup(app: Sphinx) -> None:
    coloured.connect(app)
    app.connect("builder-inited", colour)
    each_page(app, add_fonts)
    each_page(app, drop_scripts, priority=900)
    each_page(app, plain_signatures)
    app.connect("build-finished", lighten)
