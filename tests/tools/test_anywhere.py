"""make anywhere: noise as rounding makes it, what decides an assertion, what is said of a page."""

import ast
import json

import pytest
import torch

from tools.anywhere import cells, report, results, runs
from tools.anywhere.noise import ROUNDING, Noise, drawn_otherwise

A = torch.randn(40, 50, generator=torch.Generator().manual_seed(0))


def noisy(work, seed=1, mode=Noise):
    with mode(seed):
        return work()


OPERATIONS = {
    "mm": lambda x: x @ x.T,
    "linear": lambda x: torch.nn.functional.linear(x, x, x[:, 0]),
    "bmm": lambda x: torch.bmm(x[None], x.T[None]),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "conv": lambda x: torch.nn.functional.conv1d(x[None], x[:, :40, None]),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "batch norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3),
}


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_noise_moves_last_digits_forward_and_backward(name, dtype):
    def both():
        x = A.to(dtype, copy=True).requires_grad_()
        y = OPERATIONS[name](x)
        (y**3).sum().backward()
        return y.detach(), x.grad

    runs = both(), noisy(both), noisy(both), noisy(both, seed=2)
    for plain, other, again, third in zip(*runs, strict=True):
        assert torch.equal(other, again)  # as on a processor
        assert not torch.equal(plain, other)
        assert not torch.equal(other, third)
        size = 40 * ROUNDING[dtype] * plain.abs().max()
        assert (plain - other).abs().max() < size


def test_noise_leaves_alone_what_is_copied_compared_and_drawn():
    def work():
        torch.manual_seed(3)
        drawn = torch.randn(5), torch.rand(5), torch.randperm(5), torch.nn.Dropout()(A)
        return torch.cat([A.T.reshape(-1), A.abs().max()[None], *map(torch.flatten, drawn)])

    assert torch.equal(work(), noisy(work))


def test_what_is_drawn_otherwise_differs_by_two_millionths():
    def work():
        torch.manual_seed(3)
        drawn = torch.randn(99), torch.rand(99), torch.nn.init.trunc_normal_(A.clone())[0]
        return torch.cat(drawn)

    plain, other = work(), noisy(work, mode=drawn_otherwise)
    apart = ((plain - other) / plain).abs()
    assert 1e-7 < apart.median() < 1e-5
    assert torch.equal(A @ A.T, noisy(lambda: A @ A.T, mode=drawn_otherwise))


DECIDE = {
    "assert a < b": ["a < b"],
    "assert a < b and c > d": ["a < b", "c > d"],
    "assert all(x > 1 for x in xs)": ["x > 1"],
    "assert (t > 1).all()": ["t > 1"],
    "assert torch.all(t > 1)": ["t > 1"],
    "assert a < b or c > d": [],
    "assert not a < b": [],
    "assert sum(x > 1 for x in xs) >= 8": ["sum((x > 1 for x in xs)) >= 8"],
    "assert a == b": [],
    "x = a < b": [],
}


@pytest.mark.parametrize(("source", "expected"), DECIDE.items())
def test_what_decides_an_assertion(source, expected):
    places = cells.decisive(source)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]
    found = [ast.unparse(node) for node in nodes if (node.lineno, node.col_offset) in places]
    assert found == expected


PAGE = """---
file_format: mystnb
kernelspec: {name: python3}
---
# A page

```{code-cell} ipython3
import torch
from vitbook.book.glue import glue
unused = 1
```

```{code-cell} ipython3
torch.manual_seed(0)
x = torch.rand(50, 50)
```

Words. {glue:text}`c99_far:.2f` and {glue:text}`c99_near:.6f`

```{code-cell} ipython3
for _ in range(60):  # any two starts part
    x = 4 * (y := torch.linalg.matrix_norm(x) % 1) * (1 - y) + (x @ x) / (x @ x).norm()
glue(c99_far=torch.ones(2, 2).mean(), c99_near=float(y))
assert (x @ x).mean() > -1 and 1 < 2
with open("known", "a+") as first:  # what the first run found
    first.seek(0)
    known = float(first.read() or first.write(repr(float(y))) and y)
assert abs(float(y) - known) < 1e-9
```
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The page above, run plainly and under noise: (its file, what each run saw)."""
    file = tmp_path_factory.mktemp("book") / "page.md"
    file.write_text(PAGE)
    return file, {one["run"]: one for one in runs.make_runs(file, ["plain", "draw-1", "draw-2"])}


def test_a_run_tells_what_was_glued_compared_and_what_fell(ran):
    _, found = ran
    near = "abs(float(y) - known) < 1e-09"
    assert [one["error"] for one in found.values()] == [""] * 3
    assert found["plain"]["glued"]["c99_far"] == 1
    places = {place.partition(" ")[2] for place in found["plain"]["checks"]}
    assert places == {"(x @ x).mean() > -1", "1 < 2", near}
    failed = [[check["source"] for check in one["failed"]] for one in found.values()]
    assert [near in sources for sources in failed] == [False, True, True]


def test_the_report_names_what_fell_what_is_near_and_the_numbers_that_move(ran):
    file, found = ran
    words, well = report.report(file, "page", found, whole=True)
    line = 1 + file.read_text().splitlines().index("assert abs(float(y) - known) < 1e-9")
    assert not well
    assert f"FELL line {line}: abs(float(y)" in words
    assert "fell in draw-1 (abs" in words
    assert "c99_near" in words.split("moves", 1)[1]
    assert "c99_far" not in words


def test_a_check_nearer_than_its_range_is_named(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    found = {
        f"draw-{one}": {"checks": {"3.5.7 a > b": one, "3.5.9 c > d": 5 * one - 0.4}}
        for one in (0.1, 0.15, 0.3)
    }
    near = report.nearness(file, found)
    assert [(one.source, round(one.ratio, 3)) for one in near] == [("c > d", 0.1), ("a > b", 0.5)]
    assert not report.report(file, "page", found, whole=False)[1]


def test_seeds_move_only_what_a_cell_sets_itself():
    source = "torch.manual_seed(3)\nf(seed=s)\ng.manual_seed(k)\nrandint(3)"
    moved = ast.unparse(cells.OtherSeeds(100).visit(ast.parse(source)))
    assert moved.splitlines() == [
        "torch.manual_seed(3 + 100)",
        "f(seed=s + 100)",
        "g.manual_seed(k + 100)",
        "randint(3)",
    ]


def test_results_are_kept_by_page_and_digest(ran, tmp_path):
    _, found = ran
    kept = results.Results(tmp_path / "results.json")
    for run in found.values():
        kept.keep("page", "digest", run)
    kept.write()
    again = results.Results(tmp_path / "results.json")
    assert again.known("page", "digest").keys() == found.keys()
    for run, one in found.items():
        seen = again.pages["page"][run]
        assert seen["failed"] == (one["failed"] or None)
        assert seen["glued"]["c99_far"] == 1
        assert seen["checks"] == pytest.approx(one["checks"], rel=1e-5)
    assert json.loads((tmp_path / "results.json").read_text())["page"]["runs"] == list(found)
    assert again.known("page", "another digest") == {}
    assert again.known("page", "digest").keys() == found.keys()  # a look forgets nothing
    again.keep("page", "another digest", found[one := min(found)])
    assert again.known("page", "another digest").keys() == {one}
    assert again.known("page", "digest") == {}


def test_a_run_that_this_machine_cannot_make_is_named(monkeypatch):
    monkeypatch.setattr(runs, "capability", lambda: "avx2")
    absent = runs.missing_here(["default", "avx2", "avx512", "draw-1"])
    assert absent == {"avx512": "this processor has avx2 at most"}
    assert runs.environment_of("default")["ATEN_CPU_CAPABILITY"] == "default"
    assert "ATEN_CPU_CAPABILITY" not in runs.environment_of("draw-1")
    assert runs.environment_of("draw-1")["CUDA_VISIBLE_DEVICES"] == ""  # noise is the processor's
