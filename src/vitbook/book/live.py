"""A live figure of the book's pages in the output of a notebook: the very scripts of the page."""

from __future__ import annotations

import html
import json
import re
import sys
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import vitbook.live

REM = re.compile(r"(?<![\w.])(\d*\.?\d+)rem\b")  # of the page; a reader's is of any size
KIT = ("output", "kit")  # the first scripts of every output; "live" is their style


def show_live(name: str, **figure: Any) -> None:
    """Show the live figure ``name``; arguments as for ``live_html``."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(f"Live figure: {figure['page']}")
        return
    from IPython.display import display

    words = f"Live figure: {figure['still']} {figure['page']}"
    display({"text/html": live_html(name, **figure), "text/plain": words}, raw=True)


def live_html(
    name: str,
    *,
    title: str,
    still: str,
    page: str,
    scripts: Sequence[str] = (),
    data: str = "",
    asks: str = "",
    sets: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """The live figure ``name`` as HTML that holds all that it needs: no network, nothing beside it.

    Where no script runs, it is ``still`` and a link to the page. Where one does, each such output
    has a shadow root with a kit of its own, and follows the theme of what it stands in.

    Args:
        name: The figure's; ``NAME.js`` is its script, ``NAME.css`` its style where it has one.
        title: What the figure is called, for readers who do not see it.
        still: What it shows, in words.
        page: The address of the figure on the book's page.
        scripts: Shared scripts that it needs.
        data: The data that it reads: NAME.py has ``data()``.
        asks: The id of the prediction that it asks for.
        sets: Words of a button -> what it sets, as the sentences of the page do.

    Raises:
        FileNotFoundError: This package has no such figure.
    """
    mark, needed = f"{name}-{uuid.uuid4().hex[:8]}", (*scripts, name)
    css = "".join(_style(one) for one in ("live", *needed, "output") if _file(f"{one}.css"))
    about = {"id": mark, "name": name, "title": title, "source": data, "asks": asks}
    given = json.dumps({**about, "sets": sets or {}, "css": css})
    parts = [*map(_script, (*KIT, *needed)), *([_data(data)] if data else [])]
    script = "\n".join([f"((vitbook) => {{\nvitbook.output = {given};", *parts, "})({});"])
    script = re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)
    # JupyterLab has no shortcuts in what is so marked: arrow keys belong to the figure
    return (
        f'<div data-live-output="{mark}" data-lm-suppress-shortcuts="true">{_still(still, page)}'
        f"</div><script>{script}</script>"
    )


def _still(words: str, page: str) -> str:
    paragraphs = "".join(f"<p>{html.escape(one)}</p>" for one in words.split("\n\n"))
    link = f'<a href="{html.escape(page, quote=True)}">The live figure on the book’s page</a>'
    return f"{paragraphs}<p>{link}</p>"


def _file(name: str) -> Path | None:
    files = (Path(folder) / name for folder in vitbook.live.__path__)
    return next((file for file in files if file.is_file()), None)


def _read(name: str) -> str:
    file = _file(name)
    if file is None:
        raise FileNotFoundError(f"the package has no vitbook/live/{name}")
    return file.read_text("utf8")


@cache
def _script(name: str) -> str:
    """A script without its first words, and without the blanks before its lines."""
    return "\n".join(
        line.lstrip() for line in _read(f"{name}.js").splitlines() if not line.startswith("//")
    )


@cache
def _style(name: str) -> str:
    """A style as a shadow root reads it: no ``html`` in it, sizes in pixels."""
    css = re.sub(r"/\*.*?\*/", "", _read(f"{name}.css"), flags=re.DOTALL)
    css = css.replace('html[data-theme="dark"]', '[data-theme="dark"]')
    css = REM.sub(lambda found: f"{16 * float(found[1]):g}px", css)
    return "\n".join(line.strip() for line in css.splitlines() if line.strip()) + "\n"


@cache
def _data(name: str) -> str:
    """What the figure reads, worked out here as for the page."""
    pack = import_module("vitbook.live.pack")
    return pack.script(name, import_module(f"vitbook.live.{name.replace('-', '_')}").data())
