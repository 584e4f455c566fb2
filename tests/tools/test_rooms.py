"""The rooms of `website` are listed in its docstring: none imports from one below it."""

import ast
import re

import pytest
from copies import ROOT, known

import website

ROOMS = re.findall(r"^    (\w+)  ", website.__doc__, re.MULTILINE)


def imported(tree):
    """The modules that running the code imports, not those that only its types name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        yield from imported(node)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_those_above_it(room):
    files = known(f"website/{room}/*.py")
    assert files
    below = ROOMS[ROOMS.index(room) + 1 :]
    closed = ("tools.", "tests.", *(f"website.{one}." for one in below))
    names = {
        (file, name)
        for file in files
        for name in imported(ast.parse((ROOT / file).read_text("utf8")))
    }
    assert {one for one in names if one[1].startswith(closed)} == set()


def test_every_room_is_in_the_list():
    folders = {name.split("/")[1] for name in known("website/*/*")}
    assert folders == set(ROOMS)
