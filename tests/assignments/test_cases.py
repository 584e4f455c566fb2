"""Questions as data: what is written is read again, and results are compared as a person would."""

import io
import math
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import repeat

import numpy as np
import pytest
import sympy
import torch
from torch import Tensor, nn

from vitcheck import Checker
from vitcheck.cases import (
    Assignment,
    Case,
    CaseError,
    Make,
    Mistake,
    Question,
    call_case,
    changed,
    compare,
    from_text,
    read_cases,
    run_case,
    to_text,
    write_cases,
)
from vitcheck.values import Layer, Other, decode, difference, encode, fresh

X = torch.arange(6.0).reshape(2, 3)


def assignment(*cases, **options):
    about = {"id": "q1", "title": "T", "points": 2, "minutes": 5, "difficulty": 1, "objective": "O"}
    question = Question(**(about | options), defines=("double",), cases=cases)
    return Assignment("a9-test", "k3f9", "0.1.0", (question,))


def doubled(**options):
    mistakes = (Mistake("did you add instead?", X + 2), Mistake("turned?", 2 * X.T))
    case = {"id": "q1-1", "stage": "values", "name": "double", "want": 2 * X, "points": 2}
    return Case(**(case | {"args": (X,), "mistakes": mistakes, "otherwise": "twice?"} | options))


def sent(value):
    """The value, as it comes from another process."""
    tensors = {}
    return decode(encode(value, tensors, "sent", strict=False), tensors)


def kept(case):
    """The case, as it comes back from a notebook."""
    return from_text(to_text(assignment(case)))["q1"].cases[0]


def linear_layer():
    source = nn.Linear(3, 2)
    sizes = {"in_features": 3, "out_features": 2}
    return source, Layer("torch.nn.Linear", sizes, source.state_dict())


VALUES = [
    *(None, True, 3, 0.5, "word", math.inf, -math.inf, X, X.T, X[:1].T[:, None, None].mT),
    *(X.bool(), X.long(), X.bfloat16(), X[0, 0], X[:0], 1, [2.0, X], (1, (X, "a"))),
    *({"a": X, "b": {"c": [None]}}, Other("a generator")),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_comes_back_as_it_went_out(value):
    tensors = {}
    written = encode(value, tensors, "here", strict=False)
    found = decode(written, tensors)
    assert encode(found, {}, "here", strict=False) == written
    if isinstance(value, Other | str | None):
        assert found == value
    else:
        assert difference(found, value, 0, 0) is None
        assert type(found) is type(value)
    if isinstance(value, Tensor):
        assert found.is_contiguous() is fresh(found).is_contiguous() is value.is_contiguous()


@pytest.mark.parametrize("value", [..., object(), np.ones(3), {1: 2}, X.to_sparse(), 1j])
def test_what_is_no_value_is_refused_or_named(value):
    with pytest.raises(ValueError, match="is no value"):
        encode(value, {}, "here")
    assert set(encode(value, {}, "here", strict=False)) == {"other"}


def test_what_is_endless_is_refused():
    endless = []
    endless.append(endless)
    for value in (endless, [0] * 20_000):
        with pytest.raises(ValueError, match="too large"):
            encode(value, {}, "here", strict=False)


@pytest.mark.parametrize(
    "value",
    [
        {"turned": "x", "axes": [0]},
        {"tensor": "x"},
        {"tensor": []},
        {"code": "1"},
        {"tuple": 3},
        {},
    ],
    ids=str,
)
def test_damaged_values_are_refused(value):
    with pytest.raises(ValueError, match=r"missing|no value"):
        decode(value, {})


def test_a_layer_is_built_from_the_course_or_from_torch_and_from_nowhere_else():
    source, layer = linear_layer()
    torch.testing.assert_close(sent(layer).build()(X), source(X))
    for path in ("os.system", "torch.load", "torch.nn.functional.relu", "vitbookish.MLP"):
        with pytest.raises(ValueError, match=r"no layer|must come from"):
            Layer(path).build()


def test_cases_come_back_from_file_folder_and_text(tmp_path):
    made = Make("Twice", {"width": 3}, {"w": X})
    other = doubled(id="q1-2", public=True, make=made, name="forward", claims="a fault")
    whole = assignment(doubled(), other)
    path = tmp_path / "cases.zip"
    write_cases(path, whole)
    zipfile.ZipFile(path).extractall(tmp_path / "folder")
    for found in (read_cases(path), read_cases(tmp_path / "folder"), from_text(to_text(whole))):
        assert repr(found) == repr(whole)
    again = io.BytesIO()
    write_cases(again, read_cases(path))
    assert again.getvalue() == path.read_bytes()


def test_what_lies_where_answers_run_is_the_call_alone():
    case = doubled(otherwise="seven", claims="a fault", public=True, before=((X,),))
    bare = case.only_call()
    assert bare == Case("case", "", "double", None, 0, args=case.args, before=case.before)
    torch.testing.assert_close(bare.args[0], X)


@pytest.mark.parametrize("data", [b"", b"PK", b"no zip at all"])
def test_a_damaged_file_is_named(tmp_path, data):
    path = tmp_path / "cases.zip"
    with pytest.raises(ValueError, match="is not there"):
        read_cases(path)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"cases\.zip is damaged"):
        read_cases(path)


GIVEN = {  # what is given for 2 * X, what is said of it; "": it is right
    "float64": (2 * X.double(), ""),
    "float16": ((2 * X).half(), ""),
    "with a gradient": ((2 * X).requires_grad_(), ""),
    "a little off": (2 * X + 1e-6, ""),
    "not contiguous": ((2 * X.T).contiguous().T, ""),
    "added": (X + 2, "did you add instead"),
    "turned": (2 * X.T, "turned?"),
    "half": (X / 2, "twice?"),
    "shape": (X[0], "has the shape (3,), expected (2, 3)"),
    "list": ((2 * X).tolist(), "should be a tensor of shape (2, 3), got a list of 2"),
    "whole": ((2 * X).long(), "has the type torch.int64, expected floating-point numbers"),
    "nan": (2 * X * math.nan, "holds NaN"),
    "inf": (2 * X + math.inf, "holds infinite numbers"),
    "none": (None, "not answered yet"),
    "stub": (..., "not answered yet"),
    "stub from afar": (Other("..."), "not answered yet"),
    "generator": (Other("a generator"), "got a generator"),
}


@pytest.mark.parametrize(("got", "words"), GIVEN.values(), ids=GIVEN)
def test_a_right_tensor_is_accepted_and_a_wrong_one_named(got, words):
    verdict = compare(got, doubled())
    assert verdict.ok is (not words)
    assert words in verdict.message


@pytest.mark.parametrize(
    ("got", "want", "right"),
    [
        *((12, 12, True), (12.0, 12, True), (torch.tensor(12), 12, True), (12.4, 12, False)),
        *((True, 1, False), (1, True, False), (True, True, True), (torch.tensor(True), True, True)),
        *((0.50001, 0.5, True), (0.51, 0.5, False), (math.nan, 0.5, False), ("0.5", 0.5, False)),
        *((" Keys ", "keys", True), ("values", "keys", False), (None, "keys", False)),
        *(([1, 2], (1, 2), True), ((1, 2, 3), (1, 2), False), (torch.tensor([1, 2]), [1, 2], True)),
        *(({"a": X}, {"a": X}, True), ({"b": X}, {"a": X}, False), (X, {"a": X}, False)),
        *((0.5, torch.tensor(0.5), True), (X - math.inf, X - math.inf, True)),
        *((X.int(), X.long(), True), (X.int(), X, False)),
        *((Fraction(24, 2), 12, True), (Fraction(25, 2), 12, False), (Fraction(1, 2), 0.5, True)),
        *((sympy.Integer(12), 12, True), ([np.int64(1), sympy.Float(2)], (1, 2), True)),
        *((np.longdouble(12), 12, True), (np.bool_(True), True, True), (np.bool_(True), 1, False)),
    ],
)
def test_numbers_words_and_collections_are_compared_as_a_person_would(got, want, right):
    for given in (got, sent(got)):
        assert compare(given, doubled(want=want, mistakes=())).ok is right


def test_a_huge_tensor_for_a_list_is_judged_by_its_shape(monkeypatch):
    huge = torch.zeros(1).expand(10**12)  # one number, shown a million million times
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: pytest.fail("made a list of it"))
    for got in (huge, huge.view(10**6, 10**6), torch.zeros(2, 1), torch.zeros(())):
        verdict = compare(got, doubled(want=[1, 2], mistakes=()))
        assert "should be 2 values in a list or tuple, got a tensor of shape" in verdict.message


def test_a_call_gets_copies_and_may_not_change_them():
    assert run_case({"double": lambda x: 2 * x}, doubled()).sum() == 30
    with pytest.raises(CaseError, match="changed in place"):
        run_case({"double": lambda x: x.mul_(2)}, doubled())
    assert run_case({"double": lambda x: x.sum()}, doubled()) == 15


def test_what_a_call_left_of_its_inputs_can_be_compared_elsewhere():
    given = {"args": (X, [1, 2.5], linear_layer()[1])}
    case = doubled(**given, kwargs={"names": ["a"], "deep": {"t": (X, None)}})

    def left(answer):
        result, inputs = call_case({"double": lambda *a, **k: (answer(*a, **k), "said")[1]}, case)
        assert result == "said"
        return sent(inputs)

    assert not changed(case, left(lambda *args, **kwargs: None))
    spoil = [
        lambda x, numbers, layer, **kwargs: x.mul_(2),
        lambda x, numbers, layer, **kwargs: numbers.append(3),
        lambda x, numbers, layer, **kwargs: numbers.__setitem__(0, 3),
        lambda x, numbers, layer, **kwargs: kwargs["names"].clear(),
        lambda x, numbers, layer, **kwargs: kwargs["deep"].update(t=1),
        lambda x, numbers, layer, **kwargs: kwargs["deep"]["t"][0].zero_(),
    ]
    for change in spoil:
        assert changed(case, left(change))


LEFT = {  # what is done to a model that was given, and whether it may be
    "asked": (lambda model: model(X), True),
    "in evaluation mode": (lambda model: model.eval(), True),
    "in training mode": (lambda model: model.train(), False),
    "its weights": (lambda model: model.weight.data.mul_(2), False),
    "and back": (lambda model: (model.train(), model.eval()), True),
}


@pytest.mark.parametrize("how", LEFT)
def test_a_model_is_left_as_it_was_given(how):
    change, ok = LEFT[how]
    case = doubled(args=(linear_layer()[1],), want=3)
    with nullcontext() if ok else pytest.raises(CaseError, match="a model that you were given"):
        assert run_case({"double": lambda model: (change(model), 3)[1]}, case) == 3


HUGE = 10**5000  # more digits than Python writes out
ODD = [None, 3, "inputs", X, Other("a generator"), [], ((), {}), [[X], {}, {}], ((X.T,), {})]


@pytest.mark.parametrize("inputs", [*ODD, (HUGE, HUGE), ((HUGE,), {}), ({"0": X}, [])])
def test_whatever_is_said_to_be_left_of_the_inputs_is_compared(inputs):
    assert changed(doubled(), inputs)
    assert changed(doubled(kwargs={"k": 1}), inputs)


class Twice(nn.Module):
    def __init__(self, *, width):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(width))
        self.drop = nn.Dropout(0.9)

    def forward(self, x):
        return self.drop(x * self.w)


def test_a_class_is_built_gets_its_weights_and_is_not_training():
    two = Make("Twice", {"width": 3}, {"w": torch.full((3,), 2.0)})
    case = doubled(make=two, name="forward")
    assert compare(run_case({"Twice": Twice}, case), case).ok
    other = doubled(make=Make("Twice", {"width": 3}, {"v": X}), name="forward")
    with pytest.raises(CaseError, match="should have the parameters"):
        run_case({"Twice": Twice}, other)
    assert run_case({"Twice": lambda width: nn.Module()}, case) is None  # a stub
    with pytest.raises(CaseError, match="no method backward"):
        run_case({"Twice": Twice}, doubled(make=two, name="backward"))


class Scaled(Twice):
    def __init__(self, *, width, learned=True, start=0.5):
        super().__init__(width=width)
        value = torch.full((width,), start)
        if learned:
            self.scale = nn.Parameter(value)
        else:
            self.register_buffer("scale", value)


def look(name, *args, **kwargs):
    """What a look gives, after the way that results of a grader's worker take."""
    make = Make("Scaled", {"width": 3, **kwargs}, {"w": X[0], "scale": X[1]})
    case = doubled(make=make, name=name, args=args, mistakes=())
    return case, sent(run_case({"Scaled": Scaled}, case))


def test_what_is_learned_and_what_it_starts_with_are_compared_before_weights_are_loaded():
    case, want = look("start_values", "scale")
    _, buffer = look("start_values", "scale", learned=False)
    assert {name: value.tolist() for name, value in want.items()} == {"scale": [0.5] * 3}
    lacks = "the list of learned parameters lacks scale"
    right = replace(case, want=want)
    assert compare(want, right).ok
    assert compare(look("start_values", "scale", start=0.1)[1], right).message == "twice?"
    assert compare(buffer, right).message == lacks
    verdict = compare(want, replace(case, want=buffer))
    assert verdict.message == lacks.replace("lacks scale", 'should not have "scale"')


class Counting(Scaled):
    """Has buffers of its own, and remembers its first call if it is told to."""

    def __init__(self, *, width, keeps=False):
        super().__init__(width=width)
        self.register_buffer("masks", torch.ones(9))
        self.rows = None if keeps else 2

    def forward(self, x):
        self.rows = self.rows or len(x)
        return (x * self.w + self.scale)[: self.rows]


def counting(**options):
    make = Make("Counting", {"width": 3, **options}, {"w": X[0], "scale": X[1]})
    return doubled(make=make, name="forward", mistakes=(), want=X * X[0] + X[1])


def test_buffers_of_its_own_cost_nothing_and_are_no_parameters():
    case = counting()
    assert compare(run_case({"Counting": Counting}, case), case).ok
    weights = case.make.weights | {"masks2": X[0]}
    lacking = replace(case, make=replace(case.make, weights=weights))
    with pytest.raises(CaseError, match="should have the parameters"):
        run_case({"Counting": Counting}, lacking)
    only_a_buffer = nn.Module()
    only_a_buffer.register_buffer("masks", X)
    assert run_case({"Counting": lambda width: only_a_buffer}, case) is None  # a stub


@pytest.mark.parametrize("keeps", [False, True])
def test_what_an_earlier_call_left_behind_changes_no_later_one(keeps):
    case = counting(keeps=keeps)
    assert compare(run_case({"Counting": Counting}, case), case).ok
    case = kept(replace(case, before=((X[:1],), (X,))))
    assert compare(run_case({"Counting": Counting}, case), case).ok is not keeps


UNPACKS = {  # what is given for a pair, and whether it is right
    "list": (lambda a, b: [a, b], True),
    "stacked": (lambda a, b: torch.stack([a, b]), True),
    "map": (lambda a, b: map((a, b).__getitem__, (0, 1)), True),
    "views of a dictionary": (lambda a, b: {"a": a, "b": b}.values(), True),
    "dictionary": (lambda a, b: {"a": a, "b": b}, False),
    "turned": (lambda a, b: torch.stack([b, a]), False),
    "one deeper": (lambda a, b: torch.stack([a, b])[None], False),
    "one more": (lambda a, b: iter([a, b, b]), False),
    "endless": (lambda a, b: repeat(a), False),
}
PAIRS = {"tensors": (X, 2 * X), "numbers": (torch.tensor(3), torch.tensor(4))}


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("how", UNPACKS)
def test_where_several_are_asked_for_whatever_unpacks_to_them_is_right(how, pair, gradients):
    def right(x):
        return x * PAIRS[pair][0], x * PAIRS[pair][1]

    pack, ok = UNPACKS[how]
    x = torch.ones(2, 3) if pair == "tensors" else torch.tensor(1.0)
    case = doubled(args=(x,), gradients=gradients, mistakes=(), want=None)
    case = replace(case, want=run_case({"double": right}, case))
    bare = kept(case.only_call())
    assert bare.want in ((None, None), {"result": (None, None)})
    for asked in (case, bare):  # in the notebook, and where the answer runs
        got = run_case({"double": lambda x: pack(*right(x))}, asked)
        assert compare(got, case).ok is ok


def test_a_dropout_shows_in_training_and_comes_back_from_a_file():
    make = Make("Twice", {"width": 3}, {"w": torch.ones(3)}, training=True)
    case = kept(doubled(make=make, name="forward"))
    torch.manual_seed(0)
    assert run_case({"Twice": Twice}, case).count_nonzero() < 6
    case = replace(case, make=replace(make, training=False))
    assert (run_case({"Twice": Twice}, case) == X).all()


def product(x, w):
    return x * w


GRADIENTS = {
    "right": (product, ""),
    "another formula, in double precision": (lambda x, w: (x.double() - 1) * w + w, ""),
    "detached": (lambda x, w: x * w.detach(), "does the factor learn?"),
    "data": (lambda x, w: x.data * w, "do gradients reach every input"),
    "no grad": (torch.no_grad()(product), "do gradients reach every input"),
    "wrong": (lambda x, w: x + w, "twice?"),
    "a copy of what is compared": (
        lambda x, w: {"result": x * w, "gradients": {"input 1": w.expand(2, 3), "w": x.sum(0)}},
        "the result should be a tensor",
    ),
    "numbers": (lambda x, w: 1, "the result should be a tensor"),
    "stub": (lambda x, w: None, "not answered yet"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_an_answer_that_stops_gradients_is_told_from_one_that_can_be_trained(name):
    answer, words = GRADIENTS[name]
    case = doubled(args=(X,), kwargs={"w": X[1]}, gradients=True)
    detached = GRADIENTS["detached"][0]
    want, mistake = (run_case({"double": one}, case) for one in (product, detached))
    mistakes = (Mistake("does the factor learn?", mistake),)
    case = kept(replace(case, want=want, mistakes=mistakes))
    with torch.no_grad():  # whatever else a notebook has set
        verdict = compare(run_case({"double": answer}, case), case)
    assert verdict.ok is (not words)
    assert words in verdict.message
    with pytest.raises(CaseError, match="changed in place"):
        run_case({"double": lambda x, w: x.mul_(w)}, case)


def test_missing_names_are_named_and_a_value_is_looked_up():
    with pytest.raises(CaseError, match="there is no double"):
        run_case({}, doubled())
    with pytest.raises(CaseError, match="should be a function"):
        run_case({"double": 3}, doubled())
    assert run_case({"count": 3}, doubled(name="count", is_value=True)) == 3


SAYS = {
    "right": (lambda x: x + x, "ok: q1 passes 1 public check"),
    "stub": (lambda x: ..., "q1, not answered yet"),
    "mistake": (lambda x: x + 2, "q1, values: did you add instead?"),
    "breaks": (lambda x: x / X.T, "your code stopped with"),
    "in place": (lambda x: x.mul_(2), "changed in place"),
}


@pytest.mark.parametrize("name", SAYS)
def test_the_checker_says_it_in_the_notebook(name, capsys):
    answer, words = SAYS[name]
    names = {"double": answer, "check": Checker("a9-test", to_text(assignment(doubled())))}
    exec("check('q1')\ncheck.all()", names)  # finds the names of who calls it
    out = capsys.readouterr().out
    assert words in out
    assert f"q1: {int(name == 'right')} of 1 public checks pass" in out
    assert "vitcheck" not in out  # its own frames are left out


def test_the_checker_refuses_what_is_not_its_own():
    text = to_text(assignment(doubled()))
    with pytest.raises(ValueError, match="checks of a9-test, not a1-attention"):
        Checker("a1-attention", text)
    with pytest.raises(ValueError, match="were changed"):
        Checker("a9-test", text[:-40])
    with pytest.raises(KeyError, match="no question 'q7'; there are q1"):
        Checker("a9-test", text)("q7")


def test_a_question_for_a_person_is_not_checked(capsys):
    check = Checker("a9-test", to_text(assignment(manual=True, rubric="two reasons")))
    check("q1", {})
    assert "read by a person" in capsys.readouterr().out
