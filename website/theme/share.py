"""What a shared link and a search engine show: description, preview image, sitemap.xml, 404.html.

- A page's description is ``description:`` of its front matter, else its first sentences.
- The preview image (``_static/preview.png``, 1200 x 630) is drawn while the book is built.
- Addresses are those of the published site, from the settings; nothing is loaded from there.
- The theme writes three viewports, and the title of the front page twice: one of each is left.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from website.pages.settings import Settings, read_settings
from website.theme.page import Page, each_page, warn
from website.theme.preview_image import draw

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "_static/preview.png"
LOGO = Path(__file__).with_name("static") / "logo-light.svg"
LONGEST = 200  # characters of a description
NO_SENTENCE = {"chapter-name", "goals"}  # of a paragraph that tells where, not what
VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
LOST = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Not found: {title}</title>
<style>
:root {{ color-scheme: light; --ink: #1b2330; --muted: #4d5768; --mark: #0b5394; --paper: #fff; }}
@media (prefers-color-scheme: dark) {{
:root {{ color-scheme: dark; --ink: #dfe4ec; --muted: #a9b3c2; --mark: #82b8f0; --paper: #121212; }}
}}
body {{ max-width: 36rem; margin: 16vh auto 0; padding: 0 1.5rem; color: var(--ink); }}
body {{ background: var(--paper); }}
body {{ font: 1.125rem/1.6 "Source Sans 3", "Helvetica Neue", Arial, sans-serif; }}
h1 {{ margin: 1.5rem 0 1rem; font: 600 2.1rem/1.2 "Source Serif 4", Georgia, serif; }}
p {{ color: var(--muted); }}
svg {{ width: 4rem; height: 4rem; }}
a {{ display: inline-block; margin: 0.5rem 0.75rem 0.5rem 0; padding: 0.65rem 1.25rem; }}
a {{ border: 2px solid var(--mark); border-radius: 0.5rem; color: var(--mark); }}
a {{ font-weight: 650; text-decoration: none; }}
a:first-of-type {{ background: var(--mark); color: var(--paper); }}
a:hover {{ text-decoration: underline; }}
a:focus-visible {{ outline: 3px solid var(--ink); outline-offset: 2px; }}
</style>
</head>
<body>
<main>
{logo}
<h1>This page is not here</h1>
<p>It may have moved with a new release of {title}. The front page leads to every chapter.</p>
<p><a href="{home}">To the front page</a><a href="{home}search.html">Search the book</a></p>
</main>
</body>
</html>
"""


def describe(doctree: nodes.document, metadata: dict) -> str:
    """The page in a sentence or two, from its front matter or its first paragraph."""
    if said := metadata.get("description"):
        return " ".join(str(said).split())
    for paragraph in doctree.findall(nodes.paragraph):
        told = NO_SENTENCE.isdisjoint(paragraph["classes"])
        if told and isinstance(paragraph.parent, nodes.section):
            return shortened(" ".join(plain(paragraph).split()))
    return ""


def plain(node: nodes.Node) -> str:
    """The words of a paragraph; a formula is written without its commands."""
    if isinstance(node, nodes.math):
        tex = re.sub(r"\\sqrt\s*", "√", node.astext().replace(r"\top", "ᵀ"))
        return re.sub(r"\\[a-zA-Z]+|\\.|[{}^_$]", "", tex)
    if isinstance(node, nodes.raw):
        return ""
    if isinstance(node, nodes.Text):
        return str(node)
    return "".join(map(plain, node.children))


def shortened(text: str) -> str:
    """Whole sentences up to the limit; a first sentence that is longer ends in a word."""
    kept = ""
    for sentence in re.split(r"(?<=[.?!]) ", text):
        if kept and len(kept) + len(sentence) >= LONGEST:
            break
        kept = f"{kept} {sentence}".strip()
    return kept if len(kept) <= LONGEST else kept[:LONGEST].rpartition(" ")[0] + " …"


def add_tags(page: Page) -> None:
    if page.doctree is None:
        return
    settings = read_settings(ROOT)
    title = re.sub(r"<[^>]*>", "", page.context.get("title") or settings.title)
    said = describe(page.doctree, page.app.env.metadata.get(page.name, {}))
    if not said:
        words = "the page has no sentence of its own, which search engines and shared links show"
        warn(words, page.name)
    front = page.name == page.app.config.root_doc
    told = {
        "og:type": "website" if front else "article",
        "og:site_name": settings.title,
        "og:title": html.unescape(title),
        "og:description": said,
        "og:url": settings.site_url + ("" if front else f"{page.name}.html"),
        "og:image": settings.site_url + IMAGE,
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": "The title of the book beside a drawing of a Vision Transformer",
    }
    tags = [f'<meta name="description" content="{html.escape(said)}">'] if said else []
    tags += [
        f'<meta property="{name}" content="{html.escape(value)}">'
        for name, value in told.items()
        if value
    ]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    kept = VIEWPORT.sub("", page.context.get("metatags", ""))
    page.context["metatags"] = kept + "\n".join(tags)


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """The preview image, the list of pages for search engines, and the page for a lost reader."""
    if exception is not None or app.builder.format != "html":
        return
    settings, out = read_settings(ROOT), Path(app.outdir)
    draw(out / IMAGE, settings.title)
    root = app.config.root_doc
    pages = sorted(app.env.found_docs, key=lambda name: (name != root, name))
    addresses = (settings.site_url + ("" if name == root else f"{name}.html") for name in pages)
    urls = "".join(f"<url><loc>{html.escape(address)}</loc></url>\n" for address in addresses)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    (out / "sitemap.xml").write_text(f'{head}<urlset xmlns="{space}">\n{urls}</urlset>\n', "utf-8")
    (out / "404.html").write_text(lost(settings), "utf-8")


def lost(settings: Settings) -> str:
    """A page that is served at addresses of any depth: what it needs stands in it."""
    logo = LOGO.read_text("utf-8").replace("<svg", '<svg aria-hidden="true"', 1)
    logo = logo.replace("#0b5394", "var(--mark)")
    home, title = html.escape(settings.site_url), html.escape(settings.title)
    return LOST.format(title=title, home=home, logo=logo)


def setup(app: Sphinx) -> None:
    each_page(app, add_tags, priority=800)
    app.connect("build-finished", write_files)
