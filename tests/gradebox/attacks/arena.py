"""Where an attack meets a grader: the files it is told of, a server it may call, an innocent
submission beside it, and somebody who watches."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import tiny
from gradebox.collect import Found
from gradebox.marking import blank, mark, marker
from gradebox.package import load_package
from gradebox.plan import Plan
from gradebox.reading import read_file
from gradebox.result import Result
from gradebox.run import mark_all
from gradebox.sandbox import Limits, Sandbox
from gradebox.store import Store

from attacks.table import REPORT, SECRET, ZEROS, Attack, Outcome

NAME = "attacker"  # what its processes call themselves, for who watches
# tight, so that what is endless ends soon and what is huge need not be very huge
LIMITS = Limits(call_s=2, cell_s=3, lost_calls=1, memory_mb=512)
HARNESS = f"#!/bin/sh\n# {SECRET}\n"  # what starts a grader elsewhere; nothing here runs it
WATCHED = ("starts processes", "takes the memory")
PLAIN = Path(__file__).parents[1] / "plain_grader.py"


class Arena:
    """A folder with the grader's data and two submissions, made anew for every round."""

    def __init__(self, folder: Path):
        self.folder, self.round = folder, 0
        self.package_path = tiny.package(folder / "tiny.gradebox.zip", SECRET)
        self.package = load_package(self.package_path)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.plain_grader: subprocess.Popen | None = None

    def close(self) -> None:
        self.server.close()
        if self.plain_grader:
            self.plain_grader.communicate()

    def prepare(self, attack: Attack) -> None:
        """Fresh notebooks of the attacker and of somebody innocent."""
        self.round += 1
        here = self.folder / str(self.round)
        here.mkdir()
        self.me, self.other, self.marker = here / "me.ipynb", here / "other.ipynb", here / "marker"
        innocent = [*tiny.answers(**attack.innocent), tiny.cell(SECRET, "q4", "markdown")]
        tiny.write(self.other, tiny.notebook(innocent))
        self.before = self.other.read_bytes()
        self.harness, self.metadata = here / "run_autograder", here / "submission_metadata.json"
        self.harness.write_text(HARNESS)
        self.metadata.write_text(json.dumps({"email": f"{SECRET}@example.edu", "attempts": 3}))
        for name, text in attack.beside.items():
            (here / name).parent.mkdir(exist_ok=True)
            (here / name).write_text(text)
        self.accomplices = [here / "accomplice.ipynb"] if attack.accomplice else []
        if attack.link_to:
            self.me.symlink_to(self.other)
            return
        tiny.write(self.me, tiny.notebook(self.cells(attack.cells)))
        for path in self.accomplices:
            tiny.write(path, tiny.notebook(self.cells(attack.accomplice)))

    def cells(self, sources: dict[str, str]) -> list[dict]:
        return [tiny.cell(self.filled(text), name) for name, text in sources.items()]

    def filled(self, source: str) -> str:
        given = {"zeros": ZEROS, "report": REPORT, "me": self.me, "other": self.other}
        given |= {"marker": self.marker, "package": self.package_path, "harness": self.harness}
        given |= {"metadata": self.metadata, "port": self.server.getsockname()[1], "name": NAME}
        for name, value in given.items():
            source = source.replace("{" + name + "}", str(value))
        return source

    def plain(self, attack: Attack) -> Outcome:
        """Graded by the plain grader, the innocent submission after the attacker's."""
        self.prepare(attack)
        if self.plain_grader is None:
            self.plain_grader = subprocess.Popen(
                [sys.executable, str(PLAIN), f"--token={SECRET}"],
                env={**os.environ, "GRADER_TOKEN": SECRET},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        log = self.me.with_suffix(".out")
        request = {
            "submissions": [*map(str, self.accomplices), str(self.me), str(self.other)],
            "package": str(self.package_path),
            "log": str(log),
            "seconds": 5 if attack.endless else 60,
        }
        with watching(attack.goal in WATCHED) as seen:
            self.plain_grader.stdin.write(json.dumps(request) + "\n")
            self.plain_grader.stdin.flush()
            lines = json.loads(self.plain_grader.stdout.readline())
        mine = [line for line in lines if line["submission"] == str(self.me)]
        other = [line["points"] for line in lines if line["submission"] == str(self.other)]
        feedback = " ".join(words for line in mine for words in line["feedback"])
        return self.outcome(
            points=max([line["points"] for line in mine], default=0),
            other=max(other, default=None),
            feedback=feedback,
            output=log.stat().st_size + len(feedback),
            seen=seen,
        )

    def ours(
        self, attack: Attack, sandbox: Sandbox, in_order: bool = True
    ) -> tuple[Outcome, Result]:
        """Marked by gradebox with two jobs, an innocent submission beside the attacker's. Not
        ``in_order``: all at once, so that each is in whatever phase it has come to."""
        self.prepare(attack)
        # who listens for an accomplice has time to hear it on a busy machine, too
        self.limits = replace(LIMITS, call_s=4, cell_s=8) if attack.accomplice else LIMITS
        if attack.endless and not attack.innocent:  # each second is spent in every run and call
            self.limits = replace(LIMITS, call_s=1, cell_s=1)
        class_ = [*self.accomplices, self.me, self.other]
        with watching(attack.goal in WATCHED) as seen:
            if in_order:
                results = self.as_a_class(class_, sandbox)
            else:
                with ThreadPoolExecutor(len(class_)) as pool:
                    results = list(
                        pool.map(lambda one: mark(one, self.package, self.limits, sandbox), class_)
                    )
        *_, result, other = results
        same = self.other.read_bytes() == self.before and not self.other.is_symlink()
        outcome = self.outcome(
            points=result.points,
            other=other.points if same else 0,
            feedback=read_by_the_student(result),
            output=len(result.to_json()),
            seen=seen,
        )
        return outcome, result

    def as_a_class(self, class_: list[Path], sandbox: Sandbox) -> list[Result]:
        """What the command gives for these notebooks with two jobs."""
        out = self.me.parent / "out"
        plan = Plan(self.me.parent, self.package_path, out, self.limits, jobs=2)
        store = Store(out, "package")
        store.make()
        found = [Found(path.stem, functools.partial(read_file, path)) for path in class_]
        marks = marker(self.package, self.limits, sandbox)
        attempts, failures = mark_all(found, plan, store, marks, print)
        assert not failures or sandbox.name == "unsafe", failures
        return [one.result or blank(self.package, "unreadable", one.problem) for one in attempts]

    def outcome(self, points, other, feedback, output, seen) -> Outcome:
        try:
            self.server.accept()[0].close()
            connected = True
        except BlockingIOError:
            connected = False
        written = self.marker.exists() or self.harness.read_text() != HARNESS
        return Outcome(points, other, feedback, written, connected, *seen, output / 2**20)


def read_by_the_student(result: Result) -> str:
    """Every word of a result that a feedback page may show."""
    words = [result.detail, *result.stopped]
    for question in result.questions:
        words += [question.message, question.hint]
        words += [f"{case.message or ''} {case.name}" for case in question.cases]
    return " ".join(words)


@contextmanager
def watching(needed: bool):
    """Counts the processes that bear the attacker's name, and their memory, until the end of the
    block; what it saw stands in the list it gives: most at once, most MB."""
    seen, stop = [0, 0.0], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            sizes = [size for name, size in processes() if name == NAME]
            seen[:] = max(seen[0], len(sizes)), max(seen[1], sum(sizes))
            time.sleep(0.05)

    if not needed:
        yield seen
        return
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def processes():
    """Name and memory in MB (pages of its own) of every process of this machine."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text().strip()
            if name == NAME:
                yield name, int((folder / "statm").read_text().split()[1]) * 4096 / 2**20
        except OSError:
            continue
