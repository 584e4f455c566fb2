"""Answers that are alike are found, whatever they are called; the given stub counts for nothing."""

from classroom import fake_marker, make_package, notebook
from gradebox.similarity import pairs, tokens

from gradebox import cli

STUB = "def attend(q, k, v, scale=None):\n    # q: (B, N, d)\n    return ...\n"
ONE = STUB.replace(
    "return ...",
    "scores = torch.einsum('bnd,bmd->bnm', q, k)\n    scores = scores - scores.amax(-1, True)\n"
    "    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)\n    return weights @ v",
)
RENAMED = ONE.replace("scores", "s").replace("weights", "my_w").replace("# q", "# my q")
OTHER = STUB.replace(
    "return ...",
    "out = []\n    for row in q.unbind(1):\n        similar = (row[:, None] * k).sum(dim=2)\n"
    "        out.append(torch.softmax(similar, 1).unsqueeze(1).bmm(v))\n"
    "    return torch.cat(out, 1)",
)
THIRD = STUB.replace(
    "return ...",
    "B, N, d = q.shape\n    logits = torch.matmul(q, k.mT).mul(d ** -0.5)\n"
    "    return F.softmax(logits, dim=-1).matmul(v).reshape(B, N, -1)",
)


def found(*sources, stub=STUB):
    return pairs([{"q1": source} for source in sources], {"q1": stub})


def test_a_renamed_copy_is_found_and_another_solution_is_not():
    alike = found(ONE, OTHER, RENAMED, THIRD)
    assert set(alike) == {(0, 2)}
    assert alike[0, 2]["all"] == 1.0


def test_the_given_stub_makes_nobody_alike():
    assert found(STUB, STUB, OTHER) == {}
    assert found(STUB, STUB, stub="x = 1") == {}  # too short to say anything


def test_what_half_of_the_class_writes_says_nothing():
    assert found(*[ONE] * 6, OTHER, THIRD) == {}
    assert len(found(ONE, ONE, RENAMED, OTHER, THIRD, STUB)) == 3


def test_names_comments_numbers_and_layout_do_not_count():
    one = "def f(a):\n    b = a * 2  # twice\n    return b\n"
    other = "def g( value ) :\n    result = (value *\n       2)\n    return result"
    assert [t for t in tokens(other) if t not in "()"] == [t for t in tokens(one) if t not in "()"]
    assert tokens("if x ( broken") == ["if", "x", "(", "broken"]


def test_a_large_class_is_compared_in_seconds():
    sources = [ONE.replace("exp()", f"exp().pow({n}).relu_{n}()") for n in range(300)]
    assert len(pairs([{"q1": source} for source in sources], {"q1": STUB})) == 0


def test_the_command_writes_a_page_and_a_table_that_call_it_a_hint(tmp_path):
    make_package(tmp_path / "package.zip")
    (tmp_path / "in").mkdir()
    for name, source in (("ada", ONE), ("bob", RENAMED), ("<b>cy", OTHER), ("dan", THIRD)):
        (tmp_path / "in" / f"{name.replace('/', '')}.ipynb").write_bytes(
            notebook(q1=source, q3=name)
        )
    command = [str(tmp_path / "in"), "--assignment", str(tmp_path / "package.zip"), "--similarity"]
    assert cli.main([*command, "--out", str(tmp_path / "out")], marker=fake_marker) == 0
    page = (tmp_path / "out/similarity.html").read_text()
    assert "A hint where to look, and no proof." in page
    assert "ada and bob: 100%" in page
    table = (tmp_path / "out/similarity.csv").read_text().splitlines()
    assert table[0] == "student,student,all,q1,q2,q3"
    assert table[1].startswith("ada,bob,1.00")
    assert len(table) == 2
