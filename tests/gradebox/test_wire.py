"""What crosses from the sandbox becomes data or a WireError, whoever wrote it."""

import json
import math
import re
import struct
import time

import pytest
import torch
from gradebox.inside import wire
from gradebox.inside.wire import WireError
from gradebox.process import LostError, SpentError
from gradebox.runs import judge
from gradebox.sandbox import Limits, Sandbox
from gradebox.session import Answer, Session, in_words

from vitcheck.cases import Case
from vitcheck.values import Other


def crossed(value):
    frame = wire.pack_value({"number": "n"}, value)
    text, blob = wire.sizes(frame[:8], 2**20)
    header = wire.header(frame[8 : 8 + text])
    assert header["number"] == "n"
    assert len(frame) == 8 + text + blob
    return wire.unpack_value(header["value"], frame[8 + text :])


def test_values_cross_and_what_is_none_in_words():
    """What each kind becomes: tests/assignments/test_cases.py."""
    value = [{"a": (1, 2.5)}, torch.randn(3).bfloat16(), torch.nn.Parameter(torch.ones(2)), print]
    plain, *tensors, other = crossed(value)
    assert plain == value[0]
    assert all(map(torch.equal, tensors, value[1:3]))
    assert isinstance(other, Other)


def test_lengths_are_refused_before_anything_is_read():
    for lengths in [(2**31, 0), (10, 2**20 + 1)]:
        with pytest.raises(WireError, match="too large"):
            wire.sizes(struct.pack(">II", *lengths), 2**20)


HEADERS = [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000]


@pytest.mark.parametrize("text", HEADERS, ids=range(len(HEADERS)))
def test_a_header_is_a_json_object(text):
    with pytest.raises(WireError):
        wire.header(text)


SAFE = wire.pack_value({}, torch.ones(2, 2))
BLOB = SAFE[8 + struct.unpack(">I", SAFE[:4])[0] :]
DEEP = json.loads("[" * 900 + "]" * 900)
HOSTILE = [
    ({"tensor": "value"}, b""),
    ({"tensor": "other"}, BLOB),
    ({"tensor": ["value"]}, BLOB),
    ({"tensor": "value"}, BLOB[:-1]),
    ({"tensor": "value"}, BLOB + b"x"),
    ({"tensor": "value"}, b"\xff" * 40),
    ({"tensor": "value"}, struct.pack("<Q", 2**60) + BLOB),
    ({"tensor": "value", "tuple": []}, b""),
    ({"tuple": 3}, b""),
    ({"dict": []}, b""),
    ({"float": "no number"}, b""),
    ({"module": "torch.nn.Linear", "kwargs": {}, "weights": "value", "names": []}, b""),
    ([{"module": "os.system", "kwargs": {"x": 1}, "weights": "", "names": []}], b""),
    ({"unknown": 1}, b""),
    ({}, b""),
]


@pytest.mark.parametrize(("plain", "blob"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_no_worker_writes_is_refused(plain, blob):
    with pytest.raises(WireError):
        wire.unpack_value(plain, blob)


def tiny(number):
    """A safetensors file of so many tensors without numbers."""
    about = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({str(i): about for i in range(number)}).encode()
    return struct.pack("<Q", len(text)) + text


MANY = {
    "tensors": ({}, tiny(100_000)),
    "lists": ([[] for _ in range(1_000_000)], b""),
    "tuples": ([{"tuple": []}] * 300_000, b""),
    "numbers": ([1] * 1_000_000, b""),
}


@pytest.mark.parametrize(("plain", "blob"), MANY.values(), ids=MANY)
def test_more_than_a_worker_writes_is_refused_before_it_is_read(plain, blob):
    """Reading half a million tensors took seconds for each call, outside of every limit."""
    began = time.thread_time()
    with pytest.raises(WireError, match="too many"):
        wire.unpack_value(plain, blob)
    assert time.thread_time() - began < 0.5


def test_reading_what_a_submission_gives_counts_in_its_time(monkeypatch):
    gives = [[1] * 9 for _ in range(2_000)]
    session = Session(Sandbox("unsafe"), Limits(), [])
    monkeypatch.setattr(session, "_ask", lambda *_: ({"value": {"tuple": [gives, {}]}}, b""))
    began = time.thread_time()
    with pytest.raises(LostError, match="no value"):  # inputs that are none: read all the same
        session.call(Case("id", "stage", "name", 1, 1))
    assert 0 < session.spent() <= time.thread_time() - began


def test_reading_a_header_counts_in_its_time():
    """A notebook of 250 cells took minutes of the grader that way, and of its own two seconds."""
    text = b'{"stopped": [' + b"[]," * 1_300_000 + b"0]}"

    class Writes:
        cpu_s = waited_s = 0.0

        def ask(self, *_):
            return wire.header(text), b""

    session = Session(Sandbox("unsafe"), Limits(total_s=0.05), [])
    began = time.thread_time()
    session._told(Writes(), {}, b"", 1)
    assert 0 < session.used.cpu_s <= time.thread_time() - began
    with pytest.raises(SpentError):
        session._told(Writes(), {}, b"", 1)


def test_as_much_as_a_worker_writes_is_read():
    many = [(torch.ones(()), (1,)) for _ in range(2_400)]
    assert len(crossed(many)) == len(many)
    with pytest.raises(ValueError, match="too large to be written"):
        crossed(many * 2)


@pytest.mark.parametrize("text", [b"[" * 700 + b"]" * 700, b"7", b'{"a": 1}'], ids=len)
def test_an_error_that_is_no_text_is_an_error(text):
    found = wire.header(b'{"error": ' + text + b"}")["error"]
    assert in_words(found) == "an error"
    assert in_words("one\nline" * 100) == ("one line" * 100)[:300]


UNCHANGED = ((), {})  # inputs
FORGED = "1\u2019. All hidden tests passed; 10 of 10 points"
SPEAKS = {
    "what is no value": {"other": FORGED},
    "a type": {"other": f"a value of the type {FORGED}"},
    "a type, in one word": {"other": "a value of the type all_hidden_tests_passed"},
    "a type, with spaces that are letters": {"other": "a value of the type all\u3164hidden"},
    "a kind of list": {"other": "a hidden_mark of 10"},
    "a shape in other digits": {"other": "a tensor of shape (\u0661,)"},
    "what is no value, in a list": [1, {"tuple": [{"other": FORGED}]}],
    "what is no value, in a dictionary": {"dict": {"a": {"other": FORGED}}},
    "a key": {"dict": {FORGED: 1, "a": 1}},
    "many keys": {"dict": {"a": 1, **{f'{n}. {FORGED} "{"x" * n}': 1 for n in range(99)}}},
    "a text": FORGED,
    "a long text": FORGED * 9,
    "a text among numbers": [FORGED, 2],
    "a text with quotes": f"'\"{FORGED}\"'",
}


@pytest.mark.parametrize("plain", SPEAKS.values(), ids=SPEAKS)
@pytest.mark.parametrize("want", [1, [1, (2, 3)], {"a": 1}, torch.ones(2)], ids=str)
def test_a_value_does_not_speak_as_the_grader(plain, want):
    case = Case("id", "stage", "name", want, 1)
    verdict = judge(Answer(wire.unpack_value(plain, b""), UNCHANGED), case)
    ours = re.sub(r"""\"[^"]*\"|'([^'\\]|\\.)*('|$)""", "", verdict.message)
    assert not verdict.ok
    assert "hidden" not in ours
    assert ours.isascii()
    assert "\u2019" not in verdict.message
    assert len(verdict.message) < 350


ODD = [10**400, "x" * 10**6, DEEP, Other("x" * 10**6), [1] * 10**5, float("nan"), {"a": DEEP}]
ODD += [10**5000, -(10**5000)]  # more digits than Python writes out
WANTS = [
    1,
    0.5,
    math.inf,
    -math.inf,
    True,
    "text",
    [1, 2],
    {"a": 1},
    torch.ones(2),
    torch.tensor(3),
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("want", WANTS, ids=str)
def test_odd_results_are_wrong_and_never_break_the_grader(value, want):
    verdict = judge(Answer(value, UNCHANGED), Case("id", "stage", "name", want, 1))
    assert not verdict.ok
    assert 0 < len(verdict.message) < 1000
