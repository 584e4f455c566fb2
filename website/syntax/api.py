"""The directive ``api``: what a package offers, written from its sources when the book is built.

    ```{api} vitbook.layers
    ```

    ```{api} vitcheck.trial
    :only: CheckFailed Trial staged
    ```

With ``:names:`` it is a list of names that lead to their entries. A package gets a section for each
of its modules, in the order in which the chapters meet them; a single module is set where the
directive stands. A folder of modules offers what its ``__all__`` lists, or without one its modules;
a module offers its public functions, classes and constants.
Nothing is imported: signatures come from the syntax tree and Google-style docstrings go through
napoleon. Each entry ends with the chapter that introduces it, which the book's own rules know
(website/pages/introductions.py).

A constant is described by the comment above it; one without a comment is not shown, unless
``__all__`` lists it. A public function or class without a docstring and a reference to nothing are
warnings, so the build fails.
"""

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.utils import new_document
from myst_parser.mocking import MockRSTParser
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.config import Config as SphinxConfig
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import LoggingReporter, SphinxDirective
from sphinx.util.nodes import make_refnode

from website.pages.contents import CHAPTER_AND_NAME
from website.pages.introductions import Introduction, introductions, part_of
from website.pages.settings import read_settings
from website.pages.source import read_book
from website.theme.page import warn

# Napoleon asks for Sphinx's whole configuration and reads of it what its own has.
NAPOLEON = cast(SphinxConfig, Config(napoleon_use_rtype=False))
INDENT = "   "
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Member:
    """A public name, and where it is defined."""

    name: str
    node: Definition
    path: Path

    @property
    def constant(self) -> bool:
        return isinstance(self.node, ast.Assign | ast.AnnAssign)


@dataclass(frozen=True)
class Module:
    """What one module, or one folder of modules, offers."""

    name: str  # vitbook.training
    path: Path

    @property
    def docstring(self) -> str:
        return ast.get_docstring(tree(self.path)) or ""

    def members(self) -> list[Member]:
        """In the order of ``__all__``, else of the file."""
        found = dict(defined(self.path))
        for node in tree(self.path).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                source = module_file(self.path, self.name, node.module)
                if source is not None:
                    there = dict(defined(source))
                    names = {alias.name for alias in node.names}
                    found |= {name: there[name] for name in names & there.keys()}
        listed = exported(self.path)
        if listed is None:  # a constant is public when a comment says what it is
            here = dict(defined(self.path)).values()
            public = [member for member in here if not member.name.startswith("_")]
            return [member for member in public if not member.constant or comment_above(member)]
        return [found[name] for name in listed if name in found]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def exported(path: Path) -> list[str] | None:
    """What ``__all__`` of a file lists."""
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def defined(path: Path) -> Iterator[tuple[str, Member]]:
    """Functions, classes and constants at the top of a file."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, Member(node.name, node, path)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.isupper():
                yield target.id, Member(target.id, node, path)


def module_file(path: Path, package: str, module: str) -> Path | None:
    """The file of another module of the same package."""
    first, *parts = module.split(".")
    if first != package.partition(".")[0]:
        return None
    top = next(up for up in path.parents if up.name == first)
    base = top.joinpath(*parts)
    places = base.with_suffix(".py"), base / "__init__.py"
    return next((place for place in places if place.is_file()), None)


def modules(source: Path, name: str) -> list[Module]:
    """The module `name` itself, or all that a package holds."""
    base = source.joinpath(*name.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        whole = file.stem == "__init__"
        if file.is_file() and (not whole or ("." in name and exported(file) is not None)):
            return [Module(name, file)]
    found = []
    for path in sorted(base.glob("*")) if base.is_dir() else []:
        file = path / "__init__.py" if path.is_dir() else path
        if not file.is_file() or file.suffix != ".py" or path.stem.startswith("_"):
            continue
        if path.is_dir() and exported(file) is None:
            found += modules(source, f"{name}.{path.stem}")
        else:
            found.append(Module(f"{name}.{path.stem}", file))
    return found


# --- the words of an entry -------------------------------------------------------------------


def entry(member: Member, closing: str) -> list[str]:
    """A name as reStructuredText."""
    node = member.node
    if isinstance(node, ast.FunctionDef):
        return described("function", member.name + signature(node), docstring(node), closing)
    if isinstance(node, ast.ClassDef):
        declaration = member.name + constructor(node, member.path)
        lines = described("class", declaration, docstring(node), closing)
        for method in methods(node):
            lines += ["", *indented(described(*method))]
        return lines
    return described("data", member.name, comment_above(member), closing)


def described(kind: str, declaration: str, words: str, closing: str = "") -> list[str]:
    what = {"data": "attribute"}.get(kind, kind)
    text = GoogleDocstring(words, NAPOLEON, what=what).lines()
    head = f".. py:{kind}:: {declaration}".splitlines()
    return [*head, "", *indented([*text, "", closing]), ""]


def indented(lines: list[str]) -> list[str]:
    return [INDENT + line if line else line for line in lines]


def docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


def methods(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """(kind, declaration, docstring) of the public methods and properties that say what they do."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
        if "property" in decorators:
            returned = f"\n   :type: {ast.unparse(method.returns)}" if method.returns else ""
            yield "property", method.name + returned, docstring(method)
        else:
            kind = next(
                (f"{k}method" for k in ("class", "static") if f"{k}method" in decorators), "method"
            )
            yield (
                kind,
                method.name + signature(method, bound=kind != "staticmethod"),
                docstring(method),
            )


def signature(node: ast.FunctionDef, *, bound: bool = False) -> str:
    """Arguments and result as they are written; `bound`: without ``self``."""
    arguments = deepcopy(node.args)
    if bound:
        del (arguments.posonlyargs or arguments.args)[0]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){result}"


def constructor(node: ast.ClassDef, path: Path) -> str:
    """How an object is made: by ``__init__``, its own or that of a class above it in the same file,
    or from the fields of a dataclass or named tuple."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            method.returns = None
            return signature(method, bound=True)
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
    told = [f"{ast.unparse(f.target)}: {ast.unparse(f.annotation)}{default(f)}" for f in fields]
    if told:
        return f"({', '.join(told)})"
    above = {ast.unparse(base) for base in node.bases}
    there = (m.node for name, m in defined(path) if name in above)
    return next((constructor(n, path) for n in there if isinstance(n, ast.ClassDef)), "")


def default(field: ast.AnnAssign) -> str:
    if field.value is None:
        return ""
    value = ast.unparse(field.value)
    return "" if value.startswith("field(") and "default" not in value else f" = {value}"


def comment_above(member: Member) -> str:
    """What the comment above a constant says, or the one at the end of its line."""
    lines = member.path.read_text(encoding="utf-8").splitlines()
    at = member.node.lineno - 1
    above: list[str] = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        above.insert(0, lines[at].lstrip("# "))
    _, mark, beside = lines[member.node.lineno - 1].partition("  # ")
    return " ".join(above) or (beside if mark else "")


# --- the directive ---------------------------------------------------------------------------


class Api(SphinxDirective):
    required_arguments = 1
    has_content = False
    option_spec = {  # noqa: RUF012
        "names": directives.flag,
        "only": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0].strip()
        root = Path(self.env.srcdir).parent
        self.settings = read_settings(root)
        memory = self.env.temp_data  # of this page, so that the book is read once for it
        if "vitbook_introductions" not in memory:
            memory["vitbook_introductions"] = introductions(read_book(root))
        self.introduced = memory["vitbook_introductions"]
        found = modules(root / "src", name)
        if not found:
            self.warn(f"there is no module {name} under src")
        if "names" in self.options:
            names = self.parsed(list(self.names(sorted(found, key=self.place))), root, 0)
            return [nodes.container("", *names, classes=["not-searched"])]
        if len(found) == 1 and found[0].name == name:
            return self.body(found[0])
        return [self.section(module) for module in sorted(found, key=self.place)]

    def place(self, module: Module) -> tuple[int, str]:
        """Modules come as the chapters bring them, what no chapter needs last."""
        places = [self.where(module, member) for member in module.members()]
        return min((place.at for place in places if place), default=10**6), module.name

    def where(self, module: Module, member: Member) -> Introduction | None:
        part = part_of(module.name.split(".")[1:])
        return self.introduced.get((part, member.name))

    def names(self, found: list[Module]) -> Iterator[str]:
        """Modules, each with links to what it offers."""
        for module in found:
            yield f"``{module.name}``"
            links = (f":py:obj:`~{module.name}.{member.name}`" for member in module.members())
            yield f"{INDENT}{', '.join(links)}"

    def section(self, module: Module) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(module.name)], names=[module.name])
        section += nodes.title("", "", nodes.literal("", module.name))
        section += self.body(module)
        self.set_source_info(section)
        return section

    def body(self, module: Module) -> list[nodes.Node]:
        """What a module says of itself, then its names."""
        members = module.members()
        only = self.options.get("only", "").split()
        for unknown in set(only) - {member.name for member in members}:
            self.warn(f"only: {module.name} has no {unknown}")
        head = [f".. py:currentmodule:: {module.name}", "", *module.docstring.splitlines()]
        found = self.parsed(head, module.path, 0)
        for member in members:
            if only and member.name not in only:
                continue
            node = member.node
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not docstring(node):
                self.warn(f"{module.name}.{member.name} has no docstring")
            lines = entry(member, self.closing(module, member))
            found += self.parsed(lines, member.path, member.node.lineno - 1)
        return found

    def closing(self, module: Module, member: Member) -> str:
        """Where the book introduces a name, and where it is defined."""
        place = self.where(module, member)
        chapter = f"{place.verb} :chapter:`{CHAPTER_AND_NAME} <{place.slug}>`. " if place else ""
        shown = member.path.relative_to(self.settings.root / "src").as_posix()
        url = f"{self.settings.file_url(member.path)}#L{member.node.lineno}"
        return f"{chapter}Defined in `{shown} <{url}>`__."

    def parsed(self, lines: list[str], path: Path, above: int) -> list[nodes.Node]:
        """Lines of reStructuredText on this Markdown page; what is wrong with them is reported
        for the file that they come from."""
        document = new_document(str(path), self.state.document.settings)
        document.reporter = LoggingReporter.from_reporter(document.reporter)
        MockRSTParser().parse("\n" * above + "\n".join(lines), document)
        return document.children

    def warn(self, message: str) -> None:
        warn(f"api: {message}", self.get_location())


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """A name without its module leads to the one entry that is called so. What is not ours
    (``Tensor``, ``Path``) is plain text; a role that somebody wrote must lead somewhere."""
    if node.get("refdomain") != "py":
        return None
    objects = cast(PythonDomain, env.get_domain("py")).objects
    last = node["reftarget"].rpartition(".")[2]
    named = [name for name in objects if name.rpartition(".")[2] == last and "." in name]
    ours = [name for name in named if objects[name].objtype in ("class", "function", "data")]
    if len(ours) == 1:
        entry = objects[ours[0]]
        return make_refnode(
            app.builder, node["refdoc"], entry.docname, entry.node_id, content, ours[0]
        )
    return None if isinstance(content, nodes.literal) else nodes.inline("", "", content)


def setup(app: Sphinx) -> None:
    app.add_directive("api", Api)
    app.connect("missing-reference", resolve)
