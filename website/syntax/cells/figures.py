"""Figures become files: what a cell put into the page as data is written into ``_images``.

The file's name is a hash of its bytes, so a picture that several pages show is there once. It is
loaded when the reader comes near; one that no screen shows never is. A figure's axes alone stay
where they are shown, in a prediction. Pictures in the style of an
element (the layers of a film) become files where they are worth a request. A large PNG becomes WebP
without loss, a quarter smaller: while its page is read, so that it waits in the tree.
"""

import base64
import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

IMAGE = re.compile(r'<img (?=[^>]*src="data:image/)([^>]*)>')
DATA = re.compile(r"data:image/(png|jpeg|webp);base64,([A-Za-z0-9+/=]+)")
AXES = re.compile(r'<div class="figure-axes".*?</div>')
SMALL = 2_000  # characters; a layer with less stays in the page
LARGE = 20_000  # bytes; below that another format is not worth the seconds


def slim(app: Sphinx, doctree: nodes.document) -> None:
    """The large pictures of a page that was read, in fewer bytes."""

    def smaller(match: re.Match[str]) -> str:
        content = base64.b64decode(match[2])
        if match[1] != "png" or len(content) <= LARGE:
            return match[0]
        return f"data:image/webp;base64,{base64.b64encode(webp(content)).decode()}"

    for raw in with_figures(doctree):
        raw.children = [nodes.Text(DATA.sub(smaller, raw.astext()))]


def with_figures(doctree: nodes.document) -> Iterator[nodes.raw]:
    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html" and "<figure" in raw.rawsource + raw.astext():
            yield raw


def webp(png: bytes) -> bytes:
    opened = Image.open(io.BytesIO(png))
    picture = opened.convert("RGBA" if opened.has_transparency_data else "RGB")
    buffer = io.BytesIO()
    picture.save(buffer, format="webp", lossless=True, method=4)
    return buffer.getvalue()


def write_figures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """The pictures of one page as files, and their addresses in its tree."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_images"
    address = "../" * docname.count("/") + "_images/"

    def file(match: re.Match[str]) -> str:
        return address + write_picture(folder, match[1], base64.b64decode(match[2]))

    def image(match: re.Match[str]) -> str:
        return f'<img loading="lazy" decoding="async" {DATA.sub(file, match[1])}>'

    for raw in with_figures(doctree):
        html = raw.astext() if asked_for(raw) else AXES.sub("", raw.astext())
        html = IMAGE.sub(image, html)
        html = DATA.sub(lambda m: file(m) if len(m[0]) > SMALL else m[0], html)
        raw.children = [nodes.Text(html)]


def asked_for(node: nodes.Node) -> bool:
    """Does it stand behind a guess (``OneObject``, website/syntax/predict.py)?"""
    while node.parent is not None:
        node = node.parent
        if "ask-output" in node.get("classes", []):
            return True
    return False


def write_picture(folder: Path, kind: str, content: bytes) -> str:
    """Write a picture unless it is there already; its file name."""
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.{kind.replace('jpeg', 'jpg')}"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path.name


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", slim)
    app.connect("doctree-resolved", write_figures, priority=900)  # those of other directives too
