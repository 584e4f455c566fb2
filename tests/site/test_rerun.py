"""Each cell of a notebook can be run again, after "Run all", and each section after *Setup*."""

import pytest

from tools.rerun_notebooks import ROOT, examined

pytestmark = pytest.mark.site
APART = ["scaled_dot_product"]  # whose sections need no earlier one
FOLDER = ROOT / "_build" / "html" / "notebooks"
SLOW = [
    pytest.param(name, marks=pytest.mark.deep)
    for name in ("scaled_dot_product", "qk_merge", "looking")
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["ready", *SLOW])
def test_each_cell_runs_again_after_all_have_run(name):
    found = examined(FOLDER / f"{name}.ipynb")
    assert found["cells"] == []
    assert name not in APART or found["sections"] == []
