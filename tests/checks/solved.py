"""The solutions of the pages: what each hands to its check, run with what stands above it."""

import ast
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path

from website.pages.source import read_book

BOOK = read_book(Path(__file__).resolve().parents[2])
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def run(nodes, names):
    """Code that needs what a page computes ends here."""
    with suppress(NameError):
        exec(compile(ast.Module(list(nodes), []), "a page", "exec"), names)


def is_definition(node):
    """A name for what stands there in full is one, too."""
    with suppress(AttributeError, ValueError):
        ast.literal_eval(node.value)
        return True
    return isinstance(node, DEFINES)


def solved():
    """Check -> what its solutions hand to it; a tuple where it takes several."""
    answers = defaultdict(list)
    for chapter in BOOK.chapters:
        names = {"__name__": chapter.name}
        for cell in chapter.cells:
            if cell.gate == "solution":
                checks = (name for name in names if name.startswith("check_"))
                hears = {name: partial(heard, answers[names[name]]) for name in checks}
                run(cell.tree.body, names | hears)
            for node in filter(is_definition, cell.tree.body):
                run([node], names)
    return answers


def heard(answers, *answer):
    answers.append(answer if len(answer) > 1 else answer[0])
