"""Every page is light: what no page uses is neither sent nor built into it.

- Letters of code that have the colour of their block anyway (names, brackets, spaces) get no
  element of their own: half of a chapter's elements were such.
- The typefaces that a page begins with are fetched first, so that nothing moves when they come.
- A script that works on one kind of thing is left out where a page holds none.
- After the last page, rules that no page can use go from all style sheets (tools/purge.py), and
  from the site go files that no page loads: icon scripts, source maps, translations, and
  Bootstrap's script, of which the theme needs no more than ``_static/menus.js`` does.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Token, Whitespace
from sphinx.highlighting import PygmentsBridge

from tools.purge import purged

FONTS = ["source-sans-3-latin", "source-serif-4-latin"]
CODE_FONTS = ["source-code-pro-latin"]
FORMULA_FONTS = ["KaTeX_Main-Regular", "KaTeX_Math-Italic"]
WORKS_ON = {"design-tabs.js": "sd-tab-", "clipboard.min.js": "<pre", "copybutton.js": "<pre"}
NEVER_LOADED = ["scripts/fontawesome.js*", "scripts/bootstrap.js*", "**/*.map", "locales", "images"]
NEVER_LOADED += ["vendor/fontawesome"]
CLASSES = re.compile(r"""class=(?:"([^"]*)"|'([^']*)')""")
SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
WORD = re.compile(r"[A-Za-z_][\w-]*")
BUILT = ("bs-",)  # names that Bootstrap's script puts together from parts


class PlainFormatter(HtmlFormatter):
    """Pygments' HTML, in which plain words are plain text."""

    def _get_css_classes(self, ttype: Token) -> str:
        return "" if ttype in {Name, Punctuation, Whitespace} else super()._get_css_classes(ttype)


def add_fonts(app, pagename, templatename, context, doctree) -> None:
    """Links that let a browser fetch the fonts before it has read the style sheets."""
    is_front = "front-start" in context.get("body", "")  # where all code is folded
    fonts = FONTS if is_front else FONTS + CODE_FONTS
    names = [f"vendor/fonts/{name}-wght-normal" for name in fonts]
    if 'class="katex' in context.get("body", ""):
        names += [f"vendor/katex/fonts/{name}" for name in FORMULA_FONTS]
    links = (
        f'<link rel="preload" href="{context["pathto"](f"_static/{name}.woff2", resource=True)}" '
        'as="font" type="font/woff2" crossorigin>'
        for name in names
    )
    context["metatags"] = context.get("metatags", "") + "\n".join(links)


def drop_scripts(app, pagename, templatename, context, doctree) -> None:
    body, files = context.get("body", ""), context["script_files"]
    files[:] = [file for file in files if is_needed(file, body)]


def is_needed(file, body: str) -> bool:
    name = Path(str(file.filename or "")).name
    return WORKS_ON.get(name, "") in body


def lighten(app, exception) -> None:
    """After the last page."""
    static = Path(app.outdir) / "_static"
    if exception or app.builder.format != "html":
        return
    for pattern in NEVER_LOADED:
        for path in [*static.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    words = classes(Path(app.outdir))
    for sheet in static.rglob("*.css"):
        lean = purged(sheet.read_text("utf8"), lambda name: name in words or name.startswith(BUILT))
        sheet.write_text(lean, "utf8")


def classes(site: Path) -> set[str]:
    """The classes of all elements, and each word of a script, which may become one."""
    pages = [page.read_text("utf8") for page in site.rglob("*.html")]
    scripts = [script for page in pages for script in SCRIPT.findall(page)]
    scripts += [file.read_text("utf8") for file in site.rglob("*.js")]
    named = {found for page in pages for one in CLASSES.findall(page) for found in "".join(one).split()}
    return named.union(*map(WORD.findall, scripts))


def setup(app):
    PygmentsBridge.html_formatter = PlainFormatter
    app.connect("html-page-context", add_fonts)
    app.connect("html-page-context", drop_scripts, priority=900)
    app.connect("build-finished", lighten, priority=900)  # after the theme has written its colours
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
