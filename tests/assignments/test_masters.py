"""A master with a flaw, a bad key, a wrong number: each is refused with words that help."""

import re
import signal
from pathlib import Path
from textwrap import indent

import pytest

from website.assignments import patience, prove, verify
from website.assignments.__main__ import find_master, main
from website.assignments.draw import PUBLIC, Secret, read_key, write_key
from website.assignments.marks import stub_of, without_marks
from website.assignments.master import MasterError
from website.assignments.prove import ProofError, draw_assignment
from website.pages.settings import version_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = (ROOT / "assignments/example.md").read_text()
BEFORE, _, AFTER = EXAMPLE.partition("# MUTANTS\n")
MUTANTS = "\n".join(
    f"- {{asks: 'is it {n}?', change: '** {{{{ power }}}}', to: '** {n}'}}" for n in range(5, 13)
)
MASTER = f"""{BEFORE}# MUTANTS
{MUTANTS}
```

```{{raw-cell}}
# ALTERNATIVES
- name: another power
  code: |
    def power_weights(scores):
        powers = scores.abs().pow({{{{ power }}}})
        return powers / powers.sum(-1, keepdim=True)
{AFTER[AFTER.index("```") :]}"""


def drawn_from(tmp_path, text, key=PUBLIC):
    path = tmp_path / "quiz.md"
    path.write_text(text)
    return draw_assignment(path, key, "0.1.0")


def test_the_small_master_holds(tmp_path):
    drawn = drawn_from(tmp_path, MASTER)
    assert drawn.name == "quiz-mean-public"
    assert drawn.cases["q1"].cases[0].mistakes[0].question == "is it 5?"
    assert {row.points for row in drawn.rows if row.who.startswith("mutant")} == {0}


QUESTION = MASTER.partition("# BEGIN QUESTION\n")[2].partition("\n```")[0]
LARGE, NAMED = "power_weights(draw.randn(2, 3, 4))", "name: two batches of rows"
DEFINED = "def power_weights(scores):\n"
SMALL = """- asks: 'is it small?'
  code: |
    def power_weights(scores):
        powers = scores.abs() ** {{ power }}
        return powers / powers.sum(-1, keepdim=True) + (scores.ndim == 2)"""
FLAWS = {
    "no config": ("# ASSIGNMENT CONFIG", "# CONFIG", "no raw cell '# ASSIGNMENT CONFIG'"),
    "no title": ('title: "Quiz: a mean with weights"\n', "", "has no title"),
    "no minutes": ("minutes: 5\n", "", "q1 lacks minutes"),
    "unknown key": ("minutes: 5", "minutes: 5\nmood: good", "without a meaning: mood"),
    "unknown name": ("power {{ power }}", "power {{ pwoer }}", "{{ pwoer }} cannot be filled in"),
    "bad variant": ("draw.integer(2, 4)", "draw.intger(2, 4)", "cannot be drawn"),
    "no end": ("# END TESTS", "# THE END", "'# END TESTS' is missing"),
    "unknown raw cell": ("# MUTANTS", "# MUTATIONS", "means nothing here: '# MUTATIONS'"),
    "points": ("points: 10", "points: 11", "is worth 11, its tests 10"),
    "a test without a name": (f"{NAMED}\n", "", "students read a test's name"),
    "a test with a drawn name": (NAMED, "name: '{{ power }}'", "words, nothing drawn"),
    "two tests of one name": (NAMED, "name: two rows", "two tests of one name"),
    "no hidden test": ("hidden: true\n", "", "no hidden test"),
    "no public test": ("points: 1\n", "points: 1\nhidden: true\n", "no public case"),
    "defines nothing": ("defines: [power_weights]\n", "", "defines nothing"),
    "test without a call": (LARGE, "x = 3", "the last line of a test is the call"),
    "test with two calls": (LARGE, "power_weights(scores=1)\npower_weights(2)", "not 2"),
    "test that stops": (LARGE, "power_weights(1 / 0)", "ZeroDivisionError"),
    "solution that stops": (DEFINED, f"1 / 0\n{DEFINED}", "stops"),
    "no solution given away": (
        "    # BEGIN SOLUTION\n", "", "    # END SOLUTION\n", "", "the blank answer gets 10 of 10"
    ),
    "tame mutant": ("to: '** 5'", "to: '** {{ power }} * 1.0'", "the mutant: is it 5?"),
    "mutant of nothing": ("change: '** {{ power }}'", "change: 'y'", "0 times"),
    "wrong alternative": ("pow({{ power }})", "pow(7)", "another power fails q1-1, q1-2"),
    "a name that is no number": ("name: q1", "name: first", "names like q1"),
    "a word for a chapter": (
        "chapters: [weighted_average]", "chapters: 1", "chapters is a list like [patches, bl"
    ),
    "words for points": ("points: 10", "points: ten", "points of q1 must be a number, got 'ten'"),
    "words for a test's points": ("points: 9", "points: nine", "a test must be a number"),
    "a question in words": (QUESTION, "Times, 10 points", "holds keys and their values"),
    "a test in words": (
        f"{NAMED}\npoints: 9\nhidden: true", "large", "a TEST CONFIG holds keys"
    ),
    "mutants in words": (MUTANTS, "is it 5?", "'# MUTANTS' holds a list of entries"),
    "a mutant that asks nothing": ("asks: 'is it 5?', ", "", "'# MUTANTS' lacks asks"),
    "a mutant that changes nothing": (", to: '** 5'", "", "a mutant has code, or change and to"),
    "an alternative without code": ("  code: |", "  said: |", "'# ALTERNATIVES' lacks code"),
    "no YAML": ("name: q1", "name: [q1", "no YAML"),
    "stray cell": ("# END QUESTION\n```", "# END QUESTION\n```\n\nMore.", "to no question"),
    "public cases worth more than a tenth, though their results are handed out": (
        "two rows\npoints: 1", "two rows\npoints: 2", "points: 9", "points: 8",
        "q1: the public cases are worth 2 of 10 points",
    ),
    "a case without a mutant": (
        LARGE, "power_weights(torch.ones(2, 3))", "q1-2 (two batches of rows): no mutant fails it"
    ),
    "a mutant that fails public cases only": (
        MUTANTS, f"{MUTANTS}\n{SMALL}", "q1: no hidden case fails the mutant: is it small"
    ),
    "a hidden case with the result of a public one": (
        "draw.randn(2, 5)", "torch.eye(2) + 1", LARGE, "power_weights(torch.eye(2) + 1)",
        "q1-2 (two batches of rows): a result copied out of a public case",
    ),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_named(tmp_path, flaw):
    *edits, words = FLAWS[flaw]
    text = MASTER
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises((MasterError, ProofError)) as found:
        drawn_from(tmp_path, text)
    assert words in str(found.value)


SOLUTION = DEFINED + MASTER.partition(DEFINED)[2].partition("```")[0]
ANSWER = """class Powers(torch.nn.Module):
    def forward(self, scores):
        powers = scores.abs() ** {{ power }}
        return powers / powers.sum(-1, keepdim=True)"""
FORWARD = ANSWER.replace("keepdim=True)", "keepdim=True)  # SOLUTION") + "\n"
ALTERNATIVE = MASTER.partition("code: |\n")[2].partition("```")[0]
LAYERS = (
    MASTER.replace("[power_weights]", "[Powers]")
    .replace(SOLUTION, FORWARD)
    .replace(ALTERNATIVE, indent(ANSWER, " " * 4) + "\n")
    .replace("power_weights(draw.randn(2, 5))", "Powers()(draw.randn(3))"),
    """- asks: does it keep the length of its first call?
  code: |
    class Powers(torch.nn.Module):
        def forward(self, scores):
            self.n = getattr(self, 'n', len(scores))
            powers = scores.abs() ** {{ power }}
            return (powers / powers.sum(-1, keepdim=True))[: self.n]
""",
)
FUNCTIONS = (
    MASTER,
    """- asks: does it keep the result of its first call?
  code: |
    kept = {}
    def power_weights(scores):
        powers = scores.abs() ** {{ power }}
        return kept.setdefault(scores.shape, powers / powers.sum(-1, keepdim=True))
""",
)
ONE = "power_weights(draw.randn(30))"
CALLS = {
    "one call": (LAYERS, "Powers()(draw.randn(30))", "no case fails the mutant: does it keep"),
    "two of one object": (LAYERS, "t = Powers()\nt(draw.randn(4))\nt(draw.randn(30))", ""),
    "two of two objects": (LAYERS, "Powers()(draw.randn(4))\nPowers()(draw.randn(30))", "not 2"),
    "one with a keyword": (
        LAYERS, "t = Powers()\nt(scores=draw.randn(4))\nt(draw.randn(30))", "not 2"
    ),
    "one of a function": (FUNCTIONS, ONE, "no case fails the mutant: does it keep"),
    "two of a function": (FUNCTIONS, f"{ONE}\n{ONE}", ""),
}  # fmt: skip


@pytest.mark.parametrize("calls", CALLS)
def test_a_case_may_hold_earlier_calls_of_its_object_or_function(tmp_path, calls):
    (text, kept), code, words = CALLS[calls]
    text = text.replace(LARGE, code).replace("# MUTANTS\n", f"# MUTANTS\n{kept}")
    if not words:
        [case] = [case for case in drawn_from(tmp_path, text).cases["q1"].cases if case.before]
        lengths = [len(given[0]) for given in (*case.before, case.args)]
        assert lengths == list(map(int, re.findall(r"randn\((\d+)\)", code)))
    else:
        with pytest.raises((MasterError, ProofError), match=words):
            drawn_from(tmp_path, text)


def test_the_proofs_of_the_course_ask_for_eight_mutants(tmp_path, capsys):
    path = tmp_path / "mine.md"
    path.write_text(MASTER)
    assert verify.main([str(path), "--draws", "0"]) == 0
    assert "q1  0/10  mutant: is it 5?  fails q1-1 q1-2" in capsys.readouterr().out
    path.write_text(MASTER.replace(MUTANTS.splitlines()[-1], ""))
    assert verify.main([str(path), "--draws", "0"]) == 1
    assert "at least 8 mutants" in capsys.readouterr().err


def test_a_draw_that_did_not_hold_is_told(tmp_path, capsys, monkeypatch):
    path = tmp_path / "mine.md"
    path.write_text(MASTER)
    draw_once = prove._draw_once

    def first_fails(*given):
        if given[-1] == 0:
            raise ProofError("q1-2 (edge): no mutant fails it")
        return draw_once(*given)

    monkeypatch.setattr(prove, "_draw_once", first_fails)
    assert verify.main([str(path), "--draws", "0"]) == 0
    assert "did not hold: q1-2 (edge): no mutant fails it" in capsys.readouterr().out


def test_solution_and_stub_follow_otters_rules():
    source = """def f(x):
    a = x  # SOLUTION
    b = 1 # SOLUTION NO PROMPT
    # BEGIN SOLUTION
    c = 2
    # END SOLUTION
    return a  # SOLUTION"""
    assert stub_of(source) == "def f(x):\n    a = ...\n    ...\n    ..."
    assert without_marks(source) == "def f(x):\n    a = x\n    b = 1\n    c = 2\n    return a"


def test_a_key_is_private_new_and_long(tmp_path):
    path = tmp_path / "course.key"
    write_key(path)
    assert path.stat().st_mode & 0o077 == 0
    assert len(read_key(path)) == 64
    with pytest.raises(ValueError, match="there already"):
        write_key(path)
    path.write_text("secret2026\n")
    with pytest.raises(ValueError, match="could be guessed"):
        read_key(path)


def test_a_variants_name_says_nothing_about_inputs_and_differs_by_assignment():
    one, two = Secret(b"a" * 40, "a1"), Secret(b"a" * 40, "a2")
    assert one.variant != two.variant
    assert len(one.variant) == 4
    assert Secret(PUBLIC, "a1").variant == "public"
    first, second, again = (one.draw(name).randn(4).tolist() for name in ("q1-1", "q1-2", "q1-1"))
    assert first == again != second


ASKED = {
    "no such number": (["77"], "there is no assignment A=77"),
    "nothing": ([], "which assignment? A=1"),
    "no such master": (["--master", "nowhere.md"], "is no file"),
    "no such key": (["1", "--key-file", "nowhere.key"], "KEY_FILE=nowhere.key cannot be read"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_command_says_what_is_wrong(asked, tmp_path, capsys):
    arguments, words = ASKED[asked]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


FOREVER = "while True: pass"
ENDLESS = {
    "variant": ("power = ", f"{FOREVER}\npower = ", "the variant cannot be drawn"),
    "given cell": ("import torch\n", f"import torch\n{FOREVER}\n", "the solution of q1"),
    "solution": (DEFINED, f"{DEFINED}    {FOREVER}\n", "q1-1: EndlessError"),
    "test": (LARGE, f"{FOREVER}\n{LARGE}", "q1-2: EndlessError"),
    "mutant": ("to: '** 5'", "to: '** len([0 for _ in iter(int, 1)])'", "an answer to q1-1 (two r"),
    "alternative": ("code: |\n", f"code: |\n    {FOREVER}\n", "q1, 'while"),
}


@pytest.mark.parametrize("place", ENDLESS)
def test_code_that_never_ends_is_stopped_and_named_and_nothing_is_written(
    place, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(patience, "SECONDS", 0.5)
    old, new, words = ENDLESS[place]
    assert old in MASTER
    path = tmp_path / "mine.md"
    path.write_text(MASTER.replace(old, new, 1))
    assert main(["--master", str(path), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "did not end within 0.5 s" in said
    assert not (tmp_path / "out").exists()
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 60  # the alarm of the tests themselves


def test_a_private_master_is_drawn_from_anywhere(tmp_path, capsys):
    path, key, out = (tmp_path / name for name in ("mine.md", "course.key", "out"))
    path.write_text(MASTER)
    assert main(["--new-key", str(key)]) == 0
    assert main(["--master", str(path), "--key-file", str(key), "--out", str(out)]) == 0
    [folder] = out.iterdir()
    assert folder.name.startswith("quiz-mean-")
    said = capsys.readouterr().out
    assert "8 mutants are caught" in said
    assert ("is no release" in said) is ("dev" in version_of(ROOT))
    assert find_master(ROOT, "1", None).name == "a1_attention.md"
