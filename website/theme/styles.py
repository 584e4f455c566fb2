"""Two style sheets in place of eighteen: those of the theme and its extensions, and the book's own.

A browser draws nothing before it has read every style sheet of a page, and the theme's alone hold
half a megabyte, most of it for things that the book has not. After the last page the links to
sheets that all pages have become one link for the theme's and one for ours. Of the theme's rules
those go whose classes or ids no page and no script names. What only some pages load (figures,
predictions, formulas) stays a sheet of its own, between the two, and so do the rules for paper.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

OURS = Path(__file__).resolve().parent / "static"
LINK = re.compile(
    r'[ \t]*<link (?=[^>]*rel="stylesheet")[^>]*?href="(?P<to>[^"]*_static/)'
    r'(?P<name>[^"?]+\.css)[^"]*"[^>]*>\n?'
)
SOME_PAGES = ("live/", "predict/", "front/", "vendor/", "print/")
DATA = ("search/index.js", "explorer/", "live/data/")  # scripts that name no class
IMPORT = re.compile(r'@import\s*(?:url\()?["\']([^"\']+\.css)["\']\)?;?')
ADDRESS = re.compile(r"""url\((["']?)(?!data:|#|\w+:)([^"')]+)\1\)""")
PART = re.compile(
    r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]|[^"'/{};]+|/""", re.DOTALL
)  # a comment, a string, a sign between rules, anything else
NAME = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
ASIDE = re.compile(r"\([^()]*\)|\[[^\]]*\]")  # of a selector: what need not be there
NAMED = re.compile(r'\b(?:class|id)="([^"]*)"')
GROUPS = ("@media", "@supports", "@container", "@layer")


def read(static: Path, name: str, seen: list[str]) -> str:
    """A sheet with those that it imports, all noted in ``seen``; addresses are seen from
    ``static``."""
    seen.append(name)
    folder = posixpath.dirname(name)

    def path(address: str) -> str:
        return posixpath.normpath(posixpath.join(folder, address))

    text = (static / name).read_text("utf8").replace('@charset "UTF-8";', "")
    parts = IMPORT.split(text)  # text, the name of an import, text, ...
    texts = [ADDRESS.sub(lambda one: f'url("{path(one[2])}")', part) for part in parts[::2]]
    imported = [read(static, path(part), seen) for part in parts[1::2]]
    return "".join(part for pair in zip([*imported, ""], texts, strict=True) for part in pair)


class Sheet:
    """What is left of a text of rules: no comments but licences, and no rule for what is nowhere.

    Args:
        text: The rules.
        static: Where the files are that they name.
        used: All classes and ids there are; None keeps every rule.
    """

    def __init__(self, text: str, static: Path, used: set[str] | None) -> None:
        self.static, self.used = static, used
        self.parts: Iterator[str] = iter(PART.findall(text))
        self.text = self.block()

    def block(self) -> str:
        """The rules up to the brace that closes."""
        made, head = [], ""
        for part in self.parts:
            if part.startswith("/*"):
                made += [part] if part.startswith("/*!") else []
            elif part == "}":
                break
            elif part == "{":
                made.append(self.rule(" ".join(head.split())))
                head = ""
            elif part == ";":
                made.append(f"{head.strip()};" if head.strip() else "")
                head = ""
            else:
                head += part
        return "".join(made)

    def rule(self, head: str) -> str:
        inner = self.block() if head.startswith(GROUPS) else self.body()
        if head == "@font-face":
            found = [self.static / one[2] for one in ADDRESS.finditer(inner)]
            return f"{head}{{{inner}}}" if all(path.is_file() for path in found) else ""
        kept = head if head.startswith("@") else self.selectors(head)
        return f"{kept}{{{inner}}}\n" if kept and inner else ""

    def body(self) -> str:
        """What stands in the braces of a rule."""
        made, depth = [], 1
        for part in self.parts:
            depth += {"{": 1, "}": -1}.get(part, 0)
            if not depth:
                break
            if not part.startswith("/*"):
                made.append(part if part[0] in "\"'" else re.sub(r"\s+", " ", part))
        return "".join(made).strip()

    def selectors(self, head: str) -> str:
        if self.used is None:
            return head
        depth, each = 0, [""]
        for letter in head:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and not depth:
                each.append("")
            else:
                each[-1] += letter
        return ",".join(one for one in each if "\\" in one or self.names(one) <= self.used)

    @staticmethod
    def names(selector: str) -> set[str]:
        while (less := ASIDE.sub("", selector)) != selector:
            selector = less
        return set(NAME.findall(selector))


def group(name: str) -> str | None:
    """The sheet that another one goes into."""
    if name.startswith(SOME_PAGES):
        return None
    return "book.css" if (OURS / name).is_file() else "theme.css"


def bundle(app: Sphinx, exception: Exception | None) -> None:
    static = Path(app.outdir) / "_static"
    if exception or app.builder.format != "html":
        return
    paths = [path for path in Path(app.outdir).rglob("*.html") if static not in path.parents]
    pages = {path: path.read_text("utf8") for path in paths}
    names: dict[str, list[str]] = {"theme.css": [], "book.css": []}
    used: set[str] = set()
    for page in pages.values():
        used.update(" ".join(NAMED.findall(page)).split())
        for name in [link["name"] for link in LINK.finditer(page)]:
            if (to := group(name)) and name not in names[to]:
                names[to].append(name)
    for path in static.rglob("*.js"):
        if not path.relative_to(static).as_posix().startswith(DATA):
            used.update(re.findall(r"[\w-]+", path.read_text("utf8")))
    digests = {}
    for to, of in names.items():
        seen: list[str] = []
        text = "\n".join(read(static, name, seen) for name in of)
        text = f'@charset "UTF-8";{Sheet(text, static, used if to == "theme.css" else None).text}'
        digests[to] = hashlib.sha256(text.encode()).hexdigest()[:8]
        for name in set(seen):
            (static / name).unlink()
        (static / to).write_text(text, "utf8")
    for path, page in pages.items():
        path.write_text(LINK.sub(Links(digests).link, page), "utf8")


class Links:
    """The links of one page."""

    def __init__(self, digests: dict[str, str]) -> None:
        self.digests, self.there = digests, set[str]()

    def link(self, found: re.Match[str]) -> str:
        to = group(found["name"])
        if to is None:
            return found[0]
        if to in self.there:
            return ""
        self.there.add(to)
        return f'<link rel="stylesheet" href="{found["to"]}{to}?v={self.digests[to]}" />\n'


def setup(app: Sphinx) -> None:
    app.connect("build-finished", bundle, priority=900)
