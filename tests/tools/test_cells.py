"""Which part of a cell a page shows, and which it folds."""

import pytest

from website.pages.cells import Parts, parts, settles, shows_table
from website.pages.docstrings import parted, plain

NAIVE = "def naive(x):\n    return x\n\n\ny = naive(2)"
CASES = {
    "nothing to fold": (NAIVE, Parts(shown=NAIVE)),
    "only imports, seeds and constants": (
        "import torch\n\ntorch.manual_seed(0)\nuse_style()\nN, D = 4, 8",
        Parts(setup="import torch\n\ntorch.manual_seed(0)\nuse_style()\nN, D = 4, 8"),
    ),
    "constants belong to the code that uses them": (
        "import torch\n\nN = 4\nx = torch.rand(N)",
        Parts(setup="import torch", shown="N = 4\nx = torch.rand(N)"),
    ),
    "a seed alone is no set-up": (
        "torch.manual_seed(1)\nx = torch.rand(3)",
        Parts(shown="torch.manual_seed(1)\nx = torch.rand(3)"),
    ),
    "assertions and glue at the end": (
        "y = 1\nassert y\n# as there\nassert_close(y, 1)\nglue(c1_y=y)",
        Parts(shown="y = 1", check="assert y\n# as there\nassert_close(y, 1)\nglue(c1_y=y)"),
    ),
    "a loop of assertions": (
        "y = 1\nfor one in [y]:\n    assert one",
        Parts(shown="y = 1", check="for one in [y]:\n    assert one"),
    ),
    "a loop that works and asserts": (
        "y = 1\nfor one in [y]:\n    z = one\n    assert z",
        Parts(shown="y = 1", check="for one in [y]:\n    z = one\n    assert z"),
    ),
    "all from the first assertion on": (
        "y = 1\nassert y\nz = 2\nprint(z)",
        Parts(shown="y = 1", check="assert y\nz = 2\nprint(z)"),
    ),
    "a function that asserts is shown": (
        "def f(x):\n    assert x\n    return x",
        Parts(shown="def f(x):\n    assert x\n    return x"),
    ),
    "a comment at the end stays": ("y = 1\n# done", Parts(shown="y = 1\n# done")),
    "a marker with words": (
        "y = 1\n# check: equal to the package, 1e-6\nz = 1\nassert y == z",
        Parts(shown="y = 1", check="z = 1\nassert y == z", words="equal to the package, 1e-6"),
    ),
    "a marker without words": (
        "y = 1\n# check\nassert y",
        Parts(shown="y = 1", check="assert y", words=""),
    ),
    "another comment is no marker": (
        "y = 1\n# checks follow\nz = 2",
        Parts(shown="y = 1\n# checks follow\nz = 2"),
    ),
    "all three": (
        "from a import b\ny = b()\nassert y",
        Parts(setup="from a import b", shown="y = b()", check="assert y"),
    ),
    "a magic that takes several lines": ("%%time\ny = 1\nassert y", None),
}


@pytest.mark.parametrize(("code", "found"), CASES.values(), ids=CASES)
def test_a_cell_is_cut_into_setup_shown_and_check(code, found):
    assert parts(code) == (found or Parts(shown=code))


def test_a_cell_that_asserts_and_draws_nothing_may_stand_in_its_claim():
    assert settles("a = 1\nassert a")
    assert settles("for a in [1]:\n    assert_close(a, 1)")
    assert not settles("a = 1")
    assert settles("print(1)\nassert True\nprint(2)")
    assert settles("assert a\na")
    assert not settles("show(fig, alt='x')\nassert True")
    assert not settles("assert a\nexplorer(a)")


def test_a_table_is_known_by_the_helper_that_shows_it():
    assert shows_table("rows = []\nshow_table(rows, header=[], caption='x')")
    assert not shows_table("# show_table(rows)\nrows = []")


CODE = '''class Mix(nn.Module):
    """Mix what is :class:`~vitbook.layers.Heads` and ``x``.

    Args:
        x: tokens.
    """

    def forward(self, x):
        """Tokens (B, N, D) -> tokens (B, N, D)."""
        return x

    def other(self):
        """As :meth:`forward`."""
        return 1
'''


def test_long_docstrings_and_those_with_rest_are_taken_out_and_made_plain():
    code, found = parted(CODE)
    assert code.startswith('class Mix(nn.Module):\n    def forward(self, x):\n        """Tokens')
    assert ":meth:" not in code
    assert found == [
        ("Mix", "Mix what is Heads and x.\n\nArgs:\n    x: tokens."),
        ("other", "As forward."),
    ]


def test_a_method_on_its_own_is_read_like_a_function():
    method = "    def f(self):\n        '''One.\n\n        Two.\n        '''\n        return 1\n"
    code, found = parted(method)
    assert code == "def f(self):\n    return 1\n"
    assert found == [("f", "One.\n\nTwo.")]


def test_what_has_nothing_but_a_docstring_keeps_it():
    assert parted('def f():\n    """One.\n\n    Two."""\n')[1] == []
    assert plain("see :func:`the mix <a.mix>` and ``a + b``") == "see the mix and a + b"
