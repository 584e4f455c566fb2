"""The pages of the recorded experiments: a table of all, and one for each question."""

import pytest
from small_book import ROOT, Book, write_files

from vitbook.book.records import list_records, load_record
from website.build.render import Trees
from website.syntax.records import questions

FRONT = "---\njupytext: {}\nkernelspec: {name: python3}\n---\n\n"
LOADS = '```{code-cell}\nload_record("sincos_base")\n```\n'
IMPORTS = "```{code-cell}\nfrom vitbook.layers.attention import attend\n```\n"
FILES = {
    "_config.yml": "title: T\nrepository: {url: 'https://github.com/a/b', path_to_book: book}\n",
    "_toc.yml": "root: index\nparts:\n- caption: I All\n  chapters:\n"
    "  - file: records_positions\n  - file: one\n",
    "experiments/positions/__init__.py": '"""Where was it?"""\n',
    "experiments/positions/sincos_base.py": "EXPERIMENT = 1\n",
    "experiments/positions/recipe.py": "",
    "experiments/machinery/__init__.py": '"""Runs."""\n',
    "book/index.md": "# All\n\n```{records}\n```\n\n```{records} machinery\n```\n",
    "book/records_positions.md": "# Where was it?\n\n```{records} positions\n```\n",
    "book/one.md": FRONT + "# One\n\n" + LOADS,
    "src/vitbook/recorded/sincos_base.json": "",
}


def test_the_table_leads_to_the_numbers_and_names_the_pages_that_read_them(tmp_path):
    write_files(tmp_path, FILES)
    book = Book(tmp_path, ("website.syntax.records",)).build()
    assert "no folder experiments/machinery with records; positions" in book.warnings
    record = load_record("sincos_base")
    index = book.html("index")
    assert index.select_one("p > strong > a")["href"] == "records_positions.html"
    (row,) = index.select("tbody tr")
    assert [link["href"] for link in row.select("a")] == [
        "records_positions.html#record-sincos-base",
        "one.html",
    ]
    assert f"{record.what} {len(record.runs)} runs. Read in One." in row.text
    section = book.html("records_positions").select_one("#record-sincos-base")
    means, trials, made = section.select("details")
    assert len(trials.select("tbody tr")) == len(record.trials) > 0
    assert record.chosen_on in made.text
    condition = record.conditions[0]
    mean, low, high = record.interval("test_accuracy", **condition)
    wanted = [f"{mean:.4g}", f"{low:.4g} to {high:.4g}"]
    found = [[cell.text for cell in row.select("td")] for row in means.select("tr")]
    assert wanted in [cells[1:] for cells in found]


@pytest.mark.parametrize(
    ("page", "name", "text", "anew"),
    [
        ("records_positions", "book/one.md", FRONT + "# One\n\nMore words.\n\n" + LOADS, False),
        ("records_positions", "book/one.md", FRONT + "# One\n", True),  # it reads no record
        ("records_positions", "experiments/positions/__init__.py", '"""Where is it?"""\n', True),
        ("records_positions", "experiments/positions/recipe.py", "# of sincos_base\n", False),
        ("records_positions", "experiments/machinery/sincos_base.py", "EXPERIMENT = 1\n", True),
        ("api", "book/one.md", FRONT + "# One\n\nMore words.\n\n" + LOADS, False),
        ("api", "book/one.md", FRONT + "# One\n\n" + LOADS + IMPORTS, True),
    ],
)
def test_pages_that_look_at_others_are_read_anew_when_what_they_say_has_changed(
    tmp_path, page, name, text, anew
):
    page = f"book/appendix/{page}.md"
    write_files(tmp_path, FILES | {page: "# Where?\n"})
    before = Trees(tmp_path, tmp_path / "_build")
    write_files(tmp_path, {name: text})
    after = Trees(tmp_path, tmp_path / "_build")
    assert (after.pages[page] != before.pages[page]) == anew
    assert after.rest == before.rest  # of no other page


def test_each_record_belongs_to_one_question_and_each_question_has_its_page():
    found = questions(ROOT)
    assert sorted(name for _, names in found.values() for name in names) == list_records()
    for folder, (asks, _) in found.items():
        page = (ROOT / "book" / "appendix" / f"records_{folder}.md").read_text("utf8")
        assert page.startswith(f"# {asks}\n")
        assert f"{{records}} {folder}\n" in page
