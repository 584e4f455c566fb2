"""The directive ``records``: all recorded experiments in tables, by question; and with the name of
a folder of ``experiments/``, each record of that question with its numbers.

    ```{records}
    ```

    ```{records} positions
    ```

Numbers are folded: means and intervals of each condition, and the trials of a search.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from website.pages.meaning import loaded_records
from website.pages.source import Book, Chapter, read_book
from website.syntax.shared import BookDirective, on_the_site, register

if TYPE_CHECKING:
    from vitbook.book.records import Record

NOT_MEASURED = {"seconds", "layer", "head"}  # waiting time; choices whose mean says nothing
NOT_SHOWN = {"seconds", "cpu_seconds"}  # of a trial


def questions(root: Path) -> dict[str, tuple[str, list[str]]]:
    """Folder of experiments -> what it asks, and its records. ``machinery`` asks nothing."""
    found = {}
    there = {path.stem for path in (root / "src" / "vitbook" / "recorded").glob("*.json")}
    for folder in sorted((root / "experiments").glob("*/__init__.py")):
        scripts = (path for path in folder.parent.glob("*.py") if path.stem in there)
        names = sorted(path.stem for path in scripts if "EXPERIMENT = " in path.read_text("utf8"))
        if names:
            asks = ast.get_docstring(ast.parse(folder.read_text("utf8"))) or ""
            found[folder.parent.name] = asks, names
    return found


def recorded(name: str) -> Record:
    from vitbook.book.records import load_record  # with it comes torch, which takes seconds

    return load_record(name)


def readers(book: Book) -> dict[str, list[Chapter]]:
    """Record -> the pages whose cells load it, in the order of the book."""
    found: dict[str, list[Chapter]] = {}
    for chapter in book.chapters:
        for name in set().union(*(loaded_records(cell.tree) or () for cell in chapter.cells)):
            found.setdefault(name, []).append(chapter)
    return found


def words(condition: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in condition.items())


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) >= 10 else f"{value:.4g}"


def folded(title: str, what: str, head: list[str], body: str, below: str = "") -> str:
    """A table behind its title; what is wider than the page scrolls."""
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f"<details><summary>{escape(title)}</summary>"
        f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(what)}">'
        f'<table class="table"><thead><tr>{cells}</tr></thead>{body}</table></div>'
        f"{below}</details>"
    )


def row(cells: list[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def measured(record: Record, metric: str) -> list[list[str]]:
    """A row for each condition in which one number was measured; chapters draw the curves."""
    has = [
        run["condition"]
        for run in record.runs
        if isinstance(run["metrics"].get(metric), int | float)
    ]
    rows = []
    for condition in (one for one in record.conditions if one in has):
        values = record.values(metric, **condition)
        between = ""
        if len(set(values)) > 1:
            _, low, high = record.interval(metric, **condition)
            between = f"{number(low)} to {number(high)}"
        rows.append([words(condition), number(values.mean()), between])
    return rows


def means(record: Record) -> str:
    """What was measured, with means and intervals over the seeds."""
    body, count = "", 0
    for metric in record.metrics:
        rows = [] if metric in NOT_MEASURED else measured(record, metric)
        if rows:
            meaning = f"<code>{metric}</code>: {escape(record.metrics[metric])}"
            title = f'<tr><th colspan="3" scope="rowgroup">{meaning}</th></tr>'
            body += f"<tbody>{title}{''.join(map(row, rows))}</tbody>"
            count += len(rows)
    title = f"{count} rows: means and intervals"
    return folded(title, f"{record.name}, means", ["condition", "mean", "95 % interval"], body)


def trials(record: Record) -> str:
    """Every trial of the search for a setting; nothing where none is stored."""
    if not (choice := record.choice):
        return ""
    metrics = dict.fromkeys(name for trial in record.trials for name in trial["metrics"])
    shown = [name for name in metrics if name not in NOT_SHOWN]

    def cells(trial: dict) -> list[str]:
        found = [trial["metrics"].get(name) for name in shown]
        values = ["diverged" if value is None else number(value) for value in found]
        return [words(trial["condition"]), f"{trial['value']:g}", str(trial["steps"]), *values]

    def place(trial: dict) -> tuple:
        return choice["arms"].index(trial["condition"]), trial["length"], trial["value"]

    body = "".join(row(cells(trial)) for trial in sorted(record.trials, key=place))
    last = choice["finalists"]
    last = f"; then the best {last} were tried at full length, which decided" if last else ""
    below = (
        f"<p>Seed {choice['seed']}, which no run uses. The lowest <code>{choice['by']}</code> "
        "wins. While the best value was the least or the largest that had been tried, the next one "
        f"beyond it was tried too{last}.</p>"
    )
    setting = choice["setting"]
    title = f"{len(record.trials)} trials: how it chose its {setting.replace('_', ' ')}"
    head = ["condition", setting, "steps", *shown]
    return folded(title, f"{record.name}, trials", head, f"<tbody>{body}</tbody>", below)


def facts(record: Record) -> Iterator[tuple[str, str]]:
    threads = {machine.get("threads", 1) for machine in record.machines}
    yield "Settings chosen on", record.chosen_on
    for winner in record.choice.get("winners", []):
        edge = ", the edge of what was tried" if winner["at_edge"] else ""
        setting = record.choice["setting"].replace("_", " ")
        yield f"Chosen {setting}", f"{words(winner['condition'])}: {winner['value']:g}{edge}"
    yield "Machine", f"{record.device}, {'/'.join(map(str, sorted(threads)))} thread a run"
    yield "Seeds", ", ".join(map(str, record.seeds))
    minutes = record.wall_seconds / 60
    yield "Time", f"{minutes:.0f} minutes for all runs and trials together, {record.date}"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())
    for name, sha256 in record.data.items():
        yield "Data", f"{name}: SHA-256 {sha256[:16]}…"
    for label, entry in record.weight_files.items():
        yield "Weights kept", f"{label}: {words(entry['condition'])}, seed {entry['seed']}"
    yield "Again", f"make experiments NAME={record.name}"


def made(record: Record) -> str:
    items = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in facts(record))
    return f"<details><summary>How it was made</summary><ul>{items}</ul></details>"


class Records(BookDirective):
    required_arguments, optional_arguments, has_content = 0, 1, False

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir).parent
        found = questions(root)
        if not self.arguments:
            box = nodes.container(classes=["not-searched"])  # they have the words for the search
            self.state.nested_parse(self.lines(found, readers(read_book(root))), 0, box)
            return [box]
        if self.arguments[0] not in found:
            known = ", ".join(found)
            self.warn(f"records: no folder experiments/{self.arguments[0]} with records; {known}")
            return []
        names = found[self.arguments[0]][1]
        listed = ", ".join(f"{{ref}}`{name} <record-{name}>`" for name in names)
        said = nodes.paragraph(
            "", "", *self.words(f"{listed}. How to read them: {{doc}}`records`.")
        )
        return [said, *map(self.section, names)]

    def lines(self, found: dict, read_in: dict[str, list[Chapter]]) -> StringList:
        """All of them in MyST, a table for each question."""
        rows = []
        for folder, (asks, names) in found.items():
            rows += ["", f"**[{asks}](records_{folder}.md)**", ""]
            rows += ["| record | what was run |", "| --- | --- |"]
            for name in names:
                record = recorded(name)
                pages = [f"{{doc}}`/{chapter.name}`" for chapter in read_in.get(name, [])]
                read = f" Read in {', '.join(pages)}." if pages else ""
                words = f"{record.what} *{len(record.runs)} runs.*{read}"
                rows.append(f"| {{ref}}`{name} <record-{name}>` | {words} |")
        return StringList(rows, self.env.doc2path(self.env.docname))

    def section(self, name: str) -> nodes.section:
        record = recorded(name)
        label = f"record-{record.name}"
        section = nodes.section("", names=[label])
        section += nodes.title("", record.name)
        section += nodes.paragraph("", "", *self.words(record.what), classes=["not-searched"])
        parts = means(record), trials(record), made(record)
        section += nodes.raw("", "".join(parts), format="html")
        self.state.document.note_explicit_target(section, section)
        self.set_source_info(section)
        return section

    to_notebook = staticmethod(on_the_site("The table of records"))


DIRECTIVES = {"records": Records}


def setup(app: Sphinx) -> None:
    register(app, globals())
