"""How checks speak: stubs pass on, mistakes are named, learners keep their own traceback."""

import functools
import re
import traceback

import numpy as np
import pytest
import torch
from torch import nn

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
    assert capsys.readouterr().out == "ok: each token sees itself and the past\n"


def left_open(n):
    mask = ...
    return mask.tril()


def left_to_torch(n):
    return torch.tril(...)


def not_implemented(n):
    raise NotImplementedError


STUBS = [None, ..., lambda n: None, lambda n: ..., left_open, left_to_torch, not_implemented]


@pytest.mark.parametrize("stub", STUBS)
def test_an_unanswered_stub_is_passed_over(stub, capsys):
    assert check_mask(stub) is None
    assert capsys.readouterr().out.startswith("not answered yet: causal_mask")


def test_a_forgotten_return_is_hinted_at(capsys):
    check_mask(lambda n: None)
    assert "does it end with return?" in capsys.readouterr().out


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


def test_partial_functions_and_modules_are_answers_too(capsys):
    check_halved(functools.partial(torch.mul, torch.tensor(0.5)))

    @staged("layer", ok="doubles")
    def check_layer(trial, layer):
        trial.close(trial.call(layer(), trial.randn(2)), 0.0, "?")

    class Stub(nn.Module):
        def forward(self, x):
            pass

    check_layer(Stub)
    assert capsys.readouterr().out.splitlines()[1].startswith("not answered yet: layer")


def test_a_check_looks_like_a_function_of_the_answers():
    import inspect

    assert str(inspect.signature(check_mask)) == "(causal_mask)"
    assert check_mask.__doc__ == "causal_mask(n) -> (n, n) bool."
    with pytest.raises(TypeError, match="causal_mask"):
        check_mask()


def test_a_trial_accepts_what_is_right():
    trial = Trial("thing", seed=0)
    trial.close(torch.ones(2, 3) + 1e-7, torch.ones(2, 3), "why?")
    trial.close(torch.arange(3), torch.arange(3), "why?")
    trial.close(torch.tensor(2.0), 2, "why?")
    assert trial.number(torch.tensor(2.5)) == trial.number(np.float32(2.5)) == 2.5
    trial.close(np.float32(2.5), 2.5, "why?")
    assert trial.pair((1, 2)) == (1, 2)
    assert trial.randn(2, 3).shape == (2, 3)
    assert {trial.integer(2, 4) for _ in range(100)} == {2, 3, 4}


def test_a_right_answer_is_not_accused_of_a_mistake_that_gives_the_same():
    trial, want = Trial("thing", seed=0), torch.ones(2)
    trial.match(want, want, {"ones?": torch.ones(2)}, otherwise="why?")
    trial.match(1.0, 1, {"one?": 1.0}, otherwise="why?")


def test_the_first_mistake_that_gives_the_answer_is_named():
    trial, want = Trial("thing", seed=0), torch.zeros(2)
    mistakes = {
        "another shape?": torch.ones(3),
        "one or two?": [torch.ones(2), 2 * torch.ones(2)],
        "two?": 2 * torch.ones(2),
    }
    with pytest.raises(CheckFailed, match="one or two"):
        trial.match(2 * torch.ones(2), want, mistakes, otherwise="why?")
    with pytest.raises(CheckFailed, match="why"):
        trial.match(3 * torch.ones(2), want, mistakes, otherwise="why?")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_any_floating_type_is_an_answer_and_becomes_float32(dtype):
    trial, ones = Trial("thing", seed=0), torch.ones(2, dtype=dtype)
    assert trial.tensor(ones, (2,)).dtype is torch.float32
    trial.match(ones, torch.ones(2), {}, otherwise="why?")


def halve(x):
    return x / 2


def broken(x):
    raise RuntimeError("never called for a right answer, and passed over for a wrong one")


@staged(
    "halve",
    ok="halved",
    right=halve,
    mistakes={
        "broken?": broken,
        "the first row only?": lambda x: x[0] / 2,
        "doubled, or not at all?": [lambda x: 2 * x, lambda x: x],
        "nothing is left?": lambda x: 0 * x,
    },
)
def check_halve(trial, answer):
    trial.stage("one row")
    trial.compare(answer, trial.randn(1, 3), otherwise="what is it?")
    trial.stage("two rows")
    trial.compare(answer, trial.randn(2, 3), otherwise="and two rows?")


@pytest.mark.parametrize("answer", [lambda x: x * 0.5, lambda x: x.double() / 2])
def test_another_way_and_a_wider_type_are_right(answer, capsys):
    check_halve(answer)
    assert capsys.readouterr().out == "ok: halved\n"


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


def test_answers_are_all_there_or_not_answered_yet(capsys):
    @staged("answers", ok="all there")
    def check_answers(trial, given):
        assert trial.answers(given, ("a", "b")) == {"a": 1, "b": 2}

    check_answers({"a": 1, "b": 2})
    check_answers({"a": 1, "b": ...})
    assert capsys.readouterr().out.split("\n")[:2] == ["ok: all there", "not answered yet: answers"]


def ask(answer):
    """What a trial is asked for, in its first stage."""
    trial = Trial("thing", seed=0)
    trial.stage("first")
    answer(trial)


def of(given):
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
        "dictionary": of([1, 2]),
        "'b' has lost its answer": of({"a": 1}),
        "'c' is not one of the questions": of({"a": 1, "b": 2, "c": 3}),
    },
}
ROWS = [(check, answer, words) for check, rows in REFUSED.items() for words, answer in rows.items()]


@pytest.mark.parametrize(("check", "answer", "words"), ROWS, ids=[row[2] for row in ROWS])
def test_what_is_wrong_is_named_with_its_stage_or_says_what_came(check, answer, words):
    with pytest.raises(CheckFailed, match=words) as failed:
        check(answer)
    assert re.match(rf"\w+(, {failed.value.stage})?: ", str(failed.value))
