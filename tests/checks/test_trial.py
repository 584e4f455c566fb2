"""How checks speak: stubs pass on, mistakes are named, learners keep their own traceback."""

import inspect
import re
import traceback

import numpy as np
import pytest
import torch

from vitcheck import CheckFailed
from vitcheck.trial import Trial, staged


@staged("causal_mask", ok="each token sees itself and the past")
def check_mask(trial, causal_mask):
    """causal_mask(n) -> (n, n) bool."""
    n = trial.integer(4, 9)
    trial.stage("shape and type")
    mask = trial.tensor(causal_mask(n), (n, n), dtype=torch.bool)
    trial.stage("the diagonal")
    trial.ask(mask.diagonal(), "may a token look at itself?")
    trial.stage("direction")
    trial.ask(~mask[0, 1:], "which axis is the query?")


@staged("scale", ok="halved")
def check_halved(trial, halve):
    x = trial.randn(2, 3)
    trial.close(halve(x), x / 2, "did you halve it?")


def right(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def test_a_right_answer_prints_one_line_that_begins_with_ok(capsys):
    assert check_mask(right) is None
    check_halve(lambda x: x * 0.5)
    check_halve(lambda x: x.double() / 2)
    ok = "ok: each token sees itself and the past\n"
    assert capsys.readouterr().out == ok + 2 * "ok: halved\n"


def not_implemented(n):
    raise NotImplementedError


STUBS = [None, ..., lambda n: None, lambda n: ..., lambda n: (...).tril(), not_implemented]
STUBS.append(lambda n: torch.tril(...))


@pytest.mark.parametrize("stub", STUBS)
def test_an_unanswered_stub_is_passed_over(stub, capsys):
    assert check_mask(stub) is None
    said = capsys.readouterr().out
    assert said.startswith("not answered yet: causal_mask")
    assert ("does it end with return?" in said) is (stub is STUBS[2])


def crashes(n):
    return torch.zeros(n, n) @ torch.zeros(n + 1, n)


def test_an_exception_names_itself_and_the_stage_and_keeps_only_the_learners_frames():
    with pytest.raises(
        CheckFailed, match="shape and type: your code stopped with RuntimeError: mat1"
    ) as failed:
        check_mask(crashes)
    frames = traceback.extract_tb(failed.value.__cause__.__traceback__)
    assert [frame.name for frame in frames] == ["crashes"]
    own = [f.name for f in traceback.extract_tb(failed.value.__traceback__)]
    assert own[1:] == ["run"]  # the test, then one line of the library


def test_an_input_changed_in_place_is_named():
    with pytest.raises(CheckFailed, match="change an input in place"):
        check_halved(lambda x: x.mul_(0.5))
    check_halved(lambda x: x * 0.5)


def test_every_call_draws_other_inputs_so_that_no_answer_can_be_typed_in():
    seen = []
    check_halved(lambda x: seen.append(x) or x / 2)
    with pytest.raises(CheckFailed, match="did you halve it"):
        check_halved(lambda x: seen[0] / 2)


def test_drawing_inputs_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    check_halved(lambda x: x / 2)
    torch.testing.assert_close(torch.randn(3), expected, rtol=0, atol=0)


def test_a_check_looks_like_a_function_of_the_answers():
    assert str(inspect.signature(check_mask)) == "(causal_mask)"
    assert check_mask.__doc__ == "causal_mask(n) -> (n, n) bool."
    with pytest.raises(TypeError, match="causal_mask"):
        check_mask()


def test_a_trial_accepts_what_is_right():
    trial, ones = Trial("thing", seed=0), torch.ones(2)
    trial.close(torch.ones(2, 3) + 1e-7, torch.ones(2, 3), "why?")
    trial.close(torch.arange(3), torch.arange(3), "why?")
    trial.close(torch.tensor(2.0), 2, "why?")
    assert trial.number(torch.tensor(2.5)) == trial.number(np.float32(2.5)) == 2.5
    trial.close(np.float32(2.5), 2.5, "why?")
    assert trial.pair((1, 2)) == (1, 2)
    assert trial.randn(2, 3).shape == (2, 3)
    assert {trial.integer(2, 4) for _ in range(100)} == {2, 3, 4}
    trial.match(ones, ones, {"ones?": torch.ones(2)}, otherwise="why?")  # no mistake is named
    trial.match(1.0, 1, {"one?": 1.0}, otherwise="why?")
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        assert trial.tensor(ones.to(dtype), (2,)).dtype is torch.float32
        trial.match(ones.to(dtype), ones, {}, otherwise="why?")


def test_the_first_mistake_that_gives_the_answer_is_named():
    trial, ones = Trial("thing", seed=0), torch.ones(2)
    mistakes = {"another shape?": torch.ones(3), "one or two?": [ones, 2 * ones], "two?": 2 * ones}
    for given, words in ((2 * ones, "one or two"), (3 * ones, "why")):
        with pytest.raises(CheckFailed, match=words):
            trial.match(given, 0 * ones, mistakes, otherwise="why?")


def broken(x):
    raise RuntimeError("never called for a right answer, and passed over for a wrong one")


@staged(
    "halve",
    ok="halved",
    right=lambda x: x / 2,
    mistakes={
        "broken?": broken,
        "the first row only?": lambda x: x[0] / 2,
        "doubled, or not at all?": [lambda x: 2 * x, lambda x: x],
        "nothing is left?": lambda x: 0 * x,
    },
)
def check_halve(trial, answer):
    for rows, words in ((1, "one row"), (2, "two rows")):
        trial.stage(words)
        trial.compare(answer, trial.randn(rows, 3), otherwise="what is it?")


def test_a_mistake_that_an_earlier_result_speaks_against_comes_last():
    @staged(
        "steps",
        ok="counted",
        right=lambda n: n + 1,
        mistakes={"always four?": lambda n: 4, "doubled?": lambda n: 2 * n},
    )
    def check_steps(trial, steps):
        for n in (1, 2):
            trial.compare(steps, n, otherwise="how many?")

    with pytest.raises(CheckFailed, match="doubled"):
        check_steps(lambda n: 2 * n)  # 2, and then 4
    with pytest.raises(CheckFailed, match="always four"):
        check_steps(lambda n: 4)


@staged(
    "pair",
    ok="both",
    right=lambda n: (n, torch.arange(n)),
    in_part={0: {"one more?": lambda n: n + 1, "ten?": 10}, 1: {"backwards?": lambda n: range(n)}},
)
def check_pair(trial, answer):
    pair = trial.pair(answer(3))
    trial.compare(pair, 3, part=0, otherwise="how many?", name="the count")
    trial.compare(pair, 3, part=lambda pair: pair[1].sum(), otherwise="which numbers?")
    trial.compare(pair, 3, part=1, otherwise="in which order?")


def ask(answer):
    """What a trial is asked for, in its first stage."""
    trial = Trial("thing", seed=0)
    trial.stage("first")
    answer(trial)


def of(**given):
    return lambda trial: trial.answers(given, ("a", "b"))


one, two = torch.ones(1), torch.ones(2)
REFUSED = {
    check_mask: {
        r"_mask, shape and type: .* shape \(\d,\), expected \(\d, \d\)": lambda n: right(n)[0],
        "_mask, shape and type: .*torch.float32, expected torch.bool": lambda n: right(n).float(),
        "causal_mask, shape and type: .*tensor of shape .* got a list": lambda n: right(n).tolist(),
        "causal_mask, the diagonal: may a token look at itself": lambda n: right(n).tril(-1),
        "causal_mask, direction: which axis is the query": lambda n: right(n).T,
        "could not be used: TypeError": 3,
    },
    check_halve: {
        r"should be a tensor of shape \(1, 3\), got a list of 1": lambda x: (x / 2).tolist(),
        r"has the shape \(1, 1\), expected \(1, 3\)": lambda x: x[:, :1] / 2,
        "the first row only": lambda x: x[0] / 2,
        "one row: doubled, or not at": lambda x: x.clone(),
        "two rows: nothing is left": lambda x: x / 2 if len(x) == 1 else x - x,
        "what is it": lambda x: x / 3,
    },
    check_pair: {
        "pair: one more": lambda n: (n + 1, torch.arange(n)),
        'the count should be one number, got str "n"': lambda n: ("n", torch.arange(n)),
        "pair: which numbers": lambda n: (n, torch.arange(n) + 1),
        r"has the shape \(1, 3\), expected \(3,\)": lambda n: (n, torch.arange(n)[None]),
        "pair: in which order": lambda n: (n, torch.arange(n).flip(0)),
        r"the result should be a pair \(two values\), got int 3": lambda n: n,
    },
    ask: {
        "holds NaN": lambda t: t.tensor(float("nan") * two, (2,)),
        "should be one number": lambda t: t.number(two),
        "is NaN": lambda t: t.number(float("nan")),
        "should be one number, got bool True": lambda t: t.number(True),
        "got a numpy array of shape": lambda t: t.number(np.ones(2)),
        "is infinite": lambda t: t.number(float("inf")),
        "should be a pair": lambda t: t.pair(two),
        "off": lambda t: t.close(two + 1e-3, two, "off?"),
        "shape": lambda t: t.close(torch.ones(2, 1), two, "why?"),
        "one false": lambda t: t.ask(torch.tensor([True, False]), "one false?"),
        "dictionary": lambda t: t.answers([1, 2], ("a", "b")),
        "'b' has lost its answer": of(a=1),
        "'c' is not one of the questions": of(a=1, b=2, c=3),
    },
}
ROWS = [(check, answer, words) for check, rows in REFUSED.items() for words, answer in rows.items()]


@pytest.mark.parametrize(("check", "answer", "words"), ROWS, ids=[row[2] for row in ROWS])
def test_what_is_wrong_is_named_with_its_stage_or_says_what_came(check, answer, words):
    with pytest.raises(CheckFailed, match=words) as failed:
        check(answer)
    assert re.match(rf"\w+(, {failed.value.stage})?: ", str(failed.value))
