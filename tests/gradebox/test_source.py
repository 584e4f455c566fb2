"""Cells as statements: notebook syntax left out, definitions told from what computes."""

import ast

import pytest
from gradebox.inside.source import only_definitions, parse

MAGICS = [
    ("%matplotlib inline\nx = 1", "pass\nx = 1"),
    ("!pip install einops\nx = 1", "pass\nx = 1"),
    ("if True:\n    !ls\n    x = 1", "if True:\n    pass\n    x = 1"),
    ("files = !ls\nx = 1", "files = None\nx = 1"),
    ("%%time\nx = 1", "x = 1"),
    ("%time x = 1\ny = %time x + 1\n%time", "x = 1\ny = x + 1\npass"),
    ("%%bash\nrm -rf /", ""),
    ("%%writefile a.py\nx = (", ""),
    ("torch.stack?\nx = 1", "pass\nx = 1"),
    ("??x\ny = 1", "pass\ny = 1"),
    ("x = 7\ny = (x\n     % 4)", "x = 7\ny = x % 4"),
    ('x = """\n!not a command\n"""', 'x = "\\n!not a command\\n"'),
    # beside notebook syntax stands Python that looks like it, and it goes on over several lines
    ("%time 1\ny = (x\n     % 4)", "1\ny = x % 4"),
    ("!ls\nwhile (x\n       != 1):\n    pass", "pass\nwhile x != 1:\n    pass"),
    ("%%time\ny = x \\\n  % 4", "y = x % 4"),
    ('!ls\nx = """\n%d items\nwhy?\n""" % 3', 'pass\nx = "\\n%d items\\nwhy?\\n" % 3'),
    ("!ls\nx = 'a\u2028%b'", "pass\nx = 'a\u2028%b'"),
    ("!pip install -q \\\n    einops \\\n    tqdm\nx = 1", "pass\nx = 1"),
    ("if x:\n    a.b = !ls \\\n  -l\n    y = 1", "if x:\n    a.b = None\n    y = 1"),
    ("  x = 1\n  !ls\n  if x:\n    y = 1", "x = 1\npass\nif x:\n  y = 1"),
    ("%time y = (1 +\n 2)\n# (\n!ls", "y = 1 + 2\npass"),
    (
        "def f():\n    '''a\n    ! b\n    '''\n    x?\n    return (1\n  %2)\r\n%time\r\ny = 1",
        "def f():\n    '''a\n    ! b\n    '''\n    pass\n    return 1 % 2\npass\ny = 1",
    ),
]


@pytest.mark.parametrize(("source", "expected"), MAGICS)
def test_notebook_syntax_is_left_out(source, expected):
    assert ast.unparse(parse(source)) == ast.unparse(ast.parse(expected))


def test_what_is_no_python_either_way_is_an_error():
    with pytest.raises(SyntaxError):
        parse("def f(:\n    pass")


def test_only_definitions_are_taken_from_a_cell_that_computes():
    source = """
import torch
from math import pi
EPS = 1e-6
model = train()
for step in range(10**9): pass
def helper(x): return x
class Layer: pass
helper(3)
SIZES: tuple = (1, 2)
answer = 3
"""
    kept = only_definitions(parse(source))
    assert [ast.unparse(node).split("\n")[0] for node in kept] == [
        "import torch",
        "from math import pi",
        "EPS = 1e-06",
        "def helper(x):",
        "class Layer:",
        "SIZES: tuple = (1, 2)",
        "answer = 3",
    ]
