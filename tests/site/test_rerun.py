"""Each cell of a notebook can be run again, after "Run all"."""

import pytest

from tools.rerun_notebooks import ROOT, examined

pytestmark = pytest.mark.site
FOLDER = ROOT / "_build" / "html" / "notebooks"
SLOW = [
    pytest.param(name, marks=pytest.mark.deep)
    for name in ("scaled_dot_product", "qk_merge", "looking")
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["ready", *SLOW])
def test_each_cell_runs_again_after_all_have_run(name):
    assert examined(FOLDER / f"{name}.ipynb")["cells"] == []
