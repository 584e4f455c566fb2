"""Live figures: the directive ``live`` and the role ``live``, which sets a figure from a sentence.

    ```{live} cut
    :title: Cut the arrow
    :scripts: vit
    :data: cut
    Cut the thickest arrow. The answer hardly moves, although the map promised everything.
    +++
    Without it the model still says "different".
    ```

Above the line ``+++`` stands what to try and what one should see; below it the still, for readers
without JavaScript, on paper and in notebooks. ``scripts`` are shared ones that the figure needs
besides its own, ``data`` is a module of website/live that writes what it reads. A sentence sets the
figure of its page by ``{live}`the arrow in head 3 <cut layer=1 head=3>` ``; ``train``, which reads
its state from its address, from any page.

A figure that opens its page has ``:still: above``: it lies over text and margin and says itself
what to do, and what the cell above shows belongs to the still. A notebook has that cell instead.
With ``:asks:`` and an id it is a prediction of the page, too: the guess is kept by that id.

In a notebook a figure runs where the package has its files (``force-include`` in pyproject.toml):
website/notebooks/notebook.py writes the cell, ``vitbook.book.live`` is what that calls.

On the page a figure is its words, then its still. The script ``_static/live/kit.js``, which only
such pages load, waits until the figure comes near, then loads what ``data-scripts`` names, and
replaces the still. So a page stays light, works from a file and from any folder, and says in place
which file is missing. Data scripts are written here, while the pages are. Addresses end in a hash
of their file, so that no browser mixes an old one with a new one.
"""

import hashlib
import html
import json
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from website.live import pack
from website.pages.markdown import link, paragraphs, quote, titled
from website.syntax.cells.cell import is_cell
from website.syntax.shared import BookDirective, Links, Notebook, Written, register
from website.theme.page import Page, each_page, warn

OURS = Path(pack.__file__).parent
FOLDER = "_static/live"
OPTIONS = ("title", "scripts", "data", "still", "asks")
ABOVE = "above"
ADDRESSED = {"train": "train"}  # figures that other pages set, and their pages
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
SETTING = re.compile(r"(?P<words>.+?)\s*<(?P<name>\S+)(?P<values>(\s+\S+)+)>", re.DOTALL)
SENTENCE = re.compile(r"\{live\}`([^`]+)`")  # sets a figure
VALUE = re.compile(r"(?P<key>[a-z]+)=(?P<value>[\w.,-]+)")


@dataclass(frozen=True)
class Live:
    """One live figure; ``words`` and ``still`` are lines."""

    name: str
    title: str
    words: tuple[str, ...]
    still: tuple[str, ...]
    scripts: tuple[str, ...] = ()
    data: str = ""
    opens: bool = False  # its page, with the cell above as still
    asks: str = ""  # the id of what it lets one predict

    @property
    def anchor(self) -> str:
        return f"live-{self.name}"

    @property
    def still_at(self) -> int:
        """The line of the body, counted from 0, where the still begins."""
        return len(self.words) + 1


@dataclass(frozen=True)
class Setting:
    """What a link in a sentence asks of a figure."""

    words: str
    name: str
    values: dict[str, str] = field(default_factory=dict)


def read_live(name: str, options: Mapping[str, str], body: Sequence[str]) -> Live:
    """Read the parts of a live figure.

    Raises:
        ValueError: Something is wrong; the message says what.
    """
    name = name.strip()
    given = {key: (options.get(key) or "").strip() for key in OPTIONS}
    named = " ".join(given[key] for key in ("scripts", "data", "asks"))
    for one in (name, *named.split()):
        if not NAME.fullmatch(one):
            raise ValueError(f"{one!r} is not lower-case words joined by hyphens")
    if not given["title"]:
        raise ValueError(f"the live figure {name} has no :title:")
    if given["still"] not in {"", ABOVE}:
        raise ValueError(f"the live figure {name} has a still of its own, or :still: above")
    marks = [at for at, line in enumerate(body) if line.strip() == "+++"]
    at = marks[0] if marks else len(body)
    words, still = tuple(body[:at]), tuple(body[at + 1 :])
    if not "".join(words).strip():
        raise ValueError(f"the live figure {name} does not say what to try and what one sees")
    if not "".join(still).strip():
        raise ValueError(f"the live figure {name} has no still below a line +++")
    scripts, opens = tuple(given["scripts"].split()), given["still"] == ABOVE
    return Live(name, given["title"], words, still, scripts, given["data"], opens, given["asks"])


def read_setting(content: str) -> Setting:
    """Read the content of a role: ``words <name key=value ...>``.

    Raises:
        ValueError: It is not of that form.
    """
    match = SETTING.fullmatch(content.strip())
    pairs = [VALUE.fullmatch(one) for one in match["values"].split()] if match else [None]
    if match is None or None in pairs:
        raise ValueError(f"a setting is written words <figure key=value ...>, not {content!r}")
    values = {pair["key"]: pair["value"] for pair in pairs if pair}
    return Setting(match["words"], match["name"], values)


class live(nodes.General, nodes.Element):  # noqa: N801  docutils names nodes this way
    """A live figure; ``read`` is what was written."""


class live_set(nodes.Inline, nodes.TextElement):  # noqa: N801
    """The words that set a figure; ``read`` is what was written."""


class LiveFigure(BookDirective):
    option_spec = dict.fromkeys(OPTIONS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        try:
            read = read_live(self.arguments[0], self.options, list(self.content))
            require_files(self.env.app, read)
        except ValueError as error:
            self.warn(str(error))
            return []
        classes = ["live", "live-opening"] if read.opens else ["live"]
        figure = live("", ids=[read.anchor], classes=classes, read=read)
        figure += nodes.paragraph(
            "", read.title, ids=[f"{read.anchor}-title"], classes=["live-title"]
        )
        figure += self.part("live-words", 0, len(read.words))
        figure += self.part("live-still", read.still_at)
        self.set_source_info(figure)
        return [figure]

    @staticmethod
    def to_notebook(written: Written, notebook: Notebook) -> str:
        """What to try, where the figure runs in the next cell. Else a notebook has the still, and a
        link to the figure; where the cell above is the still, what to try there."""
        read = read_live(written.argument, written.options, written.body)
        page, address = notebook.links.here
        leads, runs = f"[{page}]({address}#{read.anchor})", runs_in_notebook(notebook, read)
        where = f"The live figure is {'below, and ' if runs else ''}on the book's page {leads}."
        tries = runs or read.opens
        said = notebook.body(written, *((0, len(read.words)) if tries else (read.still_at,)))
        title = notebook.text(read.title, written.line)
        return quote(titled(title, paragraphs(said, where)))


def runs_in_notebook(notebook: Notebook, read: Live) -> bool:
    """Has the package all files of the figure?"""
    project = tomllib.loads((notebook.links.settings.root / "pyproject.toml").read_text("utf8"))
    wheel = project.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {})
    files = wheel.get("wheel", {}).get("force-include", {})
    needed = [f"{one}.js" for one in (*read.scripts, read.name)]
    needed += [f"{read.data.replace('-', '_')}.py"] if read.data else []
    return all(f"website/live/{one}" in files for one in needed)


def cell_for(written: Written, notebook: Notebook, source: str) -> str:
    """The call that shows a figure in a notebook; what sentences of the page, in ``source``, set
    are its buttons."""
    read = read_live(written.argument, written.options, written.body)
    title = notebook.text(read.title, written.line)
    settings = [read_setting(" ".join(one.split())) for one in SENTENCE.findall(source)]
    sets = {one.words: one.values for one in settings if one.name == read.name}
    given: tuple[dict[str, object], ...] = (
        {
            "title": title,
            "asks": read.asks,
            "sets": sets,
            "scripts": read.scripts,
            "data": read.data,
        },
        {"still": notebook.body(written, read.still_at)},
        {"page": f"{notebook.links.here[1]}#{read.anchor}"},
    )
    lines = ",\n          ".join(map(_arguments, given))
    return f'show_live("{read.name}", {lines})'


def _arguments(given: Mapping[str, object]) -> str:
    texts = ((key, json.dumps(value, ensure_ascii=False)) for key, value in given.items() if value)
    return ", ".join(f"{key}={text}" for key, text in texts)


class StillAbove(SphinxPostTransform):
    """Puts the cell above a figure into its still."""

    default_priority = 160  # after a cell has its final form
    formats = ("html",)

    def run(self, **options: object) -> None:
        for figure in [one for one in self.document.findall(live) if one["read"].opens]:
            at = figure.parent.index(figure)
            cell = figure.parent[at - 1] if at else None
            if not is_cell(cell):
                words = f"above the live figure {figure['read'].name} stands no cell"
                warn(words, figure)
                continue
            figure.parent.remove(cell)
            figure.children[-1].insert(0, cell)


def address_of(setting: Setting) -> str:
    """What follows the address of a page whose figure reads its state there."""
    return f"#{setting.name}:{urlencode(setting.values)}"


class LiveRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            read = read_setting(self.text)
        except ValueError as error:
            warn(str(error), self.get_location())
            return [nodes.Text(self.text)], []
        node = live_set("", read.words, read=read)
        self.set_source_info(node)
        return [node], []

    @staticmethod
    def to_notebook(content: str, links: Links) -> str:
        setting = read_setting(content)
        if setting.name in ADDRESSED:
            page = links.site.document(ADDRESSED[setting.name])[1]
            return link(setting.words, "", page + address_of(setting))
        return link(setting.words, "", f"{links.here[1]}#live-{setting.name}")


def static(app: Sphinx, name: str, kind: str = "js") -> Path | None:
    """A script of live figures, or a style: the book's, or one in a folder of static files."""
    others = [Path(app.confdir or app.srcdir, one, "live") for one in app.config.html_static_path]
    return next((f for one in (OURS, *others) if (f := one / f"{name}.{kind}").is_file()), None)


def copy(app: Sphinx) -> None:
    """The book's scripts and styles, into the site."""
    to = Path(app.outdir) / FOLDER
    to.mkdir(parents=True, exist_ok=True)
    for file in (*OURS.glob("*.js"), *OURS.glob("*.css")):
        shutil.copyfile(file, to / file.name)


def module(name: str) -> str:
    return f"website.live.{name.replace('-', '_')}"


def required(app: Sphinx, read: Live, name: str) -> Path:
    """A script that a figure needs; without it a ValueError says so."""
    file = static(app, name)
    if file is None:
        raise ValueError(f"the live figure {read.name} has no script live/{name}.js")
    return file


def require_files(app: Sphinx, read: Live) -> None:
    for name in (*read.scripts, read.name):
        required(app, read, name)
    if read.data and find_spec(module(read.data)) is None:
        raise ValueError(f"the data of the live figure {read.name}: no {module(read.data)}")
    if read.data:
        data_script(app.env, read.data)


def data_script(env: BuildEnvironment, name: str) -> str:
    """What a figure reads. Made while its page is read, it waits with the trees of the pages."""
    known = env.__dict__.setdefault("vitbook_live_data", {})
    if name not in known:
        known[name] = pack.script(name, import_module(module(name)).data())
    return known[name]


def addresses(builder: StandaloneHTMLBuilder, read: Live) -> list[str]:
    """The scripts of a figure, its data last, which is written on the way."""
    texts = {
        f"{one}.js": required(builder.app, read, one).read_text("utf8")
        for one in (*read.scripts, read.name)
    }
    if read.data:
        texts[f"data/{read.data}.js"] = data_script(builder.env, read.data)
        file = Path(builder.outdir) / FOLDER / "data" / f"{read.data}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[f"data/{read.data}.js"], "utf8")
    here = builder.get_target_uri(builder.current_docname)
    hashed = {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in texts.items()}
    return [f"{relative_uri(here, f'{FOLDER}/{name}')}?v={sum_}" for name, sum_ in hashed.items()]


def visit_live(self: HTML5Translator, node: live) -> None:
    read = node["read"]
    told = {"data-live": read.name, "data-scripts": json.dumps(addresses(self.builder, read))}
    told |= {"data-source": read.data} if read.data else {}
    told |= {"data-predict": read.asks} if read.asks else {}
    named = {"role": "group", "aria-labelledby": f"{read.anchor}-title"}
    self.body.append(self.starttag(node, "div", **named, **told))


def depart_live(self: HTML5Translator, node: live) -> None:
    self.body.append("</div>\n")


def visit_set(self: HTML5Translator, node: live_set) -> None:
    read, here = node["read"], self.builder.current_docname
    page = ADDRESSED.get(read.name, here)
    if page != here:
        uri = self.builder.get_relative_uri(here, page) + address_of(read)
        self.body.append(f'<a href="{html.escape(uri, quote=True)}">')
        return
    values = html.escape(json.dumps(read.values), quote=True)
    self.body.append(f'<a class="live-set" href="#live-{read.name}" data-set="{values}">')


def depart_set(self: HTML5Translator, node: live_set) -> None:
    self.body.append("</a>")


def load(page: Page) -> None:
    """Script and styles of the page's figures; every setting needs its figure on the page."""
    doctree = page.doctree
    found = [] if doctree is None else [node["read"].name for node in doctree.findall(live)]
    for name in {name for name in found if found.count(name) > 1}:
        warn(f"the live figure {name} stands twice", page.name)
    for node in [] if doctree is None else doctree.findall(live_set):
        if (name := node["read"].name) not in [*found, *ADDRESSED]:
            words = f"a sentence sets the live figure {name}, which this page does not have"
            warn(words, node)
    if found:
        for name in ("live", *(name for name in found if static(page.app, name, "css"))):
            page.app.add_css_file(f"live/{name}.css")
        page.app.add_js_file("live/kit.js", loading_method="defer")
        add_opening(page)


def add_opening(page: Page) -> None:
    """Links that let a browser fetch the figure of the first screen before the kit asks for it."""
    for attributes in OPENING.findall(page.context.get("body", "")):
        links = (
            f'<link rel="preload" href="{html.escape(address)}" as="script" fetchpriority="low">'
            for address in json.loads(html.unescape(attributes))
        )
        page.context["preloads"] = page.context.get("preloads", "") + "\n".join(links)


OPENING = re.compile(r'class="live live-opening"[^>]*? data-scripts="([^"]*)"')
DIRECTIVES = {"live": LiveFigure}
ROLES = {"live": LiveRole()}


def setup(app: Sphinx) -> None:
    app.add_node(live, html=(visit_live, depart_live))
    app.add_node(live_set, html=(visit_set, depart_set))
    register(app, globals())
    app.add_post_transform(StillAbove)
    app.connect("builder-inited", copy)
    each_page(app, load)
