"""The page of the package: written from the sources, with the chapter that introduces each name."""

import io
import re
from pathlib import Path

import pytest
import vitbook_api
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools.book_rules.introductions import imported, introductions, part_of
from tools.book_rules.source import read_book

ROOT = Path(__file__).resolve().parents[2]

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
    "book/index.md": "# All\n\n```{api} vitbook\n:without: guard\n```\n",
    "book/before.md": FRONT + "# Before\n\n```{code-cell}\nfrom vitbook.mixing import Mixer\n```\n",
    "book/one.md": FRONT + "# One\n\n```{code-cell}\nfrom vitbook.steps import step\n```\n",
    "book/two.md": FRONT
    + "# Two\n\n```{literalinclude} ../src/vitbook/mixing.py\n:pyobject: mix\n```\n",
    "src/vitbook/__init__.py": "",
    "src/vitbook/guard.py": '"""Guards."""\n\n\ndef guard():\n    """Guard."""\n',
    "src/vitbook/mixing.py": MIXING,
    "src/vitbook/steps/__init__.py": '"""Go."""\n\nfrom vitbook.steps.loop import Plan, step\n\n'
    '__all__ = ["step", "Plan"]\n',
    "src/vitbook/steps/loop.py": LOOP,
}


def build(folder, **changed):
    """(the page, the warnings); `changed`: (old, new) by the stem of a file."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changed.get(path.stem, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text, "utf8")
    vitbook_api.tree.cache_clear()
    warnings = io.StringIO()
    with patch_docutils(None), docutils_namespace():
        app = Sphinx(
            srcdir=folder / "book",
            confdir=None,
            outdir=folder / "out",
            doctreedir=folder / "trees",
            buildername="html",
            confoverrides={
                "extensions": ["myst_parser", "syntax.chapter", "vitbook_api"],
                "html_theme": "basic",
                "nitpicky": True,
                "add_module_names": False,
                "suppress_warnings": ["myst.directive_unknown", "toc.not_included"],
            },
            status=None,
            warning=warnings,
        )
        app.build()
    html = (folder / "out" / "index.html").read_text("utf8")
    told = [
        line for line in warnings.getvalue().splitlines() if "index.md" in line or "src" in line
    ]
    told = [line for line in told if "isn't included" not in line and "literalinclude" not in line]
    return BeautifulSoup(html, "html.parser"), told


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return build(tmp_path_factory.mktemp("package"))


def words(element):
    return " ".join(element.get_text().replace("¶", "").split())


def entry(page, name):
    return page.find("dt", id=f"vitbook.{name}").parent


def test_a_sound_package_gives_no_warning(page):
    assert page[1] == []


def test_modules_come_in_the_order_of_the_chapters(page):
    titles = [words(title) for title in page[0].select("section section h2")]
    assert titles == ["vitbook.steps", "vitbook.mixing"]


def test_public_names_are_shown_and_no_others(page):
    shown = [term["id"] for term in page[0].select("dl.py > dt[id]")]
    assert shown == [
        *("vitbook.steps.step", "vitbook.steps.Plan"),
        *("vitbook.mixing.REACH", "vitbook.mixing.mix", "vitbook.mixing.Base"),
        *("vitbook.mixing.Mixer", "vitbook.mixing.Mixer.size", "vitbook.mixing.Mixer.forward"),
    ]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("steps.step", "First used in chapter 1, One"),
        ("mixing.mix", "Introduced in chapter 2, Two"),
    ],
)
def test_an_entry_names_the_chapter_and_links_to_it(page, name, place):
    found = entry(page[0], name)
    assert place in words(found)
    page = place.rpartition(" ")[2].lower()
    assert any(link["href"].startswith(page) for link in found.find_all("a"))


def test_the_preview_introduces_nothing(page):
    assert "chapter" not in words(entry(page[0], "mixing.Mixer"))


def test_signatures_are_those_of_the_source(page):
    def head(name):
        return words(page[0].find("dt", id=f"vitbook.{name}"))

    assert head("mixing.mix") == "mix(x: Tensor, *, share: float = 0.5) → Tensor"
    assert head("mixing.Mixer") == "class Mixer(*, width: int)"
    assert head("mixing.Mixer.forward") == "forward(x, mask=None)"
    assert head("mixing.Mixer.size") == "property size: int"
    assert head("steps.Plan") == "class Plan(steps: int, rate: float = 0.1)"


def test_arguments_and_errors_are_listed(page):
    told = words(entry(page[0], "mixing.mix"))
    assert "x – Tokens (B, N, D)." in told
    assert "ValueError – There is no second half." in told


def test_names_of_ours_are_links_and_others_plain_text(page):
    assert entry(page[0], "mixing.mix").find("a", href="#vitbook.steps.step")
    assert entry(page[0], "steps.step").find("a", href="#vitbook.steps.Plan")
    assert not [tag for tag in page[0].select(".xref") if not tag.find_parent("a")]


def test_a_constant_is_told_by_the_comment_above_it(page):
    assert "How far it goes." in words(entry(page[0], "mixing.REACH"))


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        ({"mixing": ('    """Mixes."""\n', "")}, "vitbook.mixing.Mixer has no docstring"),
        ({"mixing": ("~vitbook.steps.step", "~vitbook.steps.stop")}, "vitbook.steps.stop"),
        ({"mixing": ("Mix two halves.", "Mix ``two halves.")}, "mixing.py"),
        ({"index": (":without: guard", ":without: gard")}, "there is no module vitbook.gard"),
        ({"index": ("{api} vitbook", "{api} vitbok")}, "there is no module vitbok"),
    ],
    ids=["no docstring", "a name that is not there", "markup", "unknown module", "no package"],
)
def test_what_is_wrong_is_a_warning(tmp_path, changed, warning):
    assert any(warning in line for line in build(tmp_path, **changed)[1])


# --- the package itself ----------------------------------------------------------------------


def test_no_docstring_types_the_number_of_a_chapter():
    """The page works it out; a typed one sends the reader to a chapter that has moved."""
    typed = re.compile(r"\bchapters?\s+\d", re.IGNORECASE)
    for path in (ROOT / "src" / "vitbook").rglob("*.py"):
        assert not typed.search(path.read_text("utf8")), path.name


def test_each_public_name_that_a_page_imports_is_on_the_page_of_the_package():
    found = vitbook_api.modules(ROOT / "src", "vitbook")
    listed = {member.name for module in found for member in module.members()}
    cells = [cell for chapter in read_book(ROOT).chapters for cell in chapter.cells]
    taken = {name for cell in cells for _, name in imported(cell)}
    assert len(taken) > 80
    # what the command is made of is described where the command is
    assert taken - listed <= {"build_model"}


def test_each_name_on_the_page_is_documented_and_the_teaching_parts_have_their_chapter():
    found = vitbook_api.modules(ROOT / "src", "vitbook")
    names = {
        (part_of(module.name.split(".")[1:]), member.name)
        for module in found
        for member in module.members()
    }
    introduced = introductions(read_book(ROOT))
    assert len(names) > 80
    assert introduced["layers.attention", "MultiHeadSelfAttention"].slug == "many_heads"
    assert introduced["models.vit", "VisionTransformer"].slug == "classifier"
    assert len({place.slug for place in introduced.values()}) >= 9
    wanted = {
        ("layers.attention", "causal_mask"),
        ("training", "train"),
        ("book.records", "Record"),
    }
    assert wanted <= names


def test_modules_are_sections_of_the_page_itself_so_that_its_contents_list_them():
    before = (ROOT / "book" / "appendix" / "api.md").read_text("utf8").partition("```{api}")[0]
    assert not re.search(r"^##", before, re.MULTILINE)
