"""Read a master: an assignment in otter's format, written as a MyST notebook.

Raw cells are otter's (``# ASSIGNMENT CONFIG``, ``# BEGIN QUESTION``, ``# BEGIN SOLUTION``,
``# BEGIN TESTS``), with keys of ours in their YAML. Three kinds of raw cells are ours alone and are
not in what otter gets: ``# BEGIN VARIANT`` (code that draws), ``# MUTANTS`` and ``# ALTERNATIVES``.
What the variant's code names can stand in double braces anywhere: ``{{ width }}``.
"""

import re
from pathlib import Path
from typing import Any

import jupytext
import yaml
from nbformat import NotebookNode

from website.assignments.draw import Draw
from website.assignments.master import Master, MasterError, Mutant, Question, Test
from website.assignments.patience import patience

MOST_PUBLIC = 0.1  # of a question's points
QUESTION_KEYS = {"name", "title", "points", "minutes", "difficulty", "objective"}
OPTIONAL_KEYS = {"manual", "rubric", "defines"}
PLACE = re.compile(r"\{\{(.+?)\}\}")
CONFIG = re.compile(r'\A""" *# BEGIN TEST CONFIG\n(?P<yaml>.*?)\n""" *# END TEST CONFIG\n', re.S)


def read_master(path: Path, draw: Draw) -> Master:
    """Read a master and put in what the variant's code draws.

    Raises:
        MasterError: it does not hold what an assignment needs; the message says where and what.
    """
    text = _text(path)
    try:
        notebook = jupytext.reads(text, fmt="md:myst")
    except Exception as error:
        raise MasterError(f"{path} is no MyST notebook: {error}") from None
    try:
        return _Reader(notebook.cells, draw).master()
    except MasterError as error:
        raise MasterError(f"{path.name}: {error}") from None


def read_name(path: Path) -> str:
    """Only the name of an assignment, which decides how it is drawn."""
    found = re.search(r"^# ASSIGNMENT CONFIG\n(?:.*\n)*?name: *([\w-]+) *$", _text(path), re.M)
    if not found:
        raise MasterError(f"{path.name}: there is no raw cell '# ASSIGNMENT CONFIG' with a name")
    return found[1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MasterError(f"{path} cannot be read: {error}") from None


def _number(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MasterError(f"{what} must be a number, got {value!r}")


class _Reader:
    """Walks once through the cells."""

    def __init__(self, cells: list[NotebookNode], draw: Draw):
        self.cells, self.at, self.draw = cells, 0, draw
        self.names: dict[str, Any] = {}

    def master(self) -> Master:
        config = self.needed("ASSIGNMENT CONFIG")
        for key in ("name", "title", "chapters"):
            if key not in config:
                raise MasterError(f"ASSIGNMENT CONFIG has no {key}")
        if self.raw("BEGIN VARIANT") is not None:
            code = "\n".join(cell.source for cell in self.until("END VARIANT", "code"))
            self.run_variant(code)
        introduction: list[str] = []
        setup: list[str] = []
        questions: list[Question] = []
        while self.at < len(self.cells):
            cell = self.cells[self.at]
            if cell.cell_type == "raw":
                questions.append(self.question())
                continue
            if questions:
                raise MasterError(f"what stands after {questions[-1].name} belongs to no question")
            (setup if cell.cell_type == "code" else introduction).append(self.fill(cell.source))
            self.at += 1
        if not isinstance(config["chapters"], list):
            raise MasterError(
                f"chapters is a list like [patches, block], got {config['chapters']!r}"
            )
        names = [question.name for question in questions]
        if not questions or len(set(names)) < len(names):
            raise MasterError(f"every question needs a name of its own, got {names}")
        config = {key: self.fill_all(value) for key, value in config.items()}
        chapters = [str(chapter) for chapter in config["chapters"]]
        return Master(config["name"], config["title"], chapters, introduction, setup, questions)

    def run_variant(self, code: str) -> None:
        scope: dict[str, Any] = {"draw": self.draw}
        try:
            with patience():
                exec(compile(code, "<variant>", "exec"), scope)
        except Exception as error:
            raise MasterError(f"the variant cannot be drawn: {error!r}") from error
        self.names = {k: v for k, v in scope.items() if k not in ("draw", "__builtins__")}

    def question(self) -> Question:
        config = self.needed("BEGIN QUESTION")
        name = config.get("name", "a question without a name")
        if not re.fullmatch(r"q\d+", str(name)):
            raise MasterError(f"questions have names like q1, q2, got {name!r}")
        if lacking := QUESTION_KEYS - set(config):
            raise MasterError(f"{name} lacks {', '.join(sorted(lacking))}")
        if unknown := set(config) - QUESTION_KEYS - OPTIONAL_KEYS:
            raise MasterError(f"{name} has keys without a meaning: {', '.join(sorted(unknown))}")
        for key in ("points", "minutes", "difficulty"):
            _number(f"{key} of {name}", config[key])
        parts: dict[str, Any] = {"prompt": [], "solution": "", "tests": []}
        parts |= {"mutants": [], "alternatives": {}}
        while (cell := self.next_cell(name)) is not None:
            self.part(name, cell, parts)
        if not parts["prompt"] or not parts["solution"]:
            raise MasterError(f"{name} needs a prompt and a solution")
        config = {key: self.fill_all(value) for key, value in config.items()}
        question = Question(**config, **parts)
        if not question.manual:
            self.complain(question)
        return question

    def next_cell(self, name: str) -> NotebookNode | None:
        """The question's next cell, or None at its end."""
        if self.at >= len(self.cells):
            raise MasterError(f"{name} has no '# END QUESTION'")
        cell = self.cells[self.at]
        self.at += 1
        done = cell.cell_type == "raw" and cell.source.startswith("# END QUESTION")
        return None if done else cell

    def part(self, name: str, cell: NotebookNode, parts: dict) -> None:
        if cell.cell_type == "markdown":
            parts["prompt"].append(self.fill(cell.source))
            return
        if cell.cell_type == "code":
            raise MasterError(f"{name}: code outside SOLUTION and TESTS: {cell.source[:40]!r}")
        mark = cell.source.partition("\n")[0].strip()
        if mark == "# BEGIN SOLUTION":
            inside = self.until("END SOLUTION")
            parts["solution"] = "\n\n".join(self.fill(c.source) for c in inside)
        elif mark == "# BEGIN TESTS":
            parts["tests"] = [self.test(name, c.source) for c in self.until("END TESTS", "code")]
        elif mark == "# MUTANTS":
            for entry in self.entries(cell.source, f"{name}: '# MUTANTS'", "asks"):
                parts["mutants"].append(self.mutant(name, entry, parts["solution"]))
        elif mark == "# ALTERNATIVES":
            for entry in self.entries(cell.source, f"{name}: '# ALTERNATIVES'", "name", "code"):
                parts["alternatives"][entry["name"]] = self.fill(entry["code"])
        else:
            raise MasterError(f"{name}: a raw cell that means nothing here: {mark!r}")

    def test(self, name: str, source: str) -> Test:
        config = CONFIG.match(source)
        if not config:
            raise MasterError(f"{name}: a test begins with its TEST CONFIG, got {source[:40]!r}")
        options = self.keys(config["yaml"], f"{name}: a TEST CONFIG")
        code = self.fill(source[config.end() :]).strip()
        if not str(options.get("name") or "").strip() or PLACE.search(str(options["name"])):
            raise MasterError(f"{name}: students read a test's name: it is words, nothing drawn")
        options = {key: self.fill_all(value) for key, value in options.items()}
        _number(f"{name}: points of a test", options.get("points", 0))
        try:
            return Test(hidden=options.pop("hidden", False), code=code, **options)
        except TypeError as error:
            raise MasterError(f"{name}: a test's config: {error}") from None

    def mutant(self, name: str, entry: dict, solution: str) -> Mutant:
        if "code" in entry:
            return Mutant(self.fill(entry["asks"]), self.fill(entry["code"]))
        if not {"change", "to"} <= set(entry):
            raise MasterError(f"{name}: a mutant has code, or change and to: {entry!r}"[:200])
        change, to = self.fill(entry["change"]), self.fill(entry["to"])
        if solution.count(change) != 1:
            times = solution.count(change)
            raise MasterError(f"{name}: the mutant's {change!r} is in the solution {times} times")
        return Mutant(self.fill(entry["asks"]), solution.replace(change, to))

    def complain(self, question: Question) -> None:
        worth = sum(test.points for test in question.tests)
        if abs(worth - question.points) > 1e-9:
            raise MasterError(f"{question.name} is worth {question.points}, its tests {worth}")
        if not question.defines:
            raise MasterError(f"{question.name} defines nothing that a test could call")
        if len({test.name for test in question.tests}) < len(question.tests):
            raise MasterError(f"{question.name} has two tests of one name")
        if not any(test.hidden for test in question.tests):
            raise MasterError(f"{question.name} has no hidden test")
        shown = sum(test.points for test in question.tests if not test.hidden)
        if shown > MOST_PUBLIC * question.points + 1e-9:
            raise MasterError(
                f"{question.name}: the public cases are worth {shown:g} of {question.points:g} "
                "points, more than a tenth; their results can be copied out of the notebook"
            )

    def raw(self, mark: str) -> str | None:
        """The source of the raw cell that stands here, if it has this mark."""
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        if cell is None or cell.cell_type != "raw" or not cell.source.startswith(f"# {mark}"):
            return None
        self.at += 1
        return cell.source

    def needed(self, mark: str) -> dict:
        """The keys and values of the raw cell that has to stand here."""
        source = self.raw(mark)
        if source is None:
            found = self.cells[self.at].source[:40] if self.at < len(self.cells) else "the end"
            raise MasterError(f"expected a raw cell '# {mark}', found {found!r}")
        return self.keys(source, f"'# {mark}'")

    def keys(self, text: str, where: str) -> dict:
        """YAML that is keys and values, or nothing."""
        found = self.yaml(text)
        if found is not None and not isinstance(found, dict):
            raise MasterError(f"{where} holds keys and their values, got {found!r}"[:200])
        return found or {}

    def entries(self, text: str, where: str, *wanted: str) -> list[dict]:
        """YAML that is a list of entries with these keys, or nothing."""
        found = self.yaml(text) or []
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise MasterError(f"{where} holds a list of entries, got {found!r}"[:200])
        for entry in found:
            if lacking := [key for key in wanted if key not in entry]:
                raise MasterError(
                    f"an entry of {where} lacks {', '.join(lacking)}: {entry!r}"[:200]
                )
        return found

    def until(self, mark: str, kind: str = "") -> list[NotebookNode]:
        found: list[NotebookNode] = []
        while self.at < len(self.cells):
            cell = self.cells[self.at]
            self.at += 1
            if cell.cell_type == "raw":
                if cell.source.strip() == f"# {mark}":
                    return found
                break
            if kind and cell.cell_type != kind:
                raise MasterError(f"only {kind} cells may stand before '# {mark}'")
            found.append(cell)
        raise MasterError(f"'# {mark}' is missing")

    def yaml(self, text: str) -> Any:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise MasterError(f"this is no YAML: {error}") from None

    def fill(self, text: str) -> str:
        """Put what was drawn into the double braces."""

        def value(found: re.Match) -> str:
            try:
                return str(eval(found[1].strip(), {}, dict(self.names)))
            except Exception as error:
                raise MasterError(f"{found[0]} cannot be filled in: {error!r}") from None

        return PLACE.sub(value, text)

    def fill_all(self, value: Any) -> Any:
        return self.fill(value) if isinstance(value, str) else value
