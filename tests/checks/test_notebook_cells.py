"""What a chapter's notebook says: predictions, results that stay closed, checks, what is open."""

import base64

import pytest
from ipykernel.zmqshell import ZMQDisplayPublisher
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from vitcheck import notebook
from vitcheck.exercises.scaled_dot_product import check_scale
from vitcheck.notebook import CLOSED, MIME, Session, predict, result_of, set_up, still_open


class Publisher(CapturingDisplayPublisher):
    """Keeps what is displayed, and calls hooks as a kernel's does."""

    register_hook = ZMQDisplayPublisher.register_hook

    def __init__(self):
        super().__init__()
        self._hooks = []

    def publish(self, data, metadata=None, **options):
        for hook in self._hooks:
            data = hook({"content": {"data": data}})["content"]["data"]
        super().publish(data, metadata or {}, **options)


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(notebook, "_session", Session())


@pytest.fixture
def run(session, monkeypatch, capsys):
    """Runs cells of a notebook; gives what each prints and displays."""
    shell = InteractiveShell()
    shell.display_pub = Publisher()
    monkeypatch.setattr(notebook, "_shell", lambda: shell)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    set_up()
    set_up()  # once more does no harm
    shell.push({one.__name__: one for one in (predict, result_of, still_open, check_scale)})
    shell.push({"publish": shell.display_pub.publish})
    capsys.readouterr()

    def run(source):
        shell.display_pub.outputs.clear()
        result = shell.run_cell(source)
        assert result.success, result
        shown = [next(iter(one["data"].values())) for one in shell.display_pub.outputs]
        return capsys.readouterr().out, shown

    run.shell = shell
    return run


def key(text):
    return base64.b64encode(text.encode()).decode()


# the key, the answer, what is said
SAID = {
    "no choice yet": ("2/3", 0, "Open: "),
    "the right one": ("2/3", 2, "It was choice 2, as you said.\n"),
    "another": ("2/3", 3, "It was choice 2, you said choice 3.\n"),
    "none of them": ("2/3", 7, "Not understood: the answer is one of the numbers 1 to 3"),
    "no number yet": ("0.5 0.1 %", None, "Open: "),
    "a number near enough": ("0.5 0.1 %", 0.55, "It was 0.5 %, you said 0.55: near enough.\n"),
    "a number too far off": ("8 1 ", 5, "It was 8, you said 5: 3 off.\n"),
    "no number": ("8 1 ", "five", "Not understood: the answer is a number"),
    "no words yet": ("", "", "Open: "),
    "words": ("", "more", "You said: more.\n"),
}


@pytest.mark.parametrize(("right", "answer", "words"), SAID.values(), ids=SAID)
def test_a_prediction_says_how_far_off_it_was(session, capsys, right, answer, words):
    predict("sums", answer, key(right))
    assert capsys.readouterr().out.startswith(words)
    predict("sums", answer, key(f">{right}"))  # a later cell shows the result, and compares
    at_once = capsys.readouterr().out
    result_of("sums")
    later = capsys.readouterr().out
    assert at_once.startswith("You expect " if words[:3] in {"It ", "You"} else words)
    assert later == (words if words[:3] in {"It ", "You"} else "")
    result_of("sums", again=True)
    assert capsys.readouterr().out == ""


PLAIN = "publish({'text/html': '<b>6</b>'})"
SHOW = f"result_of('sums')\n{PLAIN}"


def test_a_result_stays_closed_until_there_is_an_answer_and_only_in_its_own_cell(run):
    closed = [f"<details><summary>{CLOSED}</summary><b>6</b></details>"]

    def shown(source):
        return run(source)[1]

    assert shown(SHOW) == closed
    run("predict('sums', 0, 'PjIvMw==')")
    assert shown(SHOW) == closed
    assert shown(PLAIN) == ["<b>6</b>"]
    run("predict('sums', 1, 'PjIvMw==')")
    assert shown(SHOW) == ["<b>6</b>"]


RIGHT = "check_scale(lambda d, var_q, var_k: (d * var_q * var_k) ** -0.5)"
WRONG = "check_scale(lambda d, var_q, var_k: 1 / d)"
BROKEN = "check_scale(lambda d, var_q, var_k: 1 / 0)"
STUB = "check_scale(...)"
# a cell: what it prints, what it displays, what is open then
ANSWERS = {
    STUB: ("not answered yet: my_scale\n", None, "not answered yet"),
    RIGHT: ("ok: scores of variance 1, at every width and every variance of q and k\n", None, "ok"),
    WRONG: ("", "Is it the variance that you must divide by?", "not right yet"),
    BROKEN: ("", "ZeroDivisionError: division by zero", "not right yet"),
    f"#@title Solution to 2.1\n{RIGHT}": ("ok\n", None, "not answered yet"),
}


@pytest.mark.parametrize(("cell", "found"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_wrong_answer_is_told_and_the_notebook_goes_on(run, cell, found):
    printed, displays, then = found
    said, _ = run(f"{cell}\nwent_on = True")
    assert said == printed
    assert run.shell.user_ns["went_on"]
    outputs = run.shell.display_pub.outputs
    assert bool(outputs) == (displays is not None)
    if displays:
        assert displays in outputs[0]["data"]["text/plain"]
        assert MIME in outputs[0]["data"]
    assert run("still_open({}, {'check_scale': 'Exercise 2.2'})")[0] == f"Exercise 2.2: {then}.\n"


def test_a_cell_of_checks_prints_one_line(run):
    assert run("x = 2\nassert x == 2") == ("ok\n", [])
    assert run("for y in range(3):\n    assert y < x + 1\nassert x > 1") == ("ok: 4 checks\n", [])
    said, _ = run("assert x > 2\nassert x > 1")
    assert said.splitlines()[-1].startswith("1 of 2 checks did not hold here; was a cell run out")
    assert run("def f():\n    assert x\nx + 1")[0] == "Out[0]: 3\n"
