"""A grader as they are: the student's cells and the tests run in one process, and it is believed.

The positive control of the attacks, never used for marks. Tests are source that runs among the
student's names, a finished submission is reported over a pipe, results that a notebook logged with
pickle are taken over, lines of its output count as reports too, modules are looked for beside the
notebook, and what tests say is shown to the student. One process that has torch
imported forks once for each run:

    python plain_grader.py     requests and replies, a line of JSON each, on stdin and stdout
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch
from gradebox.package import Package, load_package

from vitcheck.cases import Case, Question

TESTS = {
    "function": """import torch
result = {name}(*args, **kwargs)
assert torch.allclose(result, want, rtol=rtol, atol=atol), f"{id} got {{args}}: expected {{want}}"
""",
    "layer": """import vitcheck.cases
made = {make}(**case.make.kwargs)
made.load_state_dict(case.make.weights)
verdict = vitcheck.cases.compare(made(*args), case)
assert verdict.ok, verdict.message
""",
    "value": 'assert {name} == want, f"{id} is not {{want}}"',
}


def source_of(case: Case) -> str:
    kind = "value" if case.is_value else "layer" if case.make else "function"
    return TESTS[kind].format(name=case.name, id=case.id, make=case.make and case.make.name)


def grade(path: Path, package: Package) -> dict:
    """Points and feedback of one notebook, run with its own earlier answers, then with right ones;
    whatever is right in either counts."""
    scores: dict = {}
    feedback: list = []
    for give in (False, True):
        run_once(path, package, give, scores, feedback)
    log = path.with_suffix(".log")
    if log.exists():
        scores.update(pickle.loads(log.read_bytes()))
    return {"points": sum(scores.values()), "feedback": feedback}


def run_once(path: Path, package: Package, give: bool, scores: dict, feedback: list) -> None:
    names: dict = {}
    for source in package.set_up:
        exec(source, names)
    cells = json.loads(path.read_text())["cells"]
    for question in package.questions:
        for cell in cells:
            if question.id in cell["metadata"].get("tags", []) and cell["cell_type"] == "code":
                try:
                    exec(cell["source"], names)
                except Exception as error:
                    feedback.append(str(error))
        test(question, names, scores, feedback)
        if give and question.id in package.reference:
            source = package.reference[question.id]
            exec(compile(source, "<given>", "exec"), names)


def test(question: Question, names: dict, scores: dict, feedback: list) -> None:
    for case in question.cases:
        names.update(args=case.args, kwargs=case.kwargs, want=case.want, case=case)
        names.update(rtol=case.rtol, atol=case.atol)
        try:
            exec(compile(source_of(case), case.id, "exec"), names)
            scores[case.id] = question.points / len(question.cases)
        except Exception as error:
            feedback.append(f"{case.id}: {error}")


def run(submissions: list[str], package: Package, log: str, report: int) -> None:
    """The forked process: grade one notebook after the other, and say so."""
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT)
    for number in (0, 1, 2):
        os.dup2(output, number)
    os.chdir(Path(log).parent)
    sys.path.insert(0, "")
    for name in [name for name in sys.modules if name.partition(".")[0] == "vitcheck"]:
        del sys.modules[name]  # the tests import it, as in a process that has only begun
    for path in submissions:
        found = {"submission": path, **grade(Path(path), package)}
        os.write(report, (json.dumps(found) + "\n").encode())
    sys.exit()  # what was registered for the end runs, as in any program


def serve(submissions: list[str], package: Package, log: str, seconds: float) -> list[dict]:
    """Run once in a process of its own; gives the lines it reported before its time was up."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        run(submissions, package, log, theirs)
    os.close(theirs)
    said, end = b"", time.monotonic() + seconds
    while select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
        part = os.read(ours, 65536)
        if not part:
            break
        said += part
    os.close(ours)
    while time.monotonic() < end and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.01)
    with suppress(ProcessLookupError, ChildProcessError):
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    printed = Path(log).read_text(errors="replace") if Path(log).exists() else ""
    return reports(said.decode(errors="replace") + "\n" + printed)


def reports(said: str) -> list[dict]:
    """The lines that are reports; whatever else came is skipped."""
    found = []
    for line in said.splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict) and "submission" in line]


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        request["package"] = load_package(Path(request["package"]))
        print(json.dumps(serve(**request)), flush=True)


if __name__ == "__main__":
    main()
