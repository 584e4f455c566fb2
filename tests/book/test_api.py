"""The page of the package: written from the sources, with the chapter that introduces each name."""

import re
from pathlib import Path

import pytest
from small_book import ROOT, Book, write_files

from website.pages.introductions import imported, introductions, part_of
from website.pages.source import read_book
from website.syntax import api

MIXING = '''"""Mix."""

import torch

# How far it goes.
REACH = 3
INNER = 4


def mix(x: Tensor, *, share: float = 0.5) -> Tensor:
    """Mix two halves.

    Args:
        x: Tokens (B, N, D).
        share: What comes from the first; see :func:`~vitbook.steps.step`.

    Raises:
        ValueError: There is no second half.
    """


class Base:
    """What mixers share."""

    def __init__(self, *, width: int):
        self.width = width


class Mixer(Base):
    """Mixes."""

    @property
    def size(self) -> int:
        """How large."""

    def forward(self, x, mask=None):
        """Tokens -> tokens."""

    def _hidden(self):
        """Nobody sees this."""


def _private():
    """Nor this."""
'''
LOOP = '''"""Steps."""

from dataclasses import dataclass


def step(plan: Plan) -> int:
    """One step."""


@dataclass
class Plan:
    """A plan."""

    steps: int
    rate: float = 0.1
'''
FRONT = "---\njupytext: {}\nkernelspec: {name: python3}\n---\n\n"
FILES = {
    "_config.yml": "title: T\nrepository: {url: 'https://github.com/a/b', path_to_book: book}\n",
    "_toc.yml": "root: index\nmeta: {zero: before}\nparts:\n- caption: I Part\n  chapters:\n"
    "  - file: before\n  - file: one\n  - file: two\n",
    "pyproject.toml": '[project]\nversion = "1.0"\n',
    "book/index.md": "# All\n\n```{api} vitbook\n```\n",
    "book/before.md": FRONT + "# Before\n\n```{code-cell}\nfrom vitbook.mixing import Mixer\n```\n",
    "book/one.md": FRONT + "# One\n\n```{code-cell}\nfrom vitbook.steps import step\n```\n",
    "book/two.md": FRONT
    + "# Two\n\n```{literalinclude} ../src/vitbook/mixing.py\n:pyobject: mix\n```\n",
    "src/vitbook/__init__.py": "",
    "src/vitbook/mixing.py": MIXING,
    "src/vitbook/steps/__init__.py": '"""Go."""\n\nfrom vitbook.steps.loop import Plan, step\n\n'
    '__all__ = ["step", "Plan"]\n',
    "src/vitbook/steps/loop.py": LOOP,
}


class Package(Book):
    settings = {  # noqa: RUF012
        "nitpicky": True,
        "add_module_names": False,
        "suppress_warnings": ["myst.directive_unknown", "toc.not_included"],
    }


def build(folder, **changed):
    """(the page, the warnings); `changed`: (old, new), ... by the stem of a file."""
    files = dict(FILES)
    for name, text in FILES.items():
        for old, new in changed.get(Path(name).stem, ()):
            assert old in text
            files[name] = files[name].replace(old, new)
    write_files(folder, files)
    api.tree.cache_clear()
    book = Package(folder, ("website.syntax.chapter", "website.syntax.api")).build()
    told = [line for line in book.warnings.splitlines() if "index.md" in line or "src" in line]
    told = [line for line in told if "isn't included" not in line and "literalinclude" not in line]
    return book.html("index"), told


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return build(tmp_path_factory.mktemp("package"))


def words(element):
    return " ".join(element.get_text().replace("¶", "").split())


def entry(page, name):
    return page.find("dt", id=f"vitbook.{name}").parent


HEADS = {
    "mixing.mix": "mix(x: Tensor, *, share: float = 0.5) → Tensor",
    "mixing.Mixer": "class Mixer(*, width: int)",
    "mixing.Mixer.forward": "forward(x, mask=None)",
    "mixing.Mixer.size": "property size: int",
    "steps.Plan": "class Plan(steps: int, rate: float = 0.1)",
}
TOLD = {
    "a constant, by the comment above it": ("mixing.REACH", "How far it goes."),
    "an argument": ("mixing.mix", "x – Tokens (B, N, D)."),
    "an error": ("mixing.mix", "ValueError – There is no second half."),
    "where it is used": ("steps.step", "First used in chapter 1, One"),
    "where it is introduced": ("mixing.mix", "Introduced in chapter 2, Two"),
}
LINKS = [
    ("mixing.mix", "#vitbook.steps.step"),
    ("steps.step", "#vitbook.steps.Plan"),
    ("steps.step", "one.html"),
    ("mixing.mix", "two.html"),
]


def test_the_page_shows_public_names_and_no_others_in_the_order_of_the_chapters(page):
    page, warnings = page
    assert warnings == []
    titles = [words(title) for title in page.select("section section h2")]
    assert titles == ["vitbook.steps", "vitbook.mixing"]
    shown = [term["id"].removeprefix("vitbook.") for term in page.select("dl.py > dt[id]")]
    names = "steps.step steps.Plan mixing.REACH mixing.mix mixing.Base mixing.Mixer"
    assert shown == [*names.split(), "mixing.Mixer.size", "mixing.Mixer.forward"]


def test_signatures_words_and_links_are_those_of_the_source(page):
    page, _ = page
    assert {name: words(entry(page, name).dt) for name in HEADS} == HEADS
    for name, told in TOLD.values():
        assert told in words(entry(page, name))
    for name, address in LINKS:
        assert entry(page, name).select(f'a[href^="{address}"]'), name
    assert "chapter" not in words(entry(page, "mixing.Mixer"))  # the preview introduces nothing
    assert not [tag for tag in page.select(".xref") if not tag.find_parent("a")]


def test_what_is_wrong_is_a_warning(tmp_path):
    mixing = [
        ('    """Mixes."""\n', ""),
        ("~vitbook.steps.step", "~vitbook.steps.stop"),
        ("What mixers share.", "What ``mixers share."),
    ]
    more = "```{api} vitbok\n```\n"
    _, warnings = build(tmp_path, mixing=mixing, index=[("# All\n", f"# All\n\n{more}")])
    for words in (
        "vitbook.mixing.Mixer has no docstring",
        "vitbook.steps.stop",
        "there is no module vitbok",
        "Inline literal start-string",
    ):
        assert [line for line in warnings if words in line], words


# --- the package itself ----------------------------------------------------------------------


def test_each_name_that_a_page_imports_is_listed_and_the_teaching_parts_have_their_chapter():
    listed = {
        (part_of(module.name.split(".")[1:]), member.name)
        for module in api.modules(ROOT / "src", "vitbook")
        for member in module.members()
    }
    assert len(listed) > 80
    book = read_book(ROOT)
    cells = [cell for chapter in book.chapters for cell in chapter.cells]
    taken = {
        name
        for cell in cells
        for part, name in imported(cell)
        if part != "figures"  # what draws a page is of that page alone
    }
    assert len(taken) > 80
    # what the command is made of is described where the command is
    assert taken - {name for _, name in listed} <= {"build_model"}
    introduced = introductions(book)
    assert introduced["layers.attention", "MultiHeadSelfAttention"].slug == "many_heads"
    assert introduced["models.vit", "VisionTransformer"].slug == "classifier"
    assert len({place.slug for place in introduced.values()}) >= 9
    wanted = {"layers.attention": "causal_mask", "training": "train", "book.records": "Record"}
    assert wanted.items() <= listed


def test_each_part_of_the_package_but_the_command_has_a_page():
    pages = [path.read_text("utf8") for path in (ROOT / "book" / "appendix").glob("api_*.md")]
    told = {
        name for page in pages for name in re.findall(r"^```\{api\} vitbook\.(\w+)", page, re.M)
    }
    parts = {module.name.split(".")[1] for module in api.modules(ROOT / "src", "vitbook")}
    assert told == parts - {"command", "files", "require"}
